"""Agent tokens, from the exchange of an API key or from a function of the caller."""

from __future__ import annotations

import asyncio
import re
from typing import Any, Awaitable, Callable, TypedDict, Union

import httpx

from ._clock import Clock
from ._errors import KeywayError
from ._http import request_json
from ._protocol import API_KEY_PATTERN

USABLE_SHARE = 0.8
"""Fraction of the lifetime after which a token is no longer used for a new connection."""
EXCHANGE_TIMEOUT_SECONDS = 8.0
"""Shorter than the timeout of a connection attempt, so that the next attempt starts a new exchange instead of waiting
for the response to the earlier one."""
FALLBACK_LIFETIME_SECONDS = 60.0
"""The assumed lifetime if the response has no positive number. The hub reports the actual lifetime in `ready`."""
MAX_LIFETIME_SECONDS = 86_400.0


class ExchangeAnswer(TypedDict, total=False):
    """The exchange's response, or the part of it that is needed."""

    token: str
    expires_in: float


ProvidedToken = Union[str, ExchangeAnswer]
"""What `get_token` may return: the exchange's response unchanged, or the bare token."""
GetToken = Callable[[], Awaitable[ProvidedToken]]


class TokenSource:
    """Concurrent calls share one exchange; a token is reused for 80 % of its lifetime, by the monotonic clock."""

    def __init__(
        self,
        *,
        origin: str,
        api_key: str | None,
        get_token: GetToken | None,
        new_client: Callable[[], httpx.AsyncClient],
        clock: Clock,
    ) -> None:
        self._origin = origin
        self._api_key = api_key
        self._get_token = get_token
        self._new_client = new_client
        self._clock = clock
        self._exchange_in_progress: asyncio.Task[str] | None = None
        self._cached: tuple[str, float] | None = None
        if get_token is None:
            _check_key(api_key)

    async def get(self) -> str:
        """A token for a new connection."""
        if self._cached and self._clock.now() < self._cached[1]:
            return self._cached[0]
        return await self.get_new()

    async def get_new(self) -> str:
        """A new token, or that of the exchange in progress."""
        if self._exchange_in_progress is None:
            self._exchange_in_progress = asyncio.create_task(self._obtain())
            self._exchange_in_progress.add_done_callback(self._exchange_done)
        return await asyncio.shield(self._exchange_in_progress)

    def forget(self) -> None:
        """Discards the cached token, which was refused."""
        self._cached = None

    def stop(self) -> None:
        """Cancels the exchange in progress."""
        if self._exchange_in_progress:
            self._exchange_in_progress.cancel()

    def _exchange_done(self, exchange: asyncio.Task[str]) -> None:
        self._exchange_in_progress = None
        if not exchange.cancelled():
            exchange.exception()  # awaiting callers handle the exception; this marks it as retrieved if there are none

    async def _obtain(self) -> str:
        requested_at = self._clock.now()
        try:
            provided = await asyncio.wait_for(self._request_token(), EXCHANGE_TIMEOUT_SECONDS)
        except asyncio.TimeoutError as cause:
            message = "The token exchange took too long."
            raise KeywayError("timeout", message, retryable=True, network_cause="timeout") from cause
        answer: Any = {"token": provided} if isinstance(provided, str) else provided
        token = answer.get("token") if isinstance(answer, dict) else None
        if not isinstance(token, str) or not token:
            raise KeywayError("bad_response", "The token source returned no token.", retryable=True)
        # The lifetime is measured from the request, since the token was issued between the request and the response.
        usable_until = requested_at + USABLE_SHARE * lifetime_seconds(answer.get("expires_in"))
        self._cached = (token, usable_until)
        return token

    async def _request_token(self) -> ProvidedToken:
        if self._get_token:
            return await self._get_token()
        body = {"api_key": self._api_key}
        async with self._new_client() as client:
            answer: ProvidedToken = await request_json(
                client, "POST", f"{self._origin}/auth/agent-token", body=body
            )
        return answer


def lifetime_seconds(expires_in: object) -> float:
    """The lifetime of a token in seconds, at most a day. `FALLBACK_LIFETIME_SECONDS` if it is no positive number."""
    if isinstance(expires_in, bool) or not isinstance(expires_in, (int, float)) or not expires_in > 0:
        return FALLBACK_LIFETIME_SECONDS
    return min(float(expires_in), MAX_LIFETIME_SECONDS)


def _check_key(api_key: str | None) -> None:
    if api_key is None:
        raise KeywayError("invalid_configuration", "Pass api_key (or set KEYWAY_API_KEY), or get_token.")
    if not _is_key(api_key):
        message = "The API key is malformed: it is svc_ and 32 letters or digits, without spaces."
        raise KeywayError("invalid_api_key", message)


def _is_key(text: str) -> bool:
    """Whether the text may be a key. A service may have imported keys of another system, with another format."""
    pattern = API_KEY_PATTERN if text.startswith("svc_") else _IMPORTED_KEY
    return pattern.fullmatch(text) is not None


_IMPORTED_KEY = re.compile(r"[\x21-\x7e]+")
