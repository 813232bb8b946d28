"""Preserves the order of messages while an agent moves to a new connection."""

from __future__ import annotations

from typing import Callable

from ._clock import Cancel, Clock
from ._hub_connection import HubConnection
from ._protocol import Frame

MAX_PONG_WAIT_SECONDS = 2.5
"""Maximum wait for the pong, which a draining node sends within 2 s, after the messages of other nodes."""


class Handover:
    """Messages on the old connection may arrive after later ones on the new connection; so the agent pings
    over the old connection, and buffers messages of the new one until the pong arrives."""

    def __init__(self, clock: Clock, deliver: Callable[[HubConnection, Frame], None]) -> None:
        self._clock = clock
        self._deliver = deliver
        self._connections: tuple[HubConnection, HubConnection] | None = None
        self._buffered: list[Frame] = []
        self._cancel: Cancel | None = None

    def begin(self, old: HubConnection, new: HubConnection) -> None:
        """Buffers messages of the new connection from now on, until those of the old one have arrived."""
        self.end()
        if old.send({"type": "ping"}):
            self._connections = (old, new)
            self._cancel = self._clock.after(MAX_PONG_WAIT_SECONDS, self.end)

    def receive(self, connection: HubConnection, frame: Frame) -> None:
        """Delivers a message, or buffers it until those of the old connection have arrived."""
        if self._connections and self._connections[1] is connection:
            self._buffered.append(frame)
        else:
            self._deliver(connection, frame)

    def pong_arrived(self, connection: HubConnection) -> None:
        """Delivers the buffered messages if the old connection has answered the handover's ping, its last one."""
        if self._connections and connection is self._connections[0] and not connection.awaits_pong:
            self.end()

    def closed(self, connection: HubConnection) -> None:
        """Delivers the buffered messages if one of the two connections was closed."""
        if self._connections and connection in self._connections:
            self.end()

    def end(self) -> None:
        """Ends the handover if there is one, and delivers the messages that it buffered."""
        if self._cancel:
            self._cancel()
        connections, buffered = self._connections, self._buffered
        self._connections, self._buffered, self._cancel = None, [], None
        for frame in buffered:
            if connections:
                self._deliver(connections[1], frame)
