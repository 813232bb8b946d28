"""Profile, balance, ledger, security events and the apps with access."""

from __future__ import annotations

from typing import cast

from .._transport import Transport, segment
from ..objects import (
    AccountObject,
    ChargeAuthorizationObject,
    ConsentObject,
    EmailChangeRequested,
    LedgerEntryObject,
    Page,
    SecurityEventObject,
)


class AccountCalls:
    """The account of the caller. Lists take a `limit` of 1 to 100 (default 50) and the `cursor` of a page."""

    def __init__(self, transport: Transport) -> None:
        self._call = transport.call

    async def get(self) -> AccountObject:
        """The user, the balance, the subscription and the apps that may charge."""
        return cast(AccountObject, await self._call("GET", "/v1/me"))

    async def update(self, *, name: str) -> AccountObject:
        """Changes the name."""
        return cast(AccountObject, await self._call("PATCH", "/v1/me", body={"name": name}))

    async def change_email(self, *, email: str) -> EmailChangeRequested:
        """Mails a link to the new address and one to the present one. Needs a sign-in of the last 30 minutes."""
        answer = await self._call("POST", "/v1/me/email", body={"email": email})
        return cast(EmailChangeRequested, answer)

    async def confirm_email(self, *, token: str) -> AccountObject:
        """Confirms the change by the token of one of the two links; the second confirmation changes the address."""
        return cast(AccountObject, await self._call("POST", "/v1/me/email/confirm", body={"token": token}))

    async def cancel_email_change(self) -> None:
        """Cancels the change; its links stop working."""
        await self._call("DELETE", "/v1/me/email")

    async def delete(self) -> AccountObject:
        """Schedules the deletion for `deletes_at`, in 7 days. Needs a sign-in of the last 30 minutes, as does
        `restore`."""
        return cast(AccountObject, await self._call("DELETE", "/v1/me"))

    async def restore(self) -> AccountObject:
        """Cancels the deletion."""
        return cast(AccountObject, await self._call("POST", "/v1/me/restore"))

    async def ledger(self, *, limit: int | None = None, cursor: str | None = None) -> Page[LedgerEntryObject]:
        """Credits and charges, newest first."""
        answer = await self._call("GET", "/v1/me/ledger", query={"limit": limit, "cursor": cursor})
        return cast("Page[LedgerEntryObject]", answer)

    async def security_events(
        self,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        type: str | None = None,
        key_id: str | None = None,
    ) -> Page[SecurityEventObject]:
        """Security events (sign-ins, revocations, …), newest first; only those of the given type and key, if any."""
        query = {"limit": limit, "cursor": cursor, "type": type, "key_id": key_id}
        answer = await self._call("GET", "/v1/security-events", query=query)
        return cast("Page[SecurityEventObject]", answer)

    async def authorize_charges(self, app_id: str) -> ChargeAuthorizationObject:
        """Lets an app charge the balance."""
        answer = await self._call("PUT", f"/v1/me/charge-authorizations/{segment(app_id)}")
        return cast(ChargeAuthorizationObject, answer)

    async def withdraw_charges(self, app_id: str) -> ChargeAuthorizationObject:
        """Withdraws an app's permission to charge the balance."""
        answer = await self._call("DELETE", f"/v1/me/charge-authorizations/{segment(app_id)}")
        return cast(ChargeAuthorizationObject, answer)

    async def consents(self, *, limit: int | None = None, cursor: str | None = None) -> Page[ConsentObject]:
        """The apps that have access to the account."""
        answer = await self._call("GET", "/v1/consents", query={"limit": limit, "cursor": cursor})
        return cast("Page[ConsentObject]", answer)

    async def withdraw_consent(self, app_id: str) -> None:
        """Withdraws an app's access to the account, and revokes all tokens that were issued to it."""
        await self._call("DELETE", f"/v1/consents/{segment(app_id)}")
