"""Public keys of an issuer, each for one algorithm. The only module that needs `cryptography`."""

from __future__ import annotations

from typing import Any, Callable

from ._base64url import decode_base64url
from ._errors import KeywayError

TOKEN_ALGS = ("EdDSA", "ES256", "RS256")
ELLIPTIC_SIGNATURE_BYTES = 64
"""Bytes of an ES256 or EdDSA signature (RFC 7518 section 3.4, RFC 8032 section 5.1.6)."""
MIN_RSA_BYTES = 256
"""Minimum size of an RSA key in bytes (RFC 7518 section 3.3)."""

Verify = Callable[[bytes, bytes], None]
"""Checks a signature (the first argument) of a message (the second); raises `InvalidSignature` if it is wrong."""


class VerificationKey:
    def __init__(self, alg: str, verify: Verify) -> None:
        self.alg = alg
        self._verify = verify

    def verify(self, message: bytes, signature: bytes) -> bool:
        """Whether the signature of the message was made with this key."""
        from cryptography.exceptions import InvalidSignature

        if self.alg != "RS256" and len(signature) != ELLIPTIC_SIGNATURE_BYTES:
            return False
        try:
            self._verify(signature, message)
        except InvalidSignature:
            return False
        return True


def import_key(jwk: dict[str, Any]) -> VerificationKey | None:
    """Imports a key for the algorithm of its type. Returns None for a key that is malformed or too short, or has an
    unsupported type, another algorithm or another use."""
    key_type = _KEY_TYPES.get((jwk.get("kty"), jwk.get("crv")))
    if key_type is None:
        return None
    alg, load = key_type
    if jwk.get("alg", alg) != alg or jwk.get("use", "sig") != "sig":
        return None
    _require_cryptography()
    try:
        verify = load(jwk)
    except ValueError:
        return None  # malformed, for example not a point on the curve
    return VerificationKey(alg, verify) if verify else None


def _ed25519(jwk: dict[str, Any]) -> Verify:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    return Ed25519PublicKey.from_public_bytes(_member(jwk, "x")).verify


def _p256(jwk: dict[str, Any]) -> Verify:
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, EllipticCurvePublicKey
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
    from cryptography.hazmat.primitives.hashes import SHA256

    point = b"\x04" + _member(jwk, "x") + _member(jwk, "y")
    key = EllipticCurvePublicKey.from_encoded_point(SECP256R1(), point)

    def verify(signature: bytes, message: bytes) -> None:
        r, s = (int.from_bytes(half, "big") for half in (signature[:32], signature[32:]))
        key.verify(encode_dss_signature(r, s), message, ECDSA(SHA256()))

    return verify


def _rsa(jwk: dict[str, Any]) -> Verify | None:
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicNumbers
    from cryptography.hazmat.primitives.hashes import SHA256

    modulus = _member(jwk, "n")
    if len(modulus) < MIN_RSA_BYTES:
        return None
    exponent = int.from_bytes(_member(jwk, "e"), "big")
    key = RSAPublicNumbers(exponent, int.from_bytes(modulus, "big")).public_key()
    return lambda signature, message: key.verify(signature, message, PKCS1v15(), SHA256())


_KEY_TYPES: dict[tuple[object, object], tuple[str, Callable[[dict[str, Any]], Verify | None]]] = {
    ("OKP", "Ed25519"): ("EdDSA", _ed25519),
    ("EC", "P-256"): ("ES256", _p256),
    ("RSA", None): ("RS256", _rsa),
}


def _member(jwk: dict[str, Any], name: str) -> bytes:
    value = jwk.get(name)
    content = decode_base64url(value) if isinstance(value, str) else None
    if content is None:
        raise ValueError(f"{name} is not in base64url")
    return content


def _require_cryptography() -> None:
    try:
        import cryptography  # noqa: F401
    except ImportError as cause:
        advice = "Verifying tokens needs the package cryptography: install keyway[verify], or python3-cryptography."
        raise KeywayError("invalid_configuration", advice) from cause
