"""The queue of messages that the hub has not acknowledged, in order."""

from __future__ import annotations

import asyncio

from ._clock import Cancel, Clock
from ._errors import KeywayError
from ._events import Delivery
from ._hub_connection import HubConnection, encode
from ._hub_session import HubSession
from ._protocol import HUB_MAX_FRAME_BYTES, Frame

MAX_MESSAGES = 256
MAX_BYTES = 1024 * 1024
MAX_IN_FLIGHT = 64
"""Maximum number of messages in flight, so that a full queue, which is sent again after a reconnection, does not exceed
the hub's rate limit."""
RATE_LIMIT_PAUSE_SECONDS = 1.0
"""Pause after the hub answered `rate_limited`."""
MAX_SEQ_BYTES = len(',"seq":9007199254740991')
"""Maximum size of the field `seq`, which a frame gets when it is sent."""


class _PendingSend:
    def __init__(self, frame: Frame, size: int) -> None:
        self.frame = frame
        self.size = size
        self.sent_on: HubConnection | None = None
        self.seq: int | None = None
        """The sequence number in the session in which the message was sent; None before that, after the end of that
        session, and where sends are not numbered."""
        self.result: asyncio.Future[Delivery] = asyncio.get_running_loop().create_future()


class PendingSends:
    """A queue of at most 256 messages and 1 MiB. Messages are numbered in each session, so that the hub accepts each
    once and in order, even after a resumption."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pending: dict[str, _PendingSend] = {}
        self._bytes = 0
        self._connection: HubConnection | None = None
        self._session: HubSession | None = None
        self._next_seq = 1
        self._cancel_pause: Cancel | None = None

    async def send(self, frame: Frame) -> Delivery:
        """Returns when the hub acknowledges the message. Cancelling the call removes the message from the queue, unless
        it was already sent."""
        pending = self._checked_send(frame)
        self._pending[frame["id"]] = pending
        self._bytes += pending.size
        self._flush()
        try:
            return await pending.result
        finally:
            if pending.seq is None:  # a numbered message stays: the hub accepts no later number before it
                self._remove(frame["id"])
                self._flush()

    def send_over(self, connection: HubConnection) -> None:
        """Sends over this connection from now on. If it resumes the hub session of the previous one, the sequence
        numbers continue, and unacknowledged messages are sent again; in a new hub session the numbers begin at 1."""
        resumed = connection.session is self._session
        self._connection, self._session = connection, connection.session
        if not resumed:
            self._next_seq = 1
        for pending in list(self._pending.values()):
            if resumed:
                pending.sent_on = None
            elif pending.sent_on is None:
                self._discard_seq(pending)
        self._flush()

    def connection_lost(self, connection: HubConnection) -> None:
        """Sends the unacknowledged messages of a lost connection again, since they may not have arrived."""
        if self._connection is connection:
            self._connection = None
        for pending in list(self._pending.values()):
            if pending.sent_on is connection:
                pending.sent_on = None
                if self._connection:
                    self._discard_seq(pending)
        self._flush()

    def postpone(self, connection: HubConnection, message_id: str) -> None:
        """Sends a message that the hub refused for now again after a pause; if sends are numbered, also all later ones,
        since the hub refuses a number after a gap."""
        pending = self._pending.get(message_id)
        if pending is None or pending.sent_on is not connection:
            return
        if pending.seq is None:
            pending.sent_on = None
        elif connection is self._connection:
            self._repeat_from(pending.seq)
        else:  # a connection that drains: the message goes to its successor
            pending.sent_on = None
            self._discard_seq(pending)
        if self._cancel_pause is None:
            self._cancel_pause = self._clock.after(RATE_LIMIT_PAUSE_SECONDS, self._end_pause)

    def acknowledge(self, message_id: str, delivery: Delivery) -> None:
        """Removes a message that the hub accepted, and lets its `send` return."""
        pending = self._remove(message_id)
        if pending and not pending.result.done():
            pending.result.set_result(delivery)
        self._flush()

    def reject(self, message_id: str, error: KeywayError) -> None:
        """Removes a message, and lets its `send` raise the error."""
        pending = self._remove(message_id)
        if pending and not pending.result.done():
            pending.result.set_exception(error)
        self._flush()

    def reject_all(self, error: KeywayError) -> None:
        """Rejects all queued messages, and stops sending."""
        if self._cancel_pause:
            self._cancel_pause()
        self._connection = None
        for message_id in list(self._pending):
            self.reject(message_id, error)

    def _checked_send(self, frame: Frame) -> _PendingSend:
        try:
            size = len(encode(frame).encode()) + MAX_SEQ_BYTES
        except (TypeError, ValueError, RecursionError) as cause:
            raise KeywayError("invalid_request", f"The data is not JSON: {cause}.") from cause
        if size > HUB_MAX_FRAME_BYTES:
            message = f"The frame has {size} bytes; the hub takes {HUB_MAX_FRAME_BYTES}. Split the data."
            raise KeywayError("too_large", message)
        if len(self._pending) >= MAX_MESSAGES or self._bytes + size > MAX_BYTES:
            queued = len(self._pending)
            message = f"{queued} messages wait for their acknowledgement. Await send() before sending more."
            raise KeywayError("queue_full", message, retryable=True)
        return _PendingSend(frame, size)

    def _end_pause(self) -> None:
        self._cancel_pause = None
        self._flush()

    def _flush(self) -> None:
        """Sends queued messages, as many as may be in flight. While messages are in flight over the previous
        connection, later ones wait until these are acknowledged or lost, since two nodes do not preserve their
        order."""
        connection = self._connection
        if connection is None or self._cancel_pause:
            return
        for in_flight, pending in enumerate(self._pending.values()):
            if in_flight >= MAX_IN_FLIGHT:
                return
            if pending.sent_on is connection:
                continue
            if pending.sent_on or not self._send(connection, pending):
                return

    def _send(self, connection: HubConnection, pending: _PendingSend) -> bool:
        if pending.seq is None and connection.session.is_numbered:
            pending.seq = self._next_seq
            self._next_seq += 1
        number = {} if pending.seq is None else {"seq": pending.seq}
        if not connection.send({**pending.frame, **number}):
            return False
        pending.sent_on = connection
        return True

    def _repeat_from(self, seq: int) -> None:
        for pending in self._pending.values():
            if pending.seq is not None and pending.seq >= seq and pending.sent_on is self._connection:
                pending.sent_on = None

    def _discard_seq(self, pending: _PendingSend) -> None:
        """Discards the sequence number, which belongs to a session that has ended; and the message, if its caller has
        cancelled it."""
        pending.seq = None
        if pending.result.cancelled():
            self._remove(pending.frame["id"])

    def _remove(self, message_id: str) -> _PendingSend | None:
        pending = self._pending.pop(message_id, None)
        if pending:
            self._bytes -= pending.size
        return pending
