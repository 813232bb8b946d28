"""The account's sessions."""

from __future__ import annotations

from typing import cast

from .._transport import Transport, segment
from ..objects import Page, SessionObject


class SessionCalls:
    """The account's sessions. All calls need a session, or a key without scopes."""

    def __init__(self, transport: Transport) -> None:
        self._call = transport.call

    async def list(self, *, limit: int | None = None, cursor: str | None = None) -> Page[SessionObject]:
        """One page, newest first, `limit` from 1 to 100 (default 50)."""
        answer = await self._call("GET", "/v1/sessions", query={"limit": limit, "cursor": cursor})
        return cast("Page[SessionObject]", answer)

    async def revoke(self, session_id: str) -> None:
        """Ends one session."""
        await self._call("DELETE", f"/v1/sessions/{segment(session_id)}")

    async def revoke_others(self) -> None:
        """Ends all sessions but the calling one; all of them if called with a key."""
        await self._call("DELETE", "/v1/sessions")
