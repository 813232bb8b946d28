"""The caller's live connections, on all nodes."""

from __future__ import annotations

from typing import AsyncIterator, cast

from .._events import Delivery
from .._protocol import Json
from .._transport import Transport, segment
from ..objects import AgentConnectionObject, Page
from ._paging import every_item


class AgentCalls:
    """Lists connections, sends messages to them, and closes them."""

    def __init__(self, transport: Transport) -> None:
        self._call = transport.call

    async def list(self, *, limit: int | None = None, cursor: str | None = None) -> Page[AgentConnectionObject]:
        """One page, `limit` from 1 to 100 (default 50)."""
        answer = await self._call("GET", "/v1/agents", query={"limit": limit, "cursor": cursor})
        return cast("Page[AgentConnectionObject]", answer)

    def all(self, *, limit: int | None = None) -> AsyncIterator[AgentConnectionObject]:
        """All connections, over all pages."""
        return every_item(lambda cursor: self.list(limit=limit, cursor=cursor))

    async def send(self, connection_or_key_id: str, data: Json) -> Delivery:
        """Sends to one connection, or to all of a key. Not retried: the message could arrive twice.

        :raises KeywayError: `not_found` when there is no such connection, neither an open one nor a broken one that can
            resume
        """
        path = f"/v1/agents/{segment(connection_or_key_id)}/messages"
        answer = await self._call("POST", path, body={"data": data})
        return Delivery(answer["delivered"], answer.get("held", 0))

    async def disconnect(self, connection_id: str) -> None:
        """Closes a connection; its agent may reconnect while its key is active."""
        await self._call("DELETE", f"/v1/agents/{segment(connection_id)}")
