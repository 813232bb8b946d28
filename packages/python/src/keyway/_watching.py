"""Which connections the owner has (docs/hub-protocol.md, "Presence")."""

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
    """A connection is ready; or, if it was there already, belongs to another key or its key has another name."""

    type: Literal["joined"]
    connection: AgentConnectionObject


class Left(TypedDict):
    """A connection is gone. `reason`: that of its close code, or `closed`, `lost`, `away`, `node_lost`."""

    type: Literal["left"]
    connection_id: str
    reason: str


PresenceEvent = Union[Presence, Joined, Left]


class Watching:
    """One watch at the hub for all iterators of an agent."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._streams: set[Stream[PresenceEvent]] = set()
        self._connections: dict[str, AgentConnectionObject] = {}
        self._on: HubConnection | None = None
        """The connection that sent `watch`; frames of others are ignored."""
        self._list: list[AgentConnectionObject] | None = []
        """The frames of an incomplete list; None after the last."""
        self._cancel_retry: Cancel | None = None

    def open(self, connection: HubConnection | None) -> Stream[PresenceEvent]:
        """Opens an iterator; `connection` is the agent's current one."""
        stream: Stream[PresenceEvent] = Stream(self._close, "changes")
        self._streams.add(stream)
        if connection and self._on is not connection:
            self.use(connection)
        elif connection and self._list is None:
            stream.push(self._all())
        return stream

    def use(self, connection: HubConnection) -> None:
        """Watches over this connection from now on, which starts with a new list."""
        self._forget()
        if self._streams:
            self._on, self._list = connection, []
            connection.send({"type": "watch", "id": WATCH_ID})

    def take(self, connection: HubConnection, frame: Frame) -> None:
        """The hub sent `presence`, `joined` or `left`."""
        if connection is not self._on:
            return
        if frame["type"] == "presence":
            self._take_list(frame["connections"], frame.get("more") is True)
        elif frame["type"] == "joined":
            joined: AgentConnectionObject = frame["connection"]
            self._connections[joined["connection_id"]] = joined
            self._push({"type": "joined", "connection": joined})
        else:
            self._connections.pop(frame["connection_id"], None)
            self._push({"type": "left", "connection_id": frame["connection_id"], "reason": frame["reason"]})

    def refused(self, connection: HubConnection, frame: Frame) -> bool:
        """Whether an error is about the watch: it ends all iterators, unless the hub only asks to wait."""
        if frame.get("id") != WATCH_ID:
            return False
        if connection is not self._on:
            return True
        code = frame.get("code")
        if code == "rate_limited":
            self._cancel_retry = self._clock.after(RATE_LIMIT_PAUSE_SECONDS, lambda: self.use(connection))
        else:
            known = "insufficient_scope" if code == "insufficient_scope" else "refused"
            self.end(KeywayError(known, str(frame.get("detail", ""))))
        return True

    def end(self, error: KeywayError | None) -> bool:
        """Ends all iterators, with the error if there is one. Returns whether there were any."""
        self._forget()
        streams, self._streams = self._streams, set()
        for stream in streams:
            stream.end(error)
        return bool(streams)

    def _take_list(self, connections: list[AgentConnectionObject], more: bool) -> None:
        self._list = [*(self._list or []), *connections]
        if more:
            return
        self._connections = {each["connection_id"]: each for each in self._list}
        self._list = None
        self._push(self._all())

    def _all(self) -> Presence:
        return {"type": "presence", "connections": list(self._connections.values())}

    def _push(self, event: PresenceEvent) -> None:
        for stream in list(self._streams):
            stream.push(event)

    def _close(self, stream: Stream[PresenceEvent]) -> None:
        self._streams.discard(stream)
        if not self._streams and self._on:
            self._on.send({"type": "unwatch"})
            self._forget()

    def _forget(self) -> None:
        if self._cancel_retry:
            self._cancel_retry()
        self._on = self._cancel_retry = None
