"""The public keys of an issuer."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from ._errors import KeywayError
from ._http import RetryOptions, new_client, request_json, with_retries
from ._verification_key import VerificationKey, import_key

FRESH_FOR_SECONDS = 5 * 60.0
"""Maximum age of a cached key set before it is fetched again."""
STALE_FOR_SECONDS = 60 * 60.0
"""How long cached keys are used while the issuer is unreachable."""
UNKNOWN_KEY_PAUSE_SECONDS = 10.0
"""Minimum interval between requests, so that tokens with made-up key ids cause few."""
FETCH_TIMEOUT_SECONDS = 5.0


class Jwks:
    """A cache of the issuer's keys. It fetches them again, one request at a time, if they are too old or a key id is
    unknown."""

    def __init__(self, url: str, ssl: Any = None) -> None:
        self._url = url
        self._ssl = ssl
        self._keys: dict[str, VerificationKey] = {}
        self._fetched_at = float("-inf")
        self._tried_at = float("-inf")
        self._lock = asyncio.Lock()

    async def key(self, key_id: str) -> VerificationKey | None:
        """The key with this id; None if the issuer has none.

        :raises KeywayError: `unavailable` if the keys cannot be fetched
        """
        if key_id in self._keys and self._age() < FRESH_FOR_SECONDS:
            return self._keys[key_id]
        async with self._lock:
            if time.monotonic() - self._tried_at >= UNKNOWN_KEY_PAUSE_SECONDS:
                await self._load()
        if self._age() < STALE_FOR_SECONDS:
            return self._keys.get(key_id)
        message = f"The keys of {self._url} cannot be fetched. Check the issuer and the network."
        raise KeywayError("unavailable", message, retryable=True)

    def _age(self) -> float:
        return time.monotonic() - self._fetched_at

    async def _load(self) -> None:
        self._tried_at = time.monotonic()
        try:
            async with new_client(True if self._ssl is None else self._ssl) as client:
                document = await with_retries(
                    lambda: request_json(client, "GET", self._url), RetryOptions(0, 0, FETCH_TIMEOUT_SECONDS)
                )
        except KeywayError:
            return  # cached keys may still be used
        key_documents = document.get("keys") if isinstance(document, dict) else None
        self._keys = _import_keys(key_documents if isinstance(key_documents, list) else [])
        self._fetched_at = time.monotonic()


def _import_keys(documents: list[Any]) -> dict[str, VerificationKey]:
    """Imports the keys that can verify tokens, and skips all others."""
    keys: dict[str, VerificationKey] = {}
    for document in documents:
        key = import_key(document) if isinstance(document, dict) else None
        if key and isinstance(document.get("kid"), str):
            keys[document["kid"]] = key
    return keys
