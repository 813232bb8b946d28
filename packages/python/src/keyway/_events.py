"""The events of an agent, and their listeners."""

from __future__ import annotations

import asyncio
import inspect
from collections import defaultdict
from dataclasses import dataclass
from typing import Any, Callable, TypeVar

from ._errors import KeywayError, NetworkCause
from ._protocol import Json

Listener = TypeVar("Listener", bound=Callable[[Any], Any])


@dataclass(frozen=True)
class Ready:
    """The hub accepted the connection."""

    connection_id: str
    agent_id: str
    key_id: str
    key_name: str | None
    scopes: list[str]
    """Empty means unrestricted."""
    expires_in: float
    """The remaining lifetime of the token in seconds."""
    resumed: bool
    """Whether this connection resumes the previous one. If so, all messages that the agent missed follow. False for the
    first connection, and if messages may have been lost."""


@dataclass(frozen=True)
class Request:
    """A request of another agent of the same owner; see `Agent.on_request`."""

    id: str
    from_: str
    """The id of the requesting connection, or "api" for the HTTP API."""
    from_key_id: str | None
    data: Json


@dataclass(frozen=True)
class Message:
    """A message from another connection of the same owner, or from the HTTP API."""

    id: str
    from_: str
    """The id of the sender's connection, or "api" for the HTTP API."""
    from_key_id: str | None
    data: Json
    reply_to: str | None = None
    """The id of the message that this one answers."""


@dataclass(frozen=True)
class Disconnected:
    """A connection ended, or an attempt to connect failed."""

    code: int
    """WebSocket close code; 1006 if the connection was lost or not opened, 1000 if an exchange was refused for good."""
    reason: str
    will_reconnect: bool
    retry_in_seconds: float | None = None
    """Seconds until the next attempt; None if there will be none."""
    cause: NetworkCause | None = None
    """Why the service could not be reached; None if the connection ended for another reason."""
    error: KeywayError | None = None
    """The error of the attempt to connect, if there is one. Its message says what to do."""


@dataclass(frozen=True)
class Gap:
    """The previous connection could not be resumed, so messages to it may be lost. The event `ready` of the new
    connection precedes this event."""

    connection_id: str
    previous_connection_id: str


@dataclass(frozen=True)
class Renewed:
    """The agent's token was renewed without a new connection."""

    expires_in: float
    """The lifetime of the new token in seconds."""


@dataclass(frozen=True)
class Stopped:
    """The agent has stopped, and no event follows. `error` is None after `close()`; otherwise its message says what to
    do."""

    error: KeywayError | None = None


@dataclass(frozen=True)
class Delivery:
    """The hub's acknowledgement of a message."""

    delivered: int
    """Number of open connections to which the message was written."""
    held: int = 0
    """Number of broken connections that get the message if they resume in time; not included in `delivered`."""


class Emitter:
    """The listeners of each event, called in the order of registration. A listener that raises stops neither the others
    nor the agent: its error goes to the event loop's exception handler. Coroutines run as tasks."""

    def __init__(self, events: frozenset[str]) -> None:
        self._events = events
        self._listeners: defaultdict[str, list[Callable[[Any], Any]]] = defaultdict(list)
        self._running: set[asyncio.Future[Any]] = set()

    def add(self, event: str, listener: Listener) -> Listener:
        if event not in self._events:
            raise ValueError(f'There is no event "{event}"; these exist: {", ".join(sorted(self._events))}.')
        self._listeners[event].append(listener)
        return listener

    def remove(self, event: str, listener: Callable[[Any], Any]) -> None:
        if listener in self._listeners[event]:
            self._listeners[event].remove(listener)

    def has(self, event: str) -> bool:
        return bool(self._listeners[event])

    def emit(self, event: str, content: object) -> None:
        for listener in list(self._listeners[event]):
            self.call(listener, content)

    def call(self, listener: Callable[[Any], Any], content: object) -> None:
        try:
            result = listener(content)
        except Exception as error:
            _report(error)
            return
        if inspect.isawaitable(result):
            task = asyncio.ensure_future(result)
            self._running.add(task)
            task.add_done_callback(self._on_listener_done)

    def _on_listener_done(self, task: asyncio.Future[Any]) -> None:
        self._running.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            _report(error)


def _report(error: BaseException) -> None:
    message = "keyway: a listener of an agent's event raised an error"
    asyncio.get_running_loop().call_exception_handler({"message": message, "exception": error})
