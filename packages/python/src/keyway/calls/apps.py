"""Calls of registered apps, with their id and secret."""

from __future__ import annotations

import asyncio
import secrets
from typing import AsyncIterator, Callable, cast

from .._errors import KeywayError
from .._key_verifier import KeyVerifier
from .._transport import Transport
from ..objects import IntrospectionAnswer, KeyVerification, LedgerEntryObject, Page, RevocationObject
from ._omitted import without_none

POLL_INTERVAL_SECONDS = 1.0


class AppCalls:
    """Charges, introspection, and the revocation feed."""

    def __init__(self, transport: Transport) -> None:
        self._call = transport.call
        self._verifier = KeyVerifier(transport)

    async def charge(
        self,
        *,
        user_id: str,
        amount: str,
        description: str,
        key_id: str | None = None,
        idempotency_key: str | None = None,
    ) -> LedgerEntryObject:
        """Charges a user who authorised the app. Safe to retry with the same `idempotency_key`.

        :param amount: a positive decimal with at most 6 places
        :param key_id: a key of the user, whose spend limits the charge counts towards
        :param idempotency_key: calls with the same key charge once. Default: a random one for each call
        """
        body = without_none(user_id=user_id, amount=amount, description=description, key_id=key_id)
        headers = {"idempotency-key": idempotency_key or secrets.token_hex(16)}
        answer = await self._call(
            "POST", "/v1/charges", body=body, headers=headers, credential="app", repeatable=True
        )
        return cast(LedgerEntryObject, answer)

    async def introspect(self, token: str, *, consume: int | None = None) -> IntrospectionAnswer:
        """Introspects a key, access token or agent token (RFC 7662). `consume` counts calls against a key's limits, as
        in `verify_key`; a request with `consume` is not retried."""
        body = without_none(token=token, consume=consume)
        answer = await self._call(
            "POST", "/auth/introspect", body=body, credential="app", repeatable=not consume
        )
        return cast(IntrospectionAnswer, answer)

    async def verify_key(self, key: str, *, consume: int | None = None) -> KeyVerification:
        """Verifies a key that a client of your own API presented, and counts `consume` calls against its limits: all of
        them or, if they exceed a limit, none. Not retried, since your client waits, and a repeated call would count
        twice. Concurrent calls share requests.

        :raises KeywayError: `rate_limited` (429) and `quota_exhausted` (402), with `retry_after` where waiting helps;
            `forbidden` for a key whose calls this app may not count
        """
        return cast(KeyVerification, await self._verifier.verify(without_none(token=key, consume=consume)))

    async def revocations(self, *, cursor: str | None = None) -> Page[RevocationObject]:
        """A page of the keys, sessions and accounts that ended after `cursor`, but within the last 20 minutes, oldest
        first. Without a cursor the page begins 20 minutes ago. A later page may repeat an entry."""
        answer = await self._call("GET", "/v1/revocations", query={"cursor": cursor}, credential="app")
        return cast("Page[RevocationObject]", answer)

    async def follow_revocations(
        self,
        *,
        cursor: str | None = None,
        every_seconds: float = POLL_INTERVAL_SECONDS,
        on_caught_up: Callable[[], None] | None = None,
    ) -> AsyncIterator[RevocationObject]:
        """Yields the keys, sessions and accounts that ended in the last 20 minutes (or since `cursor`), and those that
        end from now on, for a hub of your own. Continues after outages of the service; ends when its task is cancelled.

        :param on_caught_up: called after each poll that reached the end of the feed
        """
        while True:
            try:
                page = await self.revocations(cursor=cursor)
            except KeywayError as error:
                if not error.retryable:
                    raise
            else:
                for item in page["data"]:
                    yield item
                cursor = page["next_cursor"] or cursor
                if page["has_more"]:
                    continue
                if on_caught_up:
                    on_caught_up()
            await asyncio.sleep(every_seconds)
