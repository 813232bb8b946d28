"""A logical connection to the hub, over the successive sockets that carry it (docs/hub-protocol.md, section 5)."""

from __future__ import annotations

from ._protocol import HUB_RESUME_PREFIX, Frame


class HubSession:
    """A connection and its resumptions: the token for the next resumption, and which messages have arrived."""

    def __init__(self) -> None:
        self._token: str | None = None
        self._last_seq = 0
        self.connection_id = ""
        self.is_offered = False
        """Whether the token was offered to the hub, which may have used it."""

    def offer(self) -> tuple[str, ...]:
        """The subprotocols by which a handshake asks to resume the connection; none if the hub cannot."""
        if self._token is None:
            return ()
        self.is_offered = True
        return (f"{HUB_RESUME_PREFIX}{self._token}.{self._last_seq}",)

    @property
    def is_numbered(self) -> bool:
        """Whether the hub numbers messages and sends."""
        return self._token is not None

    def ready(self, frame: Frame) -> None:
        """Handles `ready`, which brings a new token."""
        token = frame.get("resume_token")
        self._token = token if isinstance(token, str) else None
        self.is_offered = False
        self.connection_id = str(frame.get("connection_id", ""))

    def is_new(self, frame: Frame) -> bool:
        """False for a message that arrived over an earlier socket."""
        seq = frame.get("seq")
        if not isinstance(seq, int):
            return True
        if seq <= self._last_seq:
            return False
        self._last_seq = seq
        return True
