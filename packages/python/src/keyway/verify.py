"""Verification of Keyway's tokens in a service of your own. Needs `cryptography` (`keyway[verify]`)."""

from __future__ import annotations

import asyncio
import json
import time
import weakref
from typing import Any, Callable, Literal, TypedDict, cast

from ._base64url import decode_base64url
from ._errors import KeywayError
from ._jwks import Jwks
from ._verification_key import TOKEN_ALGS

CLOCK_TOLERANCE_SECONDS = 5
"""Clocks of two services may differ by this much."""
MAX_TOKEN_LENGTH = 8192


class _Claims(TypedDict):
    iss: str
    aud: str
    sub: str
    iat: int
    exp: int
    jti: str


class _Scope(TypedDict, total=False):
    scope: str


class AgentTokenClaims(_Claims, _Scope):
    """The claims of an agent token. `agent_id` is the owner's id and equals `sub`; `scope` is space separated, and
    absent when unrestricted."""

    type: Literal["agent_ws"]
    agent_id: str
    app_id: str
    key_id: str
    nbf: int


class AccessTokenClaims(_Claims, _Scope):
    """The claims of an access token (RFC 9068). `scope` is present in tokens of apps, and absent after a person's
    sign-in."""

    type: Literal["access"]
    client_id: str
    sid: str
    role: Literal["user", "support", "admin"]


async def verify_agent_token(
    token: str, *, issuer: str, audience: str, ssl: Any = None, now: Callable[[], float] = time.time
) -> AgentTokenClaims:
    """Verifies signature, algorithm, type, issuer, audience and times. It does not check whether the key was revoked
    since: use `apps.follow_revocations` or `apps.introspect` for that.

    :param issuer: Keyway's public URL: must equal the token's `iss`; its `/.well-known/jwks.json` has the keys
    :param audience: must equal the token's `aud`: `<public url>/hub`, or the one registered for your app
    :param ssl: an `ssl.SSLContext`, where the issuer's certificate is not signed by a public authority
    :param now: returns the current time in seconds since 1970
    :raises KeywayError: `invalid_token` if it is not valid, `unavailable` if the issuer's keys cannot be fetched
    """
    claims = await _verified_claims(token, "agent_ws", issuer, ssl)
    _check_claims(claims, "agent_ws", issuer, audience, now())
    _require_texts(claims, "agent_id", "app_id", "key_id")
    if claims["agent_id"] != claims["sub"]:
        raise _invalid("agent_id is not sub")
    return cast(AgentTokenClaims, claims)


async def verify_access_token(
    token: str, *, issuer: str, audience: str | None = None, ssl: Any = None, now: Callable[[], float] = time.time
) -> AccessTokenClaims:
    """Verifies an access token, like `verify_agent_token`. `audience` defaults to the issuer."""
    claims = await _verified_claims(token, "at+jwt", issuer, ssl)
    _check_claims(claims, "access", issuer, audience or issuer, now())
    _require_texts(claims, "client_id", "sid", "role")
    return cast(AccessTokenClaims, claims)


async def _verified_claims(token: str, typ: str, issuer: str, ssl: Any) -> dict[str, Any]:
    """Returns the claims if header and signature are valid."""
    if not isinstance(token, str) or len(token) > MAX_TOKEN_LENGTH:
        raise _invalid("it is no token")
    parts = token.split(".")
    if len(parts) != 3:
        raise _invalid("it has not three parts")
    key_id, alg = _checked_header(parts[0], typ)
    signature = decode_base64url(parts[2])
    if signature is None:
        raise _invalid("the signature is malformed")
    key = await _jwks_of(issuer, ssl).key(key_id)
    if key is None:
        raise _invalid("the issuer has no such key")
    # The algorithm is that of the key, never that of the token (RFC 8725 section 3.1).
    if key.alg != alg:
        raise _invalid("alg is not that of the key")
    if not key.verify(f"{parts[0]}.{parts[1]}".encode(), signature):
        raise _invalid("the signature is wrong")
    return _object(parts[1])


def _checked_header(part: str, typ: str) -> tuple[str, str]:
    """Returns the key id and the algorithm of a valid header. Keys that it references or embeds (jku, x5u, jwk) are
    never used."""
    header = _object(part)
    alg, key_id = header.get("alg"), header.get("kid")
    if not isinstance(alg, str) or alg not in TOKEN_ALGS:
        raise _invalid(f"alg is not one of {', '.join(TOKEN_ALGS)}")
    if header.get("typ") != typ:
        raise _invalid(f"typ is not {typ}")
    if "crit" in header:
        raise _invalid("it has critical extensions")
    if not isinstance(key_id, str):
        raise _invalid("kid is missing")
    return key_id, alg


def _check_claims(claims: dict[str, Any], kind: str, issuer: str, audience: str, now: float) -> None:
    if claims.get("type") != kind:
        raise _invalid(f"type is not {kind}")
    if claims.get("iss") != issuer:
        raise _invalid("iss is another issuer")
    if claims.get("aud") != audience:
        raise _invalid("aud is another audience")
    _require_texts(claims, "sub", "jti")
    if "scope" in claims and not isinstance(claims["scope"], str):
        raise _invalid("scope is no text")
    latest = now + CLOCK_TOLERANCE_SECONDS
    issued_at, expires_at = _instant(claims.get("iat")), _instant(claims.get("exp"))
    if issued_at is None or issued_at > latest:
        raise _invalid("iat is missing or in the future")
    if expires_at is None or expires_at <= issued_at:
        raise _invalid("exp is missing or before iat")
    if expires_at <= now - CLOCK_TOLERANCE_SECONDS:
        raise _invalid("it has expired")
    if kind == "agent_ws" or "nbf" in claims:
        begins_at = _instant(claims.get("nbf"))
        if begins_at is None or begins_at > latest:
            raise _invalid("nbf is missing or in the future")


_CACHES: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, int], Jwks]]
_CACHES = weakref.WeakKeyDictionary()


def _jwks_of(issuer: str, ssl: Any) -> Jwks:
    """One cache for each event loop, issuer and `ssl`."""
    jwks_by_issuer = _CACHES.setdefault(asyncio.get_running_loop(), {})
    url = f"{issuer.rstrip('/')}/.well-known/jwks.json"
    return jwks_by_issuer.setdefault((issuer, id(ssl)), Jwks(url, ssl))


def _object(part: str) -> dict[str, Any]:
    content = decode_base64url(part)
    if content is None:
        raise _invalid("it is not in canonical base64url")
    try:
        value = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise _invalid("it holds no JSON object")
    return value


def _require_texts(claims: dict[str, Any], *names: str) -> None:
    for name in names:
        if not isinstance(claims.get(name), str) or not claims[name]:
            raise _invalid(f"{name} is missing")


def _instant(value: object) -> int | None:
    """A NumericDate (RFC 7519 section 2) in whole seconds, as Keyway writes it; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _invalid(why: str) -> KeywayError:
    return KeywayError("invalid_token", f"The token is not accepted: {why}.", status=401)
