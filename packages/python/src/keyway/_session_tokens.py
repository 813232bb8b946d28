"""A session's tokens, refreshed one at a time."""

from __future__ import annotations

import asyncio
import secrets
from contextlib import nullcontext
from dataclasses import replace
from typing import AsyncContextManager, Awaitable, Callable

from ._errors import KeywayError
from .objects import SessionAnswer
from .token_store import SharedTokenStore, StoredTokens, TokenStore

Refresh = Callable[[str, str], Awaitable[SessionAnswer]]
"""`POST /auth/refresh` with a refresh token and an Idempotency-Key, retried with the same key."""


class SessionTokens:
    """One refresh at a time in this client and, with a store that has `exclusive`, among all that share the storage."""

    def __init__(self, store: TokenStore, refresh: Refresh) -> None:
        self._store = store
        self._send_refresh = refresh
        self._flight: asyncio.Task[SessionAnswer | None] | None = None

    def access(self) -> str | None:
        """The access token; None when nobody is signed in."""
        tokens = self._store.get()
        return tokens.access if tokens else None

    def refresh_token(self) -> str | None:
        """The refresh token; None when nobody is signed in."""
        tokens = self._store.get()
        return tokens.refresh if tokens else None

    async def keep(self, answer: SessionAnswer) -> None:
        """Stores the tokens of a sign-in, after a refresh in progress, whose answer would replace them."""
        async with self._exclusive():
            self._store.set(_stored(answer))

    async def forget(self) -> None:
        """Removes the tokens."""
        async with self._exclusive():
            self._store.delete()

    async def refresh(self, refused: str | None = None) -> SessionAnswer | None:
        """Refreshes the tokens, unless `refused`, the rejected access token, was replaced meanwhile: then the answer is
        None."""
        if self._flight is None:
            self._flight = asyncio.create_task(self._alone(refused))
            self._flight.add_done_callback(self._landed)
        return await asyncio.shield(self._flight)

    def _landed(self, flight: asyncio.Task[SessionAnswer | None]) -> None:
        self._flight = None
        if not flight.cancelled():
            flight.exception()  # awaiting callers handle the exception; this marks it as retrieved if there are none

    def _exclusive(self) -> AsyncContextManager[None]:
        return self._store.exclusive() if isinstance(self._store, SharedTokenStore) else nullcontext()

    async def _alone(self, refused: str | None) -> SessionAnswer | None:
        async with self._exclusive():
            return await self._renew(refused)

    async def _renew(self, refused: str | None) -> SessionAnswer | None:
        tokens = self._store.get()
        if tokens is None:
            raise not_signed_in()
        if refused is not None and tokens.access != refused:
            return None
        # Stored before it is used: if this process dies before the response, the next one retries with the same key and
        # gets the same successor, instead of triggering reuse detection.
        key = tokens.refresh_key or secrets.token_hex(16)
        self._store.set(replace(tokens, refresh_key=key))
        try:
            answer = await self._send_refresh(tokens.refresh, key)
        except KeywayError as error:
            if error.status == 401:
                self._store.delete()
            raise
        self._store.set(_stored(answer))
        return answer


def _stored(answer: SessionAnswer) -> StoredTokens:
    return StoredTokens(answer["access_token"], answer["refresh_token"], answer["session_id"])


def not_signed_in() -> KeywayError:
    """The error of a call that needs a credential."""
    advice = "Not signed in: call verify_magic_link first, or pass api_key."
    return KeywayError("authentication_required", advice, status=401)
