"""JSON over HTTP: single requests, and retries of requests that are safe to repeat."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any, Awaitable, Callable, Mapping, TypeVar
from urllib.parse import urlsplit

import httpx

from ._backoff import full_jitter
from ._clock import Clock, SystemClock
from ._environment import USER_AGENT
from ._errors import KeywayError, error_from_network, error_from_response

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class RetryOptions:
    max_retries: int = 4
    longest_wait_seconds: float = 30.0
    """Longest `Retry-After` to wait for. If it is longer, the error is raised."""
    timeout_seconds: float = 15.0
    """Timeout of each attempt."""
    clock: Clock = field(default_factory=SystemClock)


def new_client(verify: Any = True) -> httpx.AsyncClient:
    """A client that follows no redirect, since that would send the credential to another address. It has no timeout,
    since each attempt has its own."""
    headers = {"accept": "application/json", "user-agent": USER_AGENT}
    return httpx.AsyncClient(headers=headers, follow_redirects=False, timeout=None, verify=verify)


async def request_json(
    client: httpx.AsyncClient,
    method: str,
    url: str,
    *,
    body: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Any:
    """Sends a request once. Returns None if the response has no body (204)."""
    content = None if body is None else _encode(body)
    all_headers = {**(headers or {}), **({} if content is None else {"content-type": "application/json"})}
    try:
        response = await client.request(method, url, content=content, headers=all_headers)
    except (httpx.TransportError, OSError) as cause:
        raise error_from_network(cause, _origin(url)) from cause
    if not response.is_success:
        raise error_from_response(response)
    if response.status_code == 204:
        return None
    try:
        return response.json()
    except (ValueError, RecursionError) as cause:
        message = "The response is incomplete, not JSON, or nested too deeply."
        raise KeywayError("bad_response", message, retryable=True) from cause


def _encode(body: Mapping[str, Any]) -> bytes:
    """The body as JSON in UTF-8. Escapes of other characters than ASCII could make it longer than the service accepts.
    Only lone surrogates, which UTF-8 does not have, are escaped: the service refuses them and names the field."""
    text = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace")


async def with_retries(attempt: Callable[[], Awaitable[Answer]], options: RetryOptions) -> Answer:
    """Repeats failed attempts with full jitter, and never before `Retry-After`. Only for idempotent calls."""
    retries = 0
    while True:
        try:
            return await _with_timeout(attempt, options.timeout_seconds)
        except KeywayError as error:
            retry_after = error.retry_after or 0
            if not error.retryable or retries >= options.max_retries or retry_after > options.longest_wait_seconds:
                raise
        await asyncio.sleep(retry_after + full_jitter(retries, options.clock.random()))
        retries += 1


async def _with_timeout(attempt: Callable[[], Awaitable[Answer]], seconds: float) -> Answer:
    try:
        return await asyncio.wait_for(attempt(), seconds)
    except asyncio.TimeoutError as cause:
        message = f"No answer within {seconds:g} s. Check the network, or raise timeout_seconds."
        raise KeywayError("timeout", message, retryable=True, network_cause="timeout") from cause


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
