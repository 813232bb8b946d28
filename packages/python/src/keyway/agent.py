"""An agent that stays connected as long as its key is active."""

from __future__ import annotations

import asyncio
from functools import partial
from types import TracebackType
from typing import Any, AsyncIterator, Callable, overload

from ._clock import SystemClock
from ._environment import environment, service_origin
from ._events import Delivery, Emitter, Listener, Message, Ready
from ._http import new_client
from ._lifecycle import Lifecycle
from ._protocol import Json
from ._requests import DEFAULT_TIMEOUT_SECONDS
from ._responder import Handler
from ._stream import Stream
from ._token_source import GetToken, TokenSource
from ._watching import PresenceEvent

_EVENTS = frozenset({"ready", "gap", "message", "disconnected", "renewed", "stopped"})


class Agent:
    """Exchanges the key for a short-lived token, connects, renews the token in place, reconnects after failures, and
    stops permanently when the service refuses the key.

        async with Agent(url="https://keyway.example.com") as agent:  # the key comes from KEYWAY_API_KEY
            async for message in agent:
                print(message.from_, message.data)

    Or with listeners: `agent.on("message", listener)` and `await agent.run()`. The events are `ready`, `gap`,
    `message`, `disconnected`, `renewed` and `stopped`; a listener is a function or coroutine function of one argument.
    """

    def __init__(
        self,
        *,
        url: str | None = None,
        api_key: str | None = None,
        get_token: GetToken | None = None,
        ssl: Any = None,
    ) -> None:
        """Nothing is sent before `start`, `run` or `async with`.

        :param url: the service's public URL. Default: the environment variable `KEYWAY_URL`
        :param api_key: `svc_…`. Default: the environment variable `KEYWAY_API_KEY`
        :param get_token: instead of `api_key`: a coroutine function that asks a service of yours for a token, and
            returns the exchange's response unchanged. It raises the `KeywayError` of a refusal to stop the agent; after
            any other error it is called again
        :param ssl: an `ssl.SSLContext`, where the service's certificate is not signed by a public authority
        :raises KeywayError: `invalid_configuration`, `invalid_api_key`
        """
        origin = service_origin(url)
        clock = SystemClock()
        self._emitter = Emitter(_EVENTS)
        self._lifecycle = Lifecycle(
            hub_url=f"ws{origin.removeprefix('http')}/hub",
            tokens=TokenSource(
                origin=origin,
                api_key=api_key or environment("KEYWAY_API_KEY"),
                get_token=get_token,
                new_client=partial(new_client, True if ssl is None else ssl),
                clock=clock,
            ),
            clock=clock,
            emitter=self._emitter,
            ssl=ssl,
        )
        self._started = False

    @property
    def connected(self) -> bool:
        """Whether the agent is connected now."""
        return self._lifecycle.ready is not None

    @property
    def connection(self) -> Ready | None:
        """The event `ready` of the current connection; None while the agent is not connected."""
        return self._lifecycle.ready

    @overload
    def on(self, event: str) -> Callable[[Listener], Listener]: ...

    @overload
    def on(self, event: str, listener: Listener) -> Listener: ...

    def on(self, event: str, listener: Any = None) -> Any:
        """Registers a listener. Without `listener` it is a decorator. Raises `ValueError` if there is no such event."""
        return partial(self._emitter.add, event) if listener is None else self._emitter.add(event, listener)

    def off(self, event: str, listener: Callable[[Any], Any]) -> None:
        """Removes a listener."""
        self._emitter.remove(event, listener)

    def start(self) -> None:
        """Starts to connect, in the running event loop. Further calls have no effect."""
        asyncio.get_running_loop()
        if not self._started:
            self._started = True
            self._lifecycle.dial()

    async def run(self) -> None:
        """Starts the agent, and returns when it has been closed.

        :raises KeywayError: the service stopped the agent permanently; the message says what to do
        """
        self.start()
        try:
            await self._lifecycle.ended.wait()
        finally:
            await self.close()
        stopped = self._lifecycle.stopped
        if stopped and stopped.error:
            raise stopped.error

    async def send(self, to: str, data: Json, *, reply_to: str | None = None) -> Delivery:
        """Sends `data` to other connections of the same owner: to one connection, to all of one key, or to "all".

        Returns when the hub has written it to `delivered` open connections (0 when there is none). Messages are queued
        while disconnected, up to 256 or 1 MiB; those not acknowledged when the connection was lost are sent again, so a
        receiver may get a message twice (at-least-once delivery), unless the connection was resumed.

        :param reply_to: the id of the message that this one answers
        :raises KeywayError: `queue_full`, `too_large`, `insufficient_scope`, `refused`, `closed`, or the error that
            stopped the agent
        """
        return await self._lifecycle.send(self._lifecycle.new_id(), to, data, reply_to)

    async def request(self, to: str, data: Json, *, timeout: float = DEFAULT_TIMEOUT_SECONDS) -> Json:
        """Sends a request to one connection, to all of a key, or to "all", and returns the first answer.

        :param timeout: in seconds, at most a day
        :raises KeywayError: `no_responders` at once if no connected agent answers requests; `timeout`; `request_failed`
            with `reason` when every receiver refused or failed; `queue_full` beyond 1,000 requests without an answer
        """
        return await self._lifecycle.requests.request(to, data, timeout)

    def on_request(self, handler: Handler) -> Handler:
        """Answers requests with what the handler returns, from now on; a second call replaces the handler. The handler
        is called once for each request. At most 100 requests are handled at a time, and more are refused with `busy`.
        The key needs `agents:send`. May be used as a decorator."""
        self._lifecycle.responder.handler = handler
        return handler

    def watch(self) -> Stream[PresenceEvent]:
        """Iterates over changes of the owner's connections on all nodes. The first event, and the first after each
        reconnection, is `presence` with all connections; the others are `joined` or `left` with one. Ends with `close`;
        the key needs `agents:read`.

        :raises KeywayError: while iterating: `insufficient_scope`, or the error that stopped the agent
        """
        stream = self._lifecycle.watching.open(self._lifecycle.connection)
        stopped = self._lifecycle.stopped
        if stopped:
            self._lifecycle.watching.end(stopped.error)
        return stream

    async def close(self) -> None:
        """Stops the agent. Messages that are not acknowledged yet fail with `closed`."""
        self._lifecycle.stop(None)
        await self._lifecycle.wait_closed()

    async def __aenter__(self) -> Agent:
        self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __aiter__(self) -> AsyncIterator[Message]:
        """All messages from now on. Ends with `close`; raises the error if the service stops the agent."""
        stream = self._lifecycle.inbox.open()
        stopped = self._lifecycle.stopped
        if stopped:
            stream.end(stopped.error)
        return stream
