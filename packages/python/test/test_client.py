"""The client of the HTTP API against a real service."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from conftest import SignIn

from keyway import FileTokenStore, Keyway, KeywayError, MemoryTokenStore


async def test_a_person_signs_in_manages_keys_and_signs_out(sign_in: SignIn) -> None:
    async with await sign_in() as keyway:
        account = await keyway.account.get()
        assert account["balance"] == {"amount": "2.00", "currency": "USD"}
        assert (await keyway.account.update(name="Ada"))["user"]["name"] == "Ada"
        assert [entry["kind"] for entry in (await keyway.account.ledger())["data"]] == ["trial_credit"]
        created = await keyway.api_keys.create(
            name="build robot", scopes=["agent:connect"], external_id="customer 7", metadata={"a": [1, None]}
        )
        assert (await keyway.api_keys.get(created["id"]))["metadata"] == {"a": [1, None]}
        changed = await keyway.api_keys.update(created["id"], name="", external_id=None)
        assert (changed["name"], changed["external_id"], changed["metadata"]) == (None, None, {"a": [1, None]})
        successor = await keyway.api_keys.rotate(created["id"], overlap_seconds=60)
        assert (await keyway.api_keys.get(created["id"]))["replaced_by"] == successor["id"]
        assert (await keyway.api_keys.revoke(successor["id"]))["status"] == "revoked"
        assert (await keyway.api_keys.list(status="revoked"))["data"][0]["id"] == successor["id"]
        listed = [key["id"] async for key in keyway.api_keys.all(limit=1)]
        assert listed == [successor["id"], created["id"]]
        assert len((await keyway.usage(bucket="day"))["data"]) >= 30
        assert (await keyway.api_keys.usage(created["id"], bucket="hour"))["data"]
        assert any(each["type"] == "api_key_created" for each in (await keyway.account.security_events())["data"])
        assert (await keyway.account.consents())["data"] == []
        sessions = (await keyway.sessions.list())["data"]
        assert [session["current"] for session in sessions] == [True]
        await keyway.logout()
        with pytest.raises(KeywayError, match="verify_magic_link") as raised:
            await keyway.account.get()
        assert raised.value.code == "authentication_required"


async def test_metadata_of_any_language_may_have_16_kib(sign_in: SignIn) -> None:
    async with await sign_in() as keyway:
        metadata = {"text": "ж" * ((16 * 1024 - len('{"text":""}')) // 2)}
        assert (await keyway.api_keys.create(metadata=metadata))["metadata"] == metadata
        with pytest.raises(KeywayError) as raised:
            await keyway.api_keys.create(metadata={"text": "\ud800"})
        assert (raised.value.code, raised.value.errors[0]["field"]) == ("invalid_request", "metadata")


async def test_errors_have_code_status_request_id_and_refused_fields(sign_in: SignIn) -> None:
    async with await sign_in() as keyway:
        with pytest.raises(KeywayError) as raised:
            await keyway.api_keys.create(name="x" * 101)
        error = raised.value
        assert (error.code, error.status, error.retryable) == ("invalid_request", 400, False)
        assert [each["field"] for each in error.errors] == ["name"]
        assert error.request_id
        with pytest.raises(KeywayError) as unknown:
            await keyway.api_keys.get("no/such key")
        assert (unknown.value.code, unknown.value.status) == ("not_found", 404)


async def test_an_expired_access_token_is_refreshed_once_for_twenty_calls(sign_in: SignIn) -> None:
    tokens = MemoryTokenStore()
    async with await sign_in(tokens) as keyway:
        before = tokens.get()
        assert before
        tokens.set(replace(before, access="expired"))
        await asyncio.gather(*(keyway.account.get() for _ in range(20)))
        after = tokens.get()
        assert after and after.refresh != before.refresh and after.session_id == before.session_id


async def test_a_lost_answer_of_a_refresh_ends_no_session(sign_in: SignIn) -> None:
    tokens = MemoryTokenStore()
    async with await sign_in(tokens) as keyway:
        before = tokens.get()
        assert before
        key = uuid.uuid4().hex
        tokens.set(replace(before, refresh_key=key))
        await keyway.refresh()  # this answer counts as lost, so the tokens are reset to those before it
        lost_tokens = tokens.get()
        tokens.set(replace(before, refresh_key=key))
        assert await keyway.refresh()
        repeated_tokens = tokens.get()
        assert repeated_tokens and lost_tokens and repeated_tokens.refresh == lost_tokens.refresh


async def test_processes_that_share_a_file_of_tokens_refresh_one_after_the_other(
    url: str, sign_in: SignIn, tmp_path: Path
) -> None:
    path = tmp_path / "private" / "session.json"
    store = FileTokenStore(path)
    async with await sign_in(store) as keyway:
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700
        before = store.get()
        assert before
        store.set(replace(before, access="expired"))
        others = [Keyway(url=url, tokens=FileTokenStore(path)) for _ in range(5)]
        await asyncio.gather(*(each.account.get() for each in [keyway, *others]))
        await asyncio.gather(*(each.aclose() for each in others))
        assert [session["current"] for session in (await keyway.sessions.list())["data"]] == [True]
        await keyway.logout()
        assert not path.exists()
        path.write_text("{}")
        with pytest.raises(KeywayError, match="Remove it, and sign in again"):
            store.get()


async def test_a_key_calls_within_its_scopes(url: str, sign_in: SignIn) -> None:
    async with await sign_in() as person:
        key = (await person.api_keys.create(scopes=["account:read"]))["key"]
    async with Keyway(url=url, api_key=key) as keyway:
        assert (await keyway.account.get())["balance"]["amount"] == "2.00"
        with pytest.raises(KeywayError) as raised:
            await keyway.account.update(name="Eve")
        assert raised.value.code == "insufficient_scope"
        await keyway.revoke(key)
        with pytest.raises(KeywayError) as revoked:
            await keyway.account.get()
        assert revoked.value.code == "api_key_revoked"


async def test_an_app_introspects_verifies_charges_and_follows_revocations(
    url: str, app: tuple[str, str], sign_in: SignIn
) -> None:
    async with await sign_in() as person, Keyway(url=url, app=app) as service:
        created = await person.api_keys.create(
            app_id=app[0], limits={"quota": {"remaining": 2}, "requests": [{"limit": 100, "per": "minute"}]}
        )
        answer = await service.apps.introspect(created["key"])
        assert answer["active"] and answer["sub"] == created["user_id"]
        verified = await service.apps.verify_key(created["key"], consume=2)
        assert verified["active"] and verified["key_id"] == created["id"]
        assert verified["limits"]["quota"] == {"remaining": 0}
        with pytest.raises(KeywayError) as used_up:
            await service.apps.verify_key(created["key"], consume=1)
        assert (used_up.value.code, used_up.value.status) == ("quota_exhausted", 402)
        checks = [(created["key"], 0), ("svc_x", 0), (created["key"], 1)]
        verifying = [service.apps.verify_key(key, consume=consume) for key, consume in checks]
        own, unknown, over = await asyncio.gather(*verifying, return_exceptions=True)
        assert isinstance(own, dict) and own["key_id"] == created["id"] and own["limits"]["quota"] == {"remaining": 0}
        assert unknown == {"active": False}
        assert isinstance(over, KeywayError) and (over.code, over.status) == ("quota_exhausted", 402)
        charge = {"user_id": created["user_id"], "amount": "0.50", "description": "a print"}
        with pytest.raises(KeywayError) as unauthorized:
            await service.apps.charge(**charge)
        assert unauthorized.value.code == "charge_not_authorized"
        await person.account.authorize_charges(app[0])
        entries = [await service.apps.charge(**charge, idempotency_key="print-7-of-12-pages") for _ in range(2)]
        assert entries[0] == entries[1] and entries[0]["balance_after"] == "1.50"
        await person.account.withdraw_charges(app[0])
        await person.api_keys.revoke(created["id"])
        async for ended in service.apps.follow_revocations(every_seconds=0.05):
            if ended["subject_id"] == created["id"]:
                assert ended["kind"] == "api_key"
                break
        assert await service.apps.verify_key(created["key"]) == {"active": False}


async def test_verifications_at_the_same_time_share_requests(url: str, sign_in: SignIn, app: tuple[str, str]) -> None:
    paths: list[str] = []

    async def record(request: httpx.Request) -> None:
        paths.append(request.url.path)

    async with await sign_in() as person:
        created = [await person.api_keys.create(app_id=app[0]) for _ in range(3)]
        async with Keyway(url=url, app=app) as service:
            service._client.event_hooks = {"request": [record]}
            answers = await asyncio.gather(*(service.apps.verify_key(created[n % 3]["key"]) for n in range(100)))
            assert [answer["key_id"] for answer in answers] == [created[n % 3]["id"] for n in range(100)]
            assert paths == ["/auth/introspections"] * 4
            malformed: list[Any] = ["x" * 16_000, '"' * 12_000, "svc_\0", "\ud800", None, *["a" * 2000] * 31]
            verifications = [service.apps.verify_key(key) for key in [*malformed, created[0]["key"]]]
            assert (await asyncio.gather(*verifications, return_exceptions=True))[-1] == answers[0]
            waiting = [asyncio.create_task(service.apps.verify_key(created[0]["key"])) for _ in range(3)]
            waiting[1].cancel()
            first, cancelled, last = await asyncio.gather(*waiting, return_exceptions=True)
            assert first == last == answers[0] and isinstance(cancelled, asyncio.CancelledError)


async def test_calls_of_an_app_need_its_secret(url: str) -> None:
    async with Keyway(url=url, api_key=f"svc_{'0' * 32}") as keyway:
        with pytest.raises(KeywayError, match=r"app=\(id, secret\)"):
            await keyway.apps.introspect("x")
