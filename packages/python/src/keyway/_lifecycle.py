"""The connections of one agent: from the first attempt, through renewals, moves and reconnections, to the stop."""

from __future__ import annotations

import asyncio
import logging
import secrets
from typing import Any

from ._backoff import RESTART_JITTER_SECONDS, Retries
from ._clock import Cancel, Clock
from ._dial import Dial
from ._errors import KeywayError
from ._events import Delivery, Disconnected, Emitter, Gap, Ready, Renewed, Stopped
from ._handover import Handover
from ._hub_connection import ABNORMAL_CLOSURE, HubClosed, HubConnection
from ._inbox import Inbox
from ._hub_session import HubSession
from ._pending_sends import PendingSends
from ._protocol import Frame, Json, reconnect_after
from ._renewal import Renewal
from ._requests import Requests
from ._responder import Responder
from ._stop_reasons import is_final, stop_error_from_close, stop_error_from_exchange
from ._token_source import TokenSource
from ._watching import Watching

DRAIN_MARGIN_SECONDS = 5.0
"""If the node has not closed a draining connection this long after the announced time, the agent closes it."""
MAX_CLOSE_IN_SECONDS = 60.0
"""Upper bound of the time until the close, whatever the node announces."""
RESUMED_ELSEWHERE = 4409
"""Close code of a socket whose connection was resumed over another socket."""

_LOG = logging.getLogger("keyway")


class _LiveConnection:
    def __init__(self, connection: HubConnection, renewal: Renewal, ready_since: float, ready: Ready) -> None:
        self.connection = connection
        self.renewal = renewal
        self.ready_since = ready_since
        self.ready = ready


