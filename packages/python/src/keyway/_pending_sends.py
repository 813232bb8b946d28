"""The queue of messages that the hub has not acknowledged, in order."""

from __future__ import annotations

import asyncio

from ._clock import Cancel, Clock
from ._errors import KeywayError
from ._events import Delivery
from ._hub_connection import HubConnection, encoded
from ._lineage import Lineage
from ._protocol import HUB_MAX_FRAME_BYTES, Frame

MAX_MESSAGES = 256
MAX_BYTES = 1024 * 1024
WINDOW = 64
"""Maximum number in flight: resending a full queue after a reconnection must not exceed the hub's frame limit."""
RATE_LIMIT_PAUSE_SECONDS = 1.0
"""Pause after the hub answered `rate_limited`."""
SEQ_BYTES = len(',"seq":9007199254740991')


class _Pending:
    def __init__(self, frame: Frame, size: int) -> None:
        self.frame = frame
        self.size = size
        self.sent_on: HubConnection | None = None
        self.seq: int | None = None
        """Its sequence number in the connection on which it was sent first, and in those that resumed it."""
        self.result: asyncio.Future[Delivery] = asyncio.get_running_loop().create_future()


class PendingSends:
    """At most 256 messages or 1 MiB. Sends are numbered for each connection, so that the hub accepts them once and in
    order, also after a resumption."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._pending: dict[str, _Pending] = {}
        self._bytes = 0
        self._connection: HubConnection | None = None
        self._lineage: Lineage | None = None
        self._next_seq = 1
        self._cancel_pause: Cancel | None = None

    async def send(self, frame: Frame) -> Delivery:
        """Returns when the hub acknowledges it. Cancelling the call takes the message out of the queue, unless it was
        sent before."""
        pending = self._checked(frame)
        self._pending[frame["id"]] = pending
        self._bytes += pending.size
        self._flush()
        try:
            return await pending.result
        finally:
            if pending.seq is None:  # a number that was used must be accepted before the next one
                self._take(frame["id"])
                self._flush()

    def use(self, connection: HubConnection) -> None:
        """Sends over this connection from now on. One that resumes another continues its numbers, and everything
        unacknowledged is sent again; in a new one they begin at 1."""
        resumed = connection.lineage is self._lineage
        self._connection, self._lineage = connection, connection.lineage
        if not resumed:
            self._next_seq = 1
        for pending in list(self._pending.values()):
            if resumed:
                pending.sent_on = None
            elif pending.sent_on is None:
                self._renumber(pending)
        self._flush()

    def lost(self, connection: HubConnection) -> None:
        """The connection was lost: its unacknowledged messages may or may not have arrived, and are sent again."""
        if self._connection is connection:
            self._connection = None
        for pending in list(self._pending.values()):
            if pending.sent_on is connection:
                pending.sent_on = None
                if self._connection:
                    self._renumber(pending)
        self._flush()

    def postpone(self, connection: HubConnection, message_id: str) -> None:
        """The hub refused this message for now: it and all later ones are sent again after a pause."""
        pending = self._pending.get(message_id)
        if pending is None or pending.sent_on is not connection:
            return
        if pending.seq is None:
            pending.sent_on = None
        elif connection is self._connection:
            self._repeat_from(pending.seq)
        else:  # a connection that drains: the message goes to its successor
            pending.sent_on = None
            self._renumber(pending)
        if self._cancel_pause is None:
            self._cancel_pause = self._clock.after(RATE_LIMIT_PAUSE_SECONDS, self._end_pause)

    def acknowledge(self, message_id: str, delivery: Delivery) -> None:
        """The hub accepted the message."""
        pending = self._take(message_id)
        if pending and not pending.result.done():
            pending.result.set_result(delivery)
        self._flush()

    def refuse(self, message_id: str, error: KeywayError) -> None:
        """The message will not be sent again."""
        pending = self._take(message_id)
        if pending and not pending.result.done():
            pending.result.set_exception(error)
        self._flush()

    def refuse_all(self, error: KeywayError) -> None:
        """Rejects everything in the queue; nothing will be sent any more."""
        if self._cancel_pause:
            self._cancel_pause()
        self._connection = None
        for message_id in list(self._pending):
            self.refuse(message_id, error)

    def _checked(self, frame: Frame) -> _Pending:
        try:
            size = len(encoded(frame).encode()) + SEQ_BYTES
        except (TypeError, ValueError, RecursionError) as cause:
            raise KeywayError("invalid_request", f"The data is not JSON: {cause}.") from cause
        if size > HUB_MAX_FRAME_BYTES:
            message = f"The frame has {size} bytes; the hub takes {HUB_MAX_FRAME_BYTES}. Split the data."
            raise KeywayError("too_large", message)
        if len(self._pending) >= MAX_MESSAGES or self._bytes + size > MAX_BYTES:
            waiting = len(self._pending)
            message = f"{waiting} messages wait for their acknowledgement. Await send() before sending more."
            raise KeywayError("queue_full", message, retryable=True)
        return _Pending(frame, size)

    def _end_pause(self) -> None:
        self._cancel_pause = None
        self._flush()

    def _flush(self) -> None:
        """Sends as far as the window allows. Messages in flight on the previous connection block later ones until they
        are acknowledged or lost, since order is not preserved across two nodes."""
        connection = self._connection
        if connection is None or self._cancel_pause:
            return
        for under_way, pending in enumerate(self._pending.values()):
            if under_way >= WINDOW:
                return
            if pending.sent_on is connection:
                continue
            if pending.sent_on or not self._send(connection, pending):
                return

    def _send(self, connection: HubConnection, pending: _Pending) -> bool:
        if pending.seq is None and connection.lineage.is_numbered:
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

    def _renumber(self, pending: _Pending) -> None:
        """Whether the message need not be sent: its sequence number belongs to a connection that has ended, or its
        caller has cancelled it."""
        pending.seq = None
        if pending.result.cancelled():
            self._take(pending.frame["id"])

    def _take(self, message_id: str) -> _Pending | None:
        pending = self._pending.pop(message_id, None)
        if pending:
            self._bytes -= pending.size
        return pending
