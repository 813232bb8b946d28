"""Preserves the order of messages while an agent moves to a new connection."""

from __future__ import annotations

from typing import Callable

from ._clock import Cancel, Clock
from ._hub_connection import HubConnection
from ._protocol import Frame

LONGEST_WAIT_SECONDS = 2.5
"""Longer than the hub itself waits for its other nodes."""


class Handover:
    """Messages on the old connection may arrive after later ones on the new connection; so the old one is pinged, and
    messages of the new one are buffered until its pong."""

    def __init__(self, clock: Clock, deliver: Callable[[HubConnection, Frame], None]) -> None:
        self._clock = clock
        self._deliver = deliver
        self._connections: tuple[HubConnection, HubConnection] | None = None
        self._waiting: list[Frame] = []
        self._cancel: Cancel | None = None

    def begin(self, old: HubConnection, new: HubConnection) -> None:
        """From here on messages of the new connection are buffered until those of the old one have arrived."""
        self.end()
        if old.send({"type": "ping"}):
            self._connections = (old, new)
            self._cancel = self._clock.after(LONGEST_WAIT_SECONDS, self.end)

    def arrived(self, connection: HubConnection, frame: Frame) -> None:
        """A message arrived over either connection."""
        if self._connections and self._connections[1] is connection:
            self._waiting.append(frame)
        else:
            self._deliver(connection, frame)

    def caught_up(self, connection: HubConnection) -> None:
        """Called when all messages of that connection have arrived: it answered the ping, or it is closed."""
        if self._connections and connection in self._connections:
            self.end()

    def end(self) -> None:
        """Delivers the buffered messages."""
        if self._cancel:
            self._cancel()
        connections, waiting = self._connections, self._waiting
        self._connections, self._waiting, self._cancel = None, [], None
        for frame in waiting:
            if connections:
                self._deliver(connections[1], frame)
