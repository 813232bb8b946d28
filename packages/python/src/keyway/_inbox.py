"""Received messages, without duplicates, for all iterators."""

from __future__ import annotations

from collections import OrderedDict

from ._errors import KeywayError
from ._events import Message
from ._hub_session import HubSession
from ._protocol import Frame
from ._stream import Stream

MAX_RECENT_IDS = 1024
"""Maximum number of remembered ids: more than arrive while two connections overlap."""


class Inbox:
    """Drops messages that have already arrived over the other of two overlapping connections. Messages with the same id
    over one connection, resumed or not, are all delivered, so a sender that reuses ids loses none."""

    def __init__(self) -> None:
        self._seen: OrderedDict[str, HubSession] = OrderedDict()
        self._streams: set[Stream[Message]] = set()

    def is_new(self, session: HubSession, frame: Frame) -> bool:
        """Remembers a message. False if it has already arrived over the other of two overlapping connections."""
        identity = f"{frame.get('from')} {frame.get('id')}"
        first_session = self._seen.setdefault(identity, session)
        if len(self._seen) > MAX_RECENT_IDS:
            self._seen.popitem(last=False)
        return first_session is session

    def deliver(self, frame: Frame) -> Message:
        """Passes the message of a frame to all iterators."""
        message = Message(
            id=str(frame.get("id")),
            from_=str(frame.get("from")),
            from_key_id=frame.get("from_key_id"),
            data=frame.get("data"),
            reply_to=frame.get("reply_to"),
        )
        for stream in list(self._streams):
            stream.push(message)
        return message

    def open(self) -> Stream[Message]:
        """A new iterator over all messages from now on."""
        stream: Stream[Message] = Stream(self._streams.discard, "messages")
        self._streams.add(stream)
        return stream

    def end(self, error: KeywayError | None) -> bool:
        """Ends all iterators, with the error if there is one. Returns whether there were any."""
        streams, self._streams = self._streams, set()
        for stream in streams:
            stream.end(error)
        return bool(streams)