class Lifecycle:
    """Connects when `dial` is called, and stays connected until `stop` or a permanent refusal."""

    def __init__(self, *, hub_url: str, tokens: TokenSource, clock: Clock, emitter: Emitter, ssl: Any) -> None:
        self._hub_url = hub_url
        self._tokens = tokens
        self._clock = clock
        self._emitter = emitter
        self._ssl = ssl
        self.sends = PendingSends(clock)
        self.inbox = Inbox()
        self.watching = Watching(clock)
        self.requests = Requests(lambda message_id, to, data: self.send(message_id, to, data))
        self.responder = Responder(lambda to, answer, reply_to: self.send(self.new_id(), to, answer, reply_to))
        self.stopped: Stopped | None = None
        self.ended = asyncio.Event()
        self._handover = Handover(clock, self._handle_message)
        self._retries = Retries()
        self._id_prefix = secrets.token_hex(16)
        self._id_counter = 0
        self._current: _LiveConnection | None = None
        self._latest_session = HubSession()
        self._drained: dict[HubConnection, Cancel] = {}
        self._connections: set[HubConnection] = set()
        self._dialing: Dial | None = None
        self._cancel_wait: Cancel | None = None

    @property
    def ready(self) -> Ready | None:
        """The event `ready` of the connection in use; None while there is none."""
        return self._current.ready if self._current else None

    @property
    def connection(self) -> HubConnection | None:
        return self._current.connection if self._current else None

    def dial(self) -> None:
        """Starts an attempt to connect, unless one is in progress or the agent has stopped."""
        if self.stopped or self._dialing:
            return
        self._dialing = Dial(
            tokens=self._tokens, clock=self._clock, connect=self._connect, on_failed=self._dial_failed
        )

    def new_id(self) -> str:
        """The id of a message, unique among all agents."""
        self._id_counter += 1
        return f"{self._id_prefix}-{self._id_counter}"

    async def send(self, message_id: str, to: str, data: Json, reply_to: str | None = None) -> Delivery:
        """Returns when the hub acknowledges the message."""
        if self.stopped:
            raise self.stopped.error or _closed_error()
        reply_fields = {} if reply_to is None else {"reply_to": reply_to}
        return await self.sends.send({"type": "send", "id": message_id, "to": to, "data": data, **reply_fields})

    def stop(self, error: KeywayError | None) -> None:
        """Stops the agent; only the first call has an effect."""
        if self.stopped:
            return
        self._handover.end()
        self.stopped = Stopped(error)
        if self._cancel_wait:
            self._cancel_wait()
        self._tokens.stop()
        self._end_connections()
        self.responder.stop()
        self.requests.reject_all(error or _closed_error())
        self.sends.reject_all(error or _closed_error())
        had_iterators = self.inbox.end(error)
        had_iterators = self.watching.end(error) or had_iterators
        if error and not had_iterators and not self._emitter.has("stopped"):
            # Without a listener the reason would be lost, and the stop would look like a bug of the program.
            _LOG.error("The agent stopped. %s", error.message)
        self._emitter.emit("stopped", self.stopped)
        self.ended.set()

    async def wait_closed(self) -> None:
        """Waits for the close handshakes."""
        await asyncio.gather(*(connection.wait_closed() for connection in self._connections))

    def on_ready(self, connection: HubConnection, frame: Frame) -> None:
        """Handles the frame `ready`: the connection becomes the one in use."""
        if self._dialing:
            self._dialing.succeeded()
        self._dialing = None
        if self._cancel_wait:
            self._cancel_wait()
        if self._current:
            self._current.renewal.stop()
            if connection.session is not self._latest_session:
                self._handover.begin(self._current.connection, connection)
        resumed = connection.session is self._latest_session
        previous, self._latest_session = self._latest_session, connection.session
        renewal = self._renewal_of(connection)
        ready = _ready_event(frame, resumed)
        self._current = _LiveConnection(connection, renewal, self._clock.now(), ready)
        renewal.schedule(frame.get("expires_in"))
        self.sends.send_over(connection)
        self.watching.watch_over(connection)
        self._emitter.emit("ready", ready)
        if not resumed and previous.connection_id:
            self._emitter.emit("gap", Gap(ready.connection_id, previous.connection_id))

    def on_frame(self, connection: HubConnection, frame: Frame) -> None:
        """Handles a frame other than `ready`."""
        kind = frame["type"]
        if kind == "message":
            if connection.session.is_new(frame):
                self._handover.receive(connection, frame)
        elif kind == "pong":
            self._handover.pong_arrived(connection)
        elif kind == "sent":
            delivery = Delivery(int(frame.get("delivered", 0)), int(frame.get("held", 0)))
            self.sends.acknowledge(str(frame.get("id")), delivery)
        elif kind == "error":
            self._handle_error(connection, frame)
        elif kind == "draining":
            self._drain(connection, frame.get("close_in_seconds"))
        elif kind in ("presence", "joined", "left"):
            self.watching.receive(connection, frame)
        elif self._current and self._current.connection is connection:
            self._handle_token_frame(self._current.renewal, kind, frame)

    def on_closed(self, connection: HubConnection, closed: HubClosed) -> None:
        """Handles the end of a connection that the hub closed or that failed."""
        if self.stopped:
            return
        self._drained.pop(connection, _no_timer)()
        self._handover.closed(connection)
        self.sends.connection_lost(connection)
        if self._dialing and self._dialing.connection is connection:
            self._dialing.fail(closed)
        elif self._current and self._current.connection is connection:
            self._current.renewal.stop()
            if closed.code == RESUMED_ELSEWHERE and connection.session.is_offered:
                if self._dialing:
                    self._current = None  # the attempt in progress resumed it, and its `ready` follows
                    return
                closed = HubClosed(ABNORMAL_CLOSURE, closed.reason)  # an attempt that was given up resumed it
            self._retries.connection_ended(self._clock.now() - self._current.ready_since)
            self._current = None
            self._reconnect_or_stop(closed)
        elif reconnect_after(closed.code) == "never" and closed.code != RESUMED_ELSEWHERE:
            self.stop(stop_error_from_close(closed.code, closed.reason))

    def _connect(self, token: str) -> HubConnection:
        connection = HubConnection(
            url=self._hub_url,
            token=token,
            clock=self._clock,
            events=self,
            session_to_resume=self._latest_session,
            ssl=self._ssl,
        )
        self._connections = {each for each in self._connections if not each.has_ended} | {connection}
        return connection

    def _dial_failed(self, why: HubClosed | BaseException) -> None:
        self._dialing = None
        self._reconnect_or_stop(why)

    def _renewal_of(self, connection: HubConnection) -> Renewal:
        return Renewal(
            tokens=self._tokens,
            clock=self._clock,
            present=lambda token: connection.send({"type": "token", "token": token}),
            stop_if_final=self._stop_if_final,
        )

    def _handle_token_frame(self, renewal: Renewal, kind: str, frame: Frame) -> None:
        if kind == "token_expiring":
            renewal.expiring()
        elif kind == "token_accepted":
            renewal.accepted(frame.get("expires_in"))
            self._emitter.emit("renewed", Renewed(frame.get("expires_in", 0)))

    def _handle_message(self, connection: HubConnection, frame: Frame) -> None:
        if not self.inbox.is_new(connection.session, frame):
            return
        if not self.requests.handle_answer(frame) and not self.responder.handle_request(frame):
            self._emitter.emit("message", self.inbox.deliver(frame))

    def _handle_error(self, connection: HubConnection, frame: Frame) -> None:
        if self.watching.handle_error(connection, frame):
            return
        message_id, code, detail = frame.get("id"), str(frame.get("code")), str(frame.get("detail", ""))
        if message_id is not None and code in ("rate_limited", "out_of_order"):
            self.sends.postpone(connection, message_id)
        elif message_id is not None:
            is_malformed = code in ("unknown_type", "invalid_frame")
            self.sends.reject(message_id, KeywayError("refused" if is_malformed else code, detail))
        elif self._current and self._current.connection is connection and code != "unknown_type":
            self._current.renewal.refused()

    def _drain(self, connection: HubConnection, close_in_seconds: object) -> None:
        """Make before break: the old connection stays in use until its successor is ready."""
        if not self._current or self._current.connection is not connection or connection in self._drained:
            return
        announced = close_in_seconds if isinstance(close_in_seconds, (int, float)) else 0.0
        closes_in = max(0.0, min(announced, MAX_CLOSE_IN_SECONDS))

        def give_up() -> None:
            connection.close()
            self.on_closed(connection, HubClosed(1012, "restarting"))

        self._drained[connection] = self._clock.after(closes_in + DRAIN_MARGIN_SECONDS, give_up)
        self._dial_after(self._clock.random() * min(RESTART_JITTER_SECONDS, closes_in / 2))

    def _reconnect_or_stop(self, why: HubClosed | BaseException) -> None:
        """Schedules the next attempt, or stops the agent. Emits `disconnected` unless a connection is in use."""
        if self._stop_if_final(why):
            return
        closed = why if isinstance(why, HubClosed) else _closed_by_error(why)
        reconnect = reconnect_after(closed.code)
        if reconnect == "never":
            self._emit_disconnected(Disconnected(closed.code, closed.reason, will_reconnect=False))
            self.stop(stop_error_from_close(closed.code, closed.reason))
            return
        if reconnect == "exchange":
            self._tokens.forget()
        wait = self._retries.next(reconnect, closed.error, self._clock.random())
        # If an attempt is in progress by then (to replace a drained connection), `dial` starts no second one.
        self._dial_after(wait)
        cause = closed.error.network_cause if closed.error else None
        self._emit_disconnected(
            Disconnected(closed.code, closed.reason, True, retry_in_seconds=wait, cause=cause, error=closed.error)
        )

    def _dial_after(self, seconds: float) -> None:
        if self._cancel_wait:
            self._cancel_wait()
        self._cancel_wait = self._clock.after(seconds, self.dial)

    def _emit_disconnected(self, event: Disconnected) -> None:
        if not self._current:
            self._emitter.emit("disconnected", event)

    def _stop_if_final(self, error: object) -> bool:
        if not isinstance(error, KeywayError) or not is_final(error):
            return False
        stop_error = stop_error_from_exchange(error)
        self._end_connections()
        self._emit_disconnected(Disconnected(1000, stop_error.code, will_reconnect=False, error=stop_error))
        self.stop(stop_error)
        return True

    def _end_connections(self) -> None:
        if self._dialing:
            self._dialing.give_up()
        self._dialing = None
        for connection, cancel_timer in self._drained.items():
            cancel_timer()
            connection.close()
        self._drained.clear()
        if self._current:
            self._current.renewal.stop()
            self._current.connection.close()
        self._current = None


def _closed_error() -> KeywayError:
    return KeywayError("closed", "The agent was closed before the hub acknowledged this message.")


def _ready_event(frame: Frame, resumed: bool) -> Ready:
    return Ready(
        connection_id=frame.get("connection_id", ""),
        agent_id=frame.get("agent_id", ""),
        key_id=frame.get("key_id", ""),
        key_name=frame.get("key_name"),
        scopes=frame.get("scopes", []),
        expires_in=frame.get("expires_in", 0),
        resumed=resumed,
    )


def _closed_by_error(why: BaseException) -> HubClosed:
    if isinstance(why, KeywayError):
        return HubClosed(ABNORMAL_CLOSURE, why.code, why)
    return HubClosed(ABNORMAL_CLOSURE, str(why))


def _no_timer() -> None:
    """The cancel function while no timer runs."""
