"""One WebSocket to the hub, with detection of dead connections. It does not reconnect; the agent opens another."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any, Callable, Protocol

import websockets
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from ._clock import Cancel, Clock
from ._environment import USER_AGENT
from ._errors import KeywayError, error_from_network
from ._hub_session import HubSession
from ._protocol import HUB_BEARER_PREFIX, HUB_PROTOCOL, Frame

LONGEST_HEARTBEAT_SECONDS = 25.0
"""If nothing arrives for this long, or for the `heartbeat_seconds` of `ready` if these are fewer, the agent sends a
ping."""
SHORTEST_HEARTBEAT_SECONDS = 1.0
PONG_DEADLINE_SHARE = 0.4
"""If no frame follows a ping within this fraction of the heartbeat (10 s of 25 s), the connection counts as dead,
whatever TCP reports."""
CLOSE_SECONDS = 3.0
"""How long the hub may take to answer a close frame."""
ABNORMAL_CLOSURE = 1006
"""The close code of a connection that ended without a close frame (RFC 6455 section 7.1.5)."""


@dataclass(frozen=True)
class HubClosed:
    """The close code and reason of a connection; 1006 if there was no close frame."""

    code: int
    reason: str
    error: KeywayError | None = None
    """The error of the attempt to connect, if there is one."""


class ConnectionEvents(Protocol):
    """Callbacks of a connection. `on_closed` is called once, or never if `close` was called before the end."""

    def on_ready(self, connection: HubConnection, frame: Frame) -> None: ...

    def on_frame(self, connection: HubConnection, frame: Frame) -> None: ...

    def on_closed(self, connection: HubConnection, closed: HubClosed) -> None: ...


_LibraryConnect: Any = getattr(websockets, "connect")  # its type depends on the version of websockets


class _Connect(_LibraryConnect):  # type: ignore[misc]
    """Follows no redirect, since that would send the token to another address. The library has two implementations: the
    older one calls `handle_redirect`, the newer one `process_redirect`."""

    def handle_redirect(self, uri: str) -> None:
        raise InvalidHandshake("the hub redirects elsewhere")

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


class HubConnection:
    """Connects at once, and asks the hub to resume `session_to_resume`."""

    def __init__(
        self,
        *,
        url: str,
        token: str,
        clock: Clock,
        events: ConnectionEvents,
        session_to_resume: HubSession,
        ssl: Any = None,
    ) -> None:
        self._url = url
        self._clock = clock
        self._events = events
        self._subprotocols = [HUB_PROTOCOL, HUB_BEARER_PREFIX + token, *session_to_resume.offer()]
        self._session_to_resume = session_to_resume
        self.session = HubSession()
        """The session that a later connection may resume. Once this connection is ready, it is `session_to_resume` if
        the hub resumed that."""
        self._ssl = ssl
        self._socket: Any = None
        self._outgoing: asyncio.Queue[str] = asyncio.Queue()
        self._ended = False
        self._unanswered_pings = 0
        self._last_received_at = clock.now()
        self._heartbeat = LONGEST_HEARTBEAT_SECONDS
        self._cancel_silence_timer: Cancel = _no_timer
        self._reading = asyncio.ensure_future(self._run())
        self._closing: asyncio.Future[None] | None = None

    @property
    def is_open(self) -> bool:
        """Whether the handshake succeeded and the connection has not ended."""
        return self._socket is not None and not self._ended

    @property
    def awaits_pong(self) -> bool:
        """Whether a ping was sent that no pong has answered yet."""
        return self._unanswered_pings > 0

    def send(self, frame: Frame) -> bool:
        """Sends a frame; False if the connection is not open."""
        if not self.is_open:
            return False
        self._outgoing.put_nowait(encode(frame))
        if frame["type"] == "ping":
            self._unanswered_pings += 1
        return True

    def close(self) -> None:
        """Abandons the connection: no further events are reported. The close handshake goes on in the background."""
        if self._ended:
            return
        self._ended = True
        self._cancel_silence_timer()
        if self._socket is None:
            self._reading.cancel()
        else:
            self._closing = asyncio.ensure_future(self._close_socket())

    @property
    def has_ended(self) -> bool:
        """Whether all tasks of the connection have ended."""
        return self._reading.done() and (self._closing is None or self._closing.done())

    async def wait_closed(self) -> None:
        """Waits until all tasks of the connection have ended."""
        await asyncio.gather(self._reading, *([self._closing] if self._closing else []), return_exceptions=True)

    async def _run(self) -> None:
        try:
            self._socket = await self._open()
        except asyncio.CancelledError:
            return
        except Exception as error:
            self._end(_failed_to_open(error, self._url))
            return
        writing = asyncio.ensure_future(self._write())
        try:
            while True:
                self._receive(await self._socket.recv())
        except ConnectionClosed as closed:
            self._end(_to_hub_closed(closed))
        finally:
            writing.cancel()

    def _open(self) -> Any:
        # The library's pings are off, since the hub pings, and this class detects silence.
        options: dict[str, Any] = {"compression": None, "ping_interval": None, "open_timeout": None}
        options["subprotocols"] = self._subprotocols
        if self._ssl is not None:
            options["ssl"] = self._ssl
        return _Connect(
            self._url,
            user_agent_header=USER_AGENT,
            close_timeout=CLOSE_SECONDS,
            **options,
        )

    async def _write(self) -> None:
        try:
            while True:
                await self._socket.send(await self._outgoing.get())
        except ConnectionClosed:
            return  # `_run` reports that the connection is closed

    def _receive(self, data: object) -> None:
        if self._ended:
            return
        self._last_received_at = self._clock.now()
        frame = _parse(data)
        if frame is None:
            return
        if frame["type"] == "pong" and self._unanswered_pings > 0:
            self._unanswered_pings -= 1
        if frame["type"] == "ready":
            if frame.get("resumed") is True and self._session_to_resume.is_numbered:
                self.session = self._session_to_resume
            self.session.on_ready(frame)
            self._heartbeat = _heartbeat_seconds(frame.get("heartbeat_seconds"))
            self._watch_silence()
            self._events.on_ready(self, frame)
        else:
            self._events.on_frame(self, frame)

    def _watch_silence(self) -> None:
        silent_for = self._clock.now() - self._last_received_at
        self._cancel_silence_timer()
        self._cancel_silence_timer = self._clock.after(self._heartbeat - silent_for, self._check_silence)

    def _check_silence(self) -> None:
        if self._clock.now() - self._last_received_at < self._heartbeat:
            return self._watch_silence()
        last_received_at = self._last_received_at
        self.send({"type": "ping"})

        def check_answer() -> None:
            if self._last_received_at != last_received_at:
                return self._watch_silence()
            self._abort()
            self._end(HubClosed(ABNORMAL_CLOSURE, "no answer to a ping"))

        self._cancel_silence_timer = self._clock.after(self._heartbeat * PONG_DEADLINE_SHARE, check_answer)

    def _end(self, closed: HubClosed) -> None:
        if self._ended:
            return
        self._ended = True
        self._cancel_silence_timer()
        self._events.on_closed(self, closed)

    def _abort(self) -> None:
        """Closes the socket without a handshake, since a dead connection may take minutes to close."""
        transport = getattr(self._socket, "transport", None)
        if transport is not None:
            transport.abort()

    async def _close_socket(self) -> None:
        try:
            await asyncio.wait_for(self._socket.close(1000), CLOSE_SECONDS)
        except Exception:
            self._abort()


def encode(frame: Frame) -> str:
    """The JSON text of a frame. Raises `ValueError` or `TypeError` if a value cannot be written as JSON."""
    return json.dumps(frame, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _parse(data: object) -> Frame | None:
    """Parses a frame. Returns None if it is invalid or nested too deeply. A frame with an unknown type, which a later
    version of the hub may send, is valid; its receivers ignore it."""
    if not isinstance(data, str):
        return None
    try:
        frame = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return frame if isinstance(frame, dict) and isinstance(frame.get("type"), str) else None


def _heartbeat_seconds(announced: object) -> float:
    seconds = announced if isinstance(announced, (int, float)) else LONGEST_HEARTBEAT_SECONDS
    return max(SHORTEST_HEARTBEAT_SECONDS, min(float(seconds), LONGEST_HEARTBEAT_SECONDS))


def _to_hub_closed(closed: ConnectionClosed) -> HubClosed:
    frame = closed.rcvd
    return HubClosed(ABNORMAL_CLOSURE, "") if frame is None else HubClosed(int(frame.code), frame.reason)


def _failed_to_open(error: Exception, url: str) -> HubClosed:
    if isinstance(error, InvalidHandshake):
        return HubClosed(ABNORMAL_CLOSURE, f"the handshake was refused: {error}")
    why = error_from_network(error, url.removesuffix("/hub"))
    why.__cause__ = error
    return HubClosed(ABNORMAL_CLOSURE, why.code, why)


def _no_timer() -> None:
    """The cancel function while no timer runs."""
