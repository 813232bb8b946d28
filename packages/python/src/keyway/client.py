"""Client of the HTTP API."""

from __future__ import annotations

from types import TracebackType
from typing import Any, cast

from ._environment import environment, service_origin
from ._http import RetryOptions, new_client
from ._session_tokens import SessionTokens
from ._transport import Transport
from .calls import AccountCalls, AgentCalls, ApiKeyCalls, AppCalls, SessionCalls
from .calls._omitted import without_none
from .calls._usage import Bucket, usage_query
from .objects import AgentTokenAnswer, SendMagicLinkAnswer, SessionAnswer, SignInAnswer, UsageAnswer, UserObject
from .token_store import MemoryTokenStore, TokenStore


class Keyway:
    """The whole HTTP API. Errors are `KeywayError`; idempotent calls are retried, honouring `Retry-After`; an expired
    access token is refreshed automatically.

        async with Keyway(url="https://keyway.example.com") as keyway:
            sent = await keyway.send_magic_link(email)
            await keyway.verify_magic_link(login_id=sent["login_id"], code=code, email=email)
            created = await keyway.api_keys.create(name="build robot")
    """

    def __init__(
        self,
        *,
        url: str | None = None,
        api_key: str | None = None,
        tokens: TokenStore | None = None,
        app: tuple[str, str] | None = None,
        max_retries: int = 4,
        longest_wait_seconds: float = 30.0,
        timeout_seconds: float = 15.0,
        ssl: Any = None,
    ) -> None:
        """:param url: the service's public URL. Default: the environment variable `KEYWAY_URL`
        :param api_key: calls with this key instead of a session. Default: `KEYWAY_API_KEY`, unless `tokens` or `app` is
            given
        :param tokens: the store of the session's tokens. Default: in memory
        :param app: id and secret of an app, for its calls (`apps`)
        :param max_retries: maximum retries of calls that are safe to retry
        :param longest_wait_seconds: longest `Retry-After` to wait for; if it is longer, the error is raised
        :param timeout_seconds: timeout of each attempt
        :param ssl: an `ssl.SSLContext`, where the service's certificate is not signed by a public authority
        :raises KeywayError: `invalid_configuration`
        """
        has_other_credential = tokens is not None or app is not None
        self._tokens = SessionTokens(tokens or MemoryTokenStore(), self._refresh)
        self._client = new_client(True if ssl is None else ssl)
        self._transport = Transport(
            origin=service_origin(url),
            api_key=api_key or (None if has_other_credential else environment("KEYWAY_API_KEY")),
            app=app,
            tokens=self._tokens,
            client=self._client,
            retry=RetryOptions(max_retries, longest_wait_seconds, timeout_seconds),
        )
        self.api_keys = ApiKeyCalls(self._transport)
        self.sessions = SessionCalls(self._transport)
        self.account = AccountCalls(self._transport)
        self.agents = AgentCalls(self._transport)
        self.apps = AppCalls(self._transport)
        """The calls of an app; they need the parameter `app` of the constructor."""

    async def send_magic_link(
        self, email: str, *, app_id: str | None = None, locale: str | None = None
    ) -> SendMagicLinkAnswer:
        """Sends a sign-in mail; the answer is the same whether or not the address has an account."""
        body = {"email": email, "app_id": app_id, "locale": locale}
        return cast(SendMagicLinkAnswer, await self._public("/auth/send-magic-link", body))

    async def verify_magic_link(
        self,
        *,
        email: str,
        token: str | None = None,
        login_id: str | None = None,
        code: str | None = None,
        app_id: str | None = None,
    ) -> SignInAnswer:
        """Signs in by the link's `token`, or by the mail's `code` with the `login_id` of the request, and stores the
        tokens. Not retried, since a link works only once."""
        path = "/auth/verify-magic-link"
        body = {"email": email, "token": token, "login_id": login_id, "code": code, "app_id": app_id}
        answer = cast(SignInAnswer, await self._public(path, body))
        await self._tokens.store_sign_in(answer)
        return answer

    async def refresh(self) -> UserObject | None:
        """Refreshes the session's tokens now; other calls do so when needed. Returns the session's user, or None if
        another call or process has just refreshed them."""
        answer = await self._tokens.refresh()
        return answer["user"] if answer else None

    async def usage(
        self, *, bucket: Bucket | None = None, start: str | None = None, end: str | None = None
    ) -> UsageAnswer:
        """The account's total usage, with all keys and in all sessions, complete up to some seconds ago. `start` and
        `end` are RFC 3339 with a zone; the default is the last 30 days, by day."""
        answer = await self._transport.call("GET", "/v1/usage", query=usage_query(bucket, start, end))
        return cast(UsageAnswer, answer)

    async def logout(self) -> None:
        """Ends the session on the server, and removes its tokens from the store."""
        refresh_token = self._tokens.refresh_token()
        if refresh_token is not None:
            await self._public("/auth/logout", {"refresh_token": refresh_token}, repeatable=True)
            await self._tokens.delete()

    async def revoke(self, token: str) -> None:
        """Revokes an API key or refresh token by the secret itself (RFC 7009), for anyone who found one."""
        await self._public("/auth/revoke", {"token": token}, repeatable=True)

    async def exchange(self, api_key: str, *, audience: str | None = None) -> AgentTokenAnswer:
        """Exchanges an API key for an agent token, for example to hand it to a browser."""
        body = {"api_key": api_key, "audience": audience}
        answer = await self._public("/auth/agent-token", body, repeatable=True)
        return cast(AgentTokenAnswer, answer)

    async def aclose(self) -> None:
        """Closes the connections to the service, without ending the session."""
        await self._client.aclose()

    async def __aenter__(self) -> Keyway:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _public(self, path: str, fields: dict[str, str | None], *, repeatable: bool = False) -> Any:
        body = without_none(**fields)
        return await self._transport.call("POST", path, body=body, credential="none", repeatable=repeatable)

    async def _refresh(self, refresh_token: str, idempotency_key: str) -> SessionAnswer:
        answer = await self._transport.call(
            "POST",
            "/auth/refresh",
            body={"refresh_token": refresh_token},
            headers={"idempotency-key": idempotency_key},
            credential="none",
            repeatable=True,
        )
        return cast(SessionAnswer, answer)
