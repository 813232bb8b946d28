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
"""Calls `POST /auth/refresh` with a refresh token and an Idempotency-Key. Retries use the same key."""


class SessionTokens:
    """The tokens of a session. One refresh runs at a time in this client; if the store is a `SharedTokenStore`, also
    among all clients that share it."""

    def __init__(self, store: TokenStore, refresh: Refresh) -> None:
        self._store = store
        self._send_refresh = refresh
        self._refresh_in_progress: asyncio.Task[SessionAnswer | None] | None = None

    def access_token(self) -> str | None:
        """The access token; None when nobody is signed in."""
        tokens = self._store.get()
        return tokens.access if tokens else None

    def refresh_token(self) -> str | None:
        """The refresh token; None when nobody is signed in."""
        tokens = self._store.get()
        return tokens.refresh if tokens else None

    async def store_sign_in(self, answer: SessionAnswer) -> None:
        """Stores the tokens of a sign-in. Waits for a refresh in progress, whose answer would otherwise replace
        them."""
        async with self._exclusive():
            self._store.set(_to_stored_tokens(answer))

    async def delete(self) -> None:
        async with self._exclusive():
            self._store.delete()

    async def refresh(self, rejected_token: str | None = None) -> SessionAnswer | None:
        """Refreshes the tokens. If the access token `rejected_token` has been replaced in the meantime, returns None
        without a request."""
        if self._refresh_in_progress is None:
            self._refresh_in_progress = asyncio.create_task(self._renew_exclusively(rejected_token))
            self._refresh_in_progress.add_done_callback(self._on_refresh_done)
        return await asyncio.shield(self._refresh_in_progress)

    def _on_refresh_done(self, refresh: asyncio.Task[SessionAnswer | None]) -> None:
        self._refresh_in_progress = None
        if not refresh.cancelled():
            refresh.exception()  # awaiting callers handle the exception; this marks it as retrieved if there are none

    def _exclusive(self) -> AsyncContextManager[None]:
        return self._store.exclusive() if isinstance(self._store, SharedTokenStore) else nullcontext()

    async def _renew_exclusively(self, rejected_token: str | None) -> SessionAnswer | None:
        async with self._exclusive():
            return await self._renew(rejected_token)

    async def _renew(self, rejected_token: str | None) -> SessionAnswer | None:
        tokens = self._store.get()
        if tokens is None:
            raise not_signed_in()
        if rejected_token is not None and tokens.access != rejected_token:
            return None
        # The idempotency key is stored before it is used: if this process dies before the response, the next one
        # retries with the same key and gets the same tokens, instead of triggering reuse detection.
        key = tokens.refresh_key or secrets.token_hex(16)
        self._store.set(replace(tokens, refresh_key=key))
        try:
            answer = await self._send_refresh(tokens.refresh, key)
        except KeywayError as error:
            if error.status == 401:
                self._store.delete()
            raise
        self._store.set(_to_stored_tokens(answer))
        return answer


def _to_stored_tokens(answer: SessionAnswer) -> StoredTokens:
    return StoredTokens(answer["access_token"], answer["refresh_token"], answer["session_id"])


def not_signed_in() -> KeywayError:
    """The error of a call that needs a credential when there is none."""
    advice = "Not signed in: call verify_magic_link first, or pass api_key."
    return KeywayError("authentication_required", advice, status=401)
