"""Watches the owner's connections (docs/hub-protocol.md, "Presence")."""

from __future__ import annotations

from typing import List, Literal, TypedDict, Union

from ._clock import Cancel, Clock
from ._errors import KeywayError
from ._hub_connection import HubConnection
from ._protocol import Frame
from ._stream import Stream
from .objects import AgentConnectionObject

WATCH_ID = "watch"
"""The id of `watch` frames, by which their errors are recognised."""
RATE_LIMIT_PAUSE_SECONDS = 10.0


class Presence(TypedDict):
    """All connections of the owner."""

    type: Literal["presence"]
    connections: List[AgentConnectionObject]


class Joined(TypedDict):
    """A connection is ready; or, if it was already listed, its agent now uses another key or its key has a new name."""

    type: Literal["joined"]
    connection: AgentConnectionObject


class Left(TypedDict):
    """A connection ended. `reason` is that of its close code, or `closed`, `lost`, `away` or `node_lost`."""

    type: Literal["left"]
    connection_id: str
    reason: str


PresenceEvent = Union[Presence, Joined, Left]


class Watching:
    """The agent's watch of the owner's connections: one at the hub for all of its iterators."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._streams: set[Stream[PresenceEvent]] = set()
        self._connections: dict[str, AgentConnectionObject] = {}
        self._watched_over: HubConnection | None = None
        """The connection that sent `watch`; frames of others are ignored."""
        self._partial_list: list[AgentConnectionObject] | None = []
        """The connections received so far of a list in several frames; None once it is complete."""
        self._cancel_retry: Cancel | None = None

    def open(self, connection: HubConnection | None) -> Stream[PresenceEvent]:
        """Opens an iterator; `connection` is the agent's current one."""
        stream: Stream[PresenceEvent] = Stream(self._close, "changes")
        self._streams.add(stream)
        if connection and self._watched_over is not connection:
            self.watch_over(connection)
        elif connection and self._partial_list is None:
            stream.push(self._full_list())
        return stream

    def watch_over(self, connection: HubConnection) -> None:
        """Moves the watch to this connection, over which the hub then sends a new list; ends it if there are no
        iterators."""
        self._stop_watching()
        if self._streams:
            self._watched_over, self._partial_list = connection, []
            connection.send({"type": "watch", "id": WATCH_ID})

    def receive(self, connection: HubConnection, frame: Frame) -> None:
        """Handles the frames `presence`, `joined` and `left`."""
        if connection is not self._watched_over:
            return
        if frame["type"] == "presence":
            self._receive_list(frame["connections"], frame.get("more") is True)
        elif frame["type"] == "joined":
            joined: AgentConnectionObject = frame["connection"]
            self._connections[joined["connection_id"]] = joined
            self._push({"type": "joined", "connection": joined})
        else:
            self._connections.pop(frame["connection_id"], None)
            self._push({"type": "left", "connection_id": frame["connection_id"], "reason": frame["reason"]})

    def handle_error(self, connection: HubConnection, frame: Frame) -> bool:
        """Returns whether the error is about a watch. If it is about the current watch, ends all iterators or, if
        that was rate limited, watches again after a pause."""
        if frame.get("id") != WATCH_ID:
            return False
        if connection is not self._watched_over:
            return True
        code = frame.get("code")
        if code == "rate_limited":
            self._cancel_retry = self._clock.after(RATE_LIMIT_PAUSE_SECONDS, lambda: self.watch_over(connection))
        else:
            error_code = "insufficient_scope" if code == "insufficient_scope" else "refused"
            self.end(KeywayError(error_code, str(frame.get("detail", ""))))
        return True

    def end(self, error: KeywayError | None) -> bool:
        """Ends all iterators, with the error if there is one. Returns whether there were any."""
        self._stop_watching()
        streams, self._streams = self._streams, set()
        for stream in streams:
            stream.end(error)
        return bool(streams)

    def _receive_list(self, connections: list[AgentConnectionObject], more: bool) -> None:
        self._partial_list = [*(self._partial_list or []), *connections]
        if more:
            return
        self._connections = {each["connection_id"]: each for each in self._partial_list}
        self._partial_list = None
        self._push(self._full_list())

    def _full_list(self) -> Presence:
        return {"type": "presence", "connections": list(self._connections.values())}

    def _push(self, event: PresenceEvent) -> None:
        for stream in list(self._streams):
            stream.push(event)

    def _close(self, stream: Stream[PresenceEvent]) -> None:
        self._streams.discard(stream)
        if not self._streams and self._watched_over:
            self._watched_over.send({"type": "unwatch"})
            self._stop_watching()

    def _stop_watching(self) -> None:
        if self._cancel_retry:
            self._cancel_retry()
        self._watched_over = self._cancel_retry = None
