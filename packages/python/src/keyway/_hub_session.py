"""A logical connection to the hub, over the successive sockets that carry it (docs/hub-protocol.md, section 5)."""

from __future__ import annotations

from ._protocol import HUB_RESUME_PREFIX, Frame


class HubSession:
    """A connection and its resumptions: the token for the next one, and the number of the last message that arrived."""

    def __init__(self) -> None:
        self._token: str | None = None
        self._last_seq = 0
        self.connection_id = ""
        self.is_offered = False
        """Whether a handshake has presented the token, so that the hub may have resumed the connection with it."""

    def offer(self) -> tuple[str, ...]:
        """The subprotocols by which a handshake asks to resume the connection; empty if the hub gave no token."""
        if self._token is None:
            return ()
        self.is_offered = True
        return (f"{HUB_RESUME_PREFIX}{self._token}.{self._last_seq}",)

    @property
    def is_numbered(self) -> bool:
        """Whether the session can be resumed, so that messages in both directions have sequence numbers."""
        return self._token is not None

    def on_ready(self, frame: Frame) -> None:
        """Handles the frame `ready`, which contains a new token."""
        token = frame.get("resume_token")
        self._token = token if isinstance(token, str) else None
        self.is_offered = False
        self.connection_id = str(frame.get("connection_id", ""))

    def is_new(self, frame: Frame) -> bool:
        """Remembers the number of a message. False if it has already arrived over an earlier socket of this session."""
        seq = frame.get("seq")
        if not isinstance(seq, int):
            return True
        if seq <= self._last_seq:
            return False
        self._last_seq = seq
        return True
