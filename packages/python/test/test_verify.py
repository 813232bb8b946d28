"""Verification of the tokens of a real service."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

import pytest
from conftest import SignIn

from keyway import KeywayError, MemoryTokenStore, verify_access_token, verify_agent_token


async def agent_token(sign_in: SignIn) -> tuple[str, dict[str, Any]]:
    async with await sign_in() as keyway:
        created = await keyway.api_keys.create(scopes=["agent:connect"])
        return (await keyway.exchange(created["key"]))["token"], dict(created)


async def test_a_good_token_returns_its_claims(url: str, sign_in: SignIn) -> None:
    token, key = await agent_token(sign_in)
    claims = await verify_agent_token(token, issuer=url, audience=f"{url}/hub")
    assert (claims["key_id"], claims["agent_id"]) == (key["id"], key["user_id"])
    assert claims["scope"] == "agent:connect"
    tokens = MemoryTokenStore()
    async with await sign_in(tokens):
        stored = tokens.get()
    assert stored
    access = await verify_access_token(stored.access, issuer=url)
    assert (access["sid"], access["role"]) == (stored.session_id, "user")
    with pytest.raises(KeywayError, match="typ is not agent_ws"):
        await verify_agent_token(stored.access, issuer=url, audience=f"{url}/hub")
    with pytest.raises(KeywayError, match=r"typ is not at\+jwt"):
        await verify_access_token(token, issuer=url)


async def test_a_token_of_another_time_issuer_or_audience_is_refused(url: str, sign_in: SignIn) -> None:
    token, _ = await agent_token(sign_in)
    valid = {"issuer": url, "audience": f"{url}/hub"}
    claims = await verify_agent_token(token, **valid)
    expires_at, begins_at = claims["exp"], claims["nbf"]
    await verify_agent_token(token, **valid, now=lambda: expires_at + 4.9)
    await verify_agent_token(token, **valid, now=lambda: begins_at - 5)
    for wrong, why in [
        ({**valid, "audience": "https://files.example.com"}, "aud is another audience"),
        ({**valid, "now": lambda: expires_at + 5.0}, "it has expired"),
        ({**valid, "now": lambda: begins_at - 5.1}, "in the future"),
    ]:
        with pytest.raises(KeywayError, match=why) as raised:
            await verify_agent_token(token, **wrong)
        assert (raised.value.code, raised.value.status) == ("invalid_token", 401)
    with pytest.raises(KeywayError) as unknown:
        await verify_agent_token(token, issuer="http://127.0.0.1:9", audience="x")
    assert (unknown.value.code, unknown.value.retryable) == ("unavailable", True)


async def test_a_changed_token_is_refused(url: str, sign_in: SignIn) -> None:
    token, _ = await agent_token(sign_in)
    header, payload, signature = token.split(".")
    header_fields = json.loads(base64.urlsafe_b64decode(header + "=="))

    def with_header(**changes: Any) -> str:
        changed = json.dumps({**header_fields, **changes}).encode()
        return f"{base64.urlsafe_b64encode(changed).rstrip(b'=').decode()}.{payload}.{signature}"

    for wrong, why in [
        (f"{header}.{payload[:-4]}AAAA.{signature}", "signature is wrong"),
        (f"{header}.{payload}.", "signature is wrong"),
        (f"{header}.{payload}.{signature}=", "signature is malformed"),
        (f"{header}.{payload}", "three parts"),
        (with_header(alg="none"), "alg is not one of"),
        (with_header(alg="RS256"), "alg is not that of the key"),
        (with_header(kid="other"), "no such key"),
        (with_header(crit=["x"]), "critical"),
        (with_header(kid=7), "kid is missing"),
        ("a" * 8193, "no token"),
    ]:
        with pytest.raises(KeywayError, match=why):
            await verify_agent_token(wrong, issuer=url, audience=f"{url}/hub", now=time.time)
