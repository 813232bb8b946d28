"""Profile, balance, ledger, security events and the apps with access."""

from __future__ import annotations

from typing import cast

from .._transport import Transport, segment
from ..objects import (
    AccountObject,
    ChargeAuthorizationObject,
    ConsentObject,
    LedgerEntryObject,
    Page,
    SecurityEventObject,
)


class AccountCalls:
    """The account of the caller. Lists take a `limit` of 1 to 100 (default 50) and the `cursor` of a page."""

    def __init__(self, transport: Transport) -> None:
        self._call = transport.call

    async def get(self) -> AccountObject:
        """The user, the balance, the subscription and who may charge."""
        return cast(AccountObject, await self._call("GET", "/v1/me"))

    async def update(self, *, name: str) -> AccountObject:
        """Changes the name."""
        return cast(AccountObject, await self._call("PATCH", "/v1/me", body={"name": name}))

    async def ledger(self, *, limit: int | None = None, cursor: str | None = None) -> Page[LedgerEntryObject]:
        """Credits and charges, newest first."""
        answer = await self._call("GET", "/v1/me/ledger", query={"limit": limit, "cursor": cursor})
        return cast("Page[LedgerEntryObject]", answer)

    async def security_events(
        self, *, limit: int | None = None, cursor: str | None = None
    ) -> Page[SecurityEventObject]:
        """Sign-ins, endings of keys and sessions, and more, newest first."""
        answer = await self._call("GET", "/v1/security-events", query={"limit": limit, "cursor": cursor})
        return cast("Page[SecurityEventObject]", answer)

    async def authorize_charges(self, app_id: str) -> ChargeAuthorizationObject:
        """Lets an app charge the balance."""
        answer = await self._call("PUT", f"/v1/me/charge-authorizations/{segment(app_id)}")
        return cast(ChargeAuthorizationObject, answer)

    async def withdraw_charges(self, app_id: str) -> ChargeAuthorizationObject:
        """Lets an app charge the balance no longer."""
        answer = await self._call("DELETE", f"/v1/me/charge-authorizations/{segment(app_id)}")
        return cast(ChargeAuthorizationObject, answer)

    async def consents(self, *, limit: int | None = None, cursor: str | None = None) -> Page[ConsentObject]:
        """The apps that have access to the account."""
        answer = await self._call("GET", "/v1/consents", query={"limit": limit, "cursor": cursor})
        return cast("Page[ConsentObject]", answer)

    async def withdraw_consent(self, app_id: str) -> None:
        """Ends the access of an app, and what was issued to it."""
        await self._call("DELETE", f"/v1/consents/{segment(app_id)}")
