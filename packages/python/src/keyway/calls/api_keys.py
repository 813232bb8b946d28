"""API keys."""

from __future__ import annotations

from typing import AsyncIterator, Dict, List, Literal, cast

from .._protocol import Json
from .._transport import Transport, segment
from ..objects import ApiKeyObject, CreatedApiKey, Page, UsageAnswer, WantedKeyLimits
from ._omitted import OMITTED, Omitted, without_omitted, without_none
from ._paging import every_item
from ._usage import Bucket, usage_query

KeyStatus = Literal["active", "expired", "revoked"]
Metadata = Dict[str, Json]
"""JSON of your own, at most 16 KiB."""


class ApiKeyCalls:
    """Creating and rotating keys needs a session. A key with `keys:read` may read keys, and one with `keys:write` may
    change and revoke them, but only narrow their networks and tighten their limits."""

    def __init__(self, transport: Transport) -> None:
        self._call = transport.call

    async def create(
        self,
        *,
        name: str | None = None,
        scopes: List[str] | None = None,
        expires_at: str | None = None,
        app_id: str | None = None,
        allowed_networks: List[str] | None = None,
        external_id: str | None = None,
        metadata: Metadata | None = None,
        limits: WantedKeyLimits | None = None,
    ) -> CreatedApiKey:
        """Creates a key. Only this answer contains the key itself. Not retried: a retry could create a second key.

        :param scopes: if omitted or empty, the key may do everything that its owner may do with a key
        :param expires_at: RFC 3339 with a zone. If omitted, the key never expires
        :param allowed_networks: CIDRs. If omitted or empty, the key may be used from any address
        :param external_id: an id of your own, for example of a customer, at most 128 characters
        """
        body = without_none(
            name=name,
            scopes=scopes,
            expires_at=expires_at,
            app_id=app_id,
            allowed_networks=allowed_networks,
            external_id=external_id,
            metadata=metadata,
            limits=limits,
        )
        return cast(CreatedApiKey, await self._call("POST", "/v1/api-keys", body=body))

    async def list(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        status: KeyStatus | None = None,
        external_id: str | None = None,
    ) -> Page[ApiKeyObject]:
        """One page, newest first, `limit` from 1 to 100 (default 50)."""
        query = {"limit": limit, "cursor": cursor, "status": status, "external_id": external_id}
        return cast("Page[ApiKeyObject]", await self._call("GET", "/v1/api-keys", query=query))

    def all(
        self, *, limit: int | None = None, status: KeyStatus | None = None, external_id: str | None = None
    ) -> AsyncIterator[ApiKeyObject]:
        """All keys, newest first, over all pages."""
        return every_item(
            lambda cursor: self.list(limit=limit, cursor=cursor, status=status, external_id=external_id)
        )

    async def get(self, key_id: str) -> ApiKeyObject:
        """One key, without its secret."""
        return cast(ApiKeyObject, await self._call("GET", f"/v1/api-keys/{segment(key_id)}"))

    async def update(
        self,
        key_id: str,
        *,
        name: str | Omitted = OMITTED,
        allowed_networks: List[str] | Omitted = OMITTED,
        external_id: str | None | Omitted = OMITTED,
        metadata: Metadata | None | Omitted = OMITTED,
        limits: WantedKeyLimits | None | Omitted = OMITTED,
    ) -> ApiKeyObject:
        """Changes the fields that are passed. An empty name and None remove the old value; `metadata` and `limits` are
        replaced as a whole."""
        body = without_omitted(
            name=name,
            allowed_networks=allowed_networks,
            external_id=external_id,
            metadata=metadata,
            limits=limits,
        )
        return cast(ApiKeyObject, await self._call("PATCH", f"/v1/api-keys/{segment(key_id)}", body=body))

    async def usage(
        self, key_id: str, *, bucket: Bucket | None = None, start: str | None = None, end: str | None = None
    ) -> UsageAnswer:
        """The usage of the key, complete up to some seconds ago. The parameters are those of `Keyway.usage`."""
        path = f"/v1/api-keys/{segment(key_id)}/usage"
        return cast(UsageAnswer, await self._call("GET", path, query=usage_query(bucket, start, end)))

    async def rotate(self, key_id: str, *, overlap_seconds: int | None = None) -> CreatedApiKey:
        """Creates a successor with the same rights; the old key works for another `overlap_seconds` (default 86400)."""
        body = without_none(overlap_seconds=overlap_seconds)
        answer = await self._call("POST", f"/v1/api-keys/{segment(key_id)}/rotate", body=body)
        return cast(CreatedApiKey, answer)

    async def revoke(self, key_id: str) -> ApiKeyObject:
        """Revokes the key permanently, at once on all nodes. Idempotent."""
        return cast(ApiKeyObject, await self._call("DELETE", f"/v1/api-keys/{segment(key_id)}"))
