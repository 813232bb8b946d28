"""Base64url without padding (RFC 4648 section 5)."""

from __future__ import annotations

import base64
import binascii
import re

_ALPHABET = re.compile(r"[A-Za-z0-9_-]*", re.ASCII)


def decode_base64url(text: str) -> bytes | None:
    """Decodes the text. Returns None for an encoding that is not canonical, so that each token has only one
    encoding."""
    if not _ALPHABET.fullmatch(text) or len(text) % 4 == 1:
        return None
    try:
        content = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error:
        return None
    return content if base64.urlsafe_b64encode(content).rstrip(b"=").decode() == text else None
