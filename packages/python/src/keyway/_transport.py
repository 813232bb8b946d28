"""Sends calls to the service, with credentials, retries, and one refresh if the access token is rejected."""

from __future__ import annotations

import base64
from typing import Any, Literal, Mapping
from urllib.parse import quote, urlencode

import httpx

from ._errors import KeywayError
from ._http import RetryOptions, request_json, with_retries
from ._session_tokens import SessionTokens, not_signed_in

Method = Literal["GET", "POST", "PATCH", "PUT", "DELETE"]
Credential = Literal["user", "app", "none"]


class Transport:
    """Sends calls. `app` is the id and the secret of an app, for calls with its credential."""

    def __init__(
        self,
        *,
        origin: str,
        api_key: str | None,
        app: tuple[str, str] | None,
        tokens: SessionTokens,
        client: httpx.AsyncClient,
        retry: RetryOptions,
    ) -> None:
        self._origin = origin
        self._api_key = api_key
        self._app = app
        self._tokens = tokens
        self._client = client
        self._retry = retry

    async def call(
        self,
        method: Method,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
        credential: Credential = "user",
        repeatable: bool | None = None,
    ) -> Any:
        """Sends a call, and returns the JSON of its response.

        :param repeatable: whether the call may be repeated without a second effect; by default every call except a POST
        """
        request = _Request(method, path + _query(query), body, dict(headers or {}), repeatable)
        if credential == "none":
            return await self._send(request, None)
        if credential == "app":
            return await self._send(request, self._app_credential())
        if self._api_key:
            return await self._send(request, f"Bearer {self._api_key}")
        return await self._call_in_session(request)

    async def _call_in_session(self, request: _Request) -> Any:
        access_token = self._tokens.access_token()
        if access_token is None:
            raise not_signed_in()
        try:
            return await self._send(request, f"Bearer {access_token}")
        except KeywayError as error:
            # A call with a rejected token had no effect, so even a non-idempotent call may be sent again.
            if error.code != "invalid_token":
                raise
        await self._tokens.refresh(access_token)
        return await self._send(request, f"Bearer {self._tokens.access_token()}")

    async def _send(self, request: _Request, credential: str | None) -> Any:
        headers = {**request.headers, **({"authorization": credential} if credential else {})}
        retry_options = self._retry if request.repeatable else _without_retries(self._retry)
        url = self._origin + request.path
        return await with_retries(
            lambda: request_json(self._client, request.method, url, body=request.body, headers=headers), retry_options
        )

    def _app_credential(self) -> str:
        if self._app is None:
            raise KeywayError("invalid_configuration", "This call needs app=(id, secret).")
        return f"Basic {base64.b64encode(':'.join(self._app).encode()).decode()}"


class _Request:
    def __init__(
        self,
        method: Method,
        path: str,
        body: Mapping[str, Any] | None,
        headers: dict[str, str],
        repeatable: bool | None,
    ) -> None:
        self.method = method
        self.path = path
        self.body = body
        self.headers = headers
        self.repeatable = method != "POST" if repeatable is None else repeatable


def segment(value: str) -> str:
    """Encodes one path segment, so that its value cannot change the path."""
    return quote(value, safe="")


def _query(query: Mapping[str, object] | None) -> str:
    parameters = {name: str(value) for name, value in (query or {}).items() if value is not None}
    return f"?{urlencode(parameters)}" if parameters else ""


def _without_retries(retry: RetryOptions) -> RetryOptions:
    return RetryOptions(0, retry.longest_wait_seconds, retry.timeout_seconds, retry.clock)
