"""Names and numbers of the hub protocol (docs/hub-protocol.md)."""

from __future__ import annotations

import re
from typing import Any, Dict, List, Literal, Union

Json = Union[None, bool, int, float, str, List["Json"], Dict[str, "Json"]]
"""A JSON value, as in `data`."""
Frame = Dict[str, Any]
"""One frame of the hub protocol: a JSON object with a `type`."""

HUB_PROTOCOL = "keyway.hub.v1"
"""The subprotocol that a hub client offers and the hub selects."""
HUB_BEARER_PREFIX = "bearer."
"""Prefix of the offered subprotocol that contains the token. The token is not in `Authorization`, since libraries
differ in how they set headers."""
HUB_RESUME_PREFIX = "resume."
"""Prefix of the offered subprotocol `resume.<resume_token>.<last seq>`, which asks to resume a broken connection."""
REQUEST_ID_PREFIX = "request."
"""A message whose id has this prefix is a request: each receiver sends one answer."""
HUB_MAX_FRAME_BYTES = 64 * 1024
"""Largest text frame either side may send."""
API_KEY_PATTERN = re.compile(r"svc_[0-9A-Za-z]{32}", re.ASCII)
"""The pattern of a whole API key that the service generated; imported keys may have another format."""

Reconnect = Literal["now", "backoff", "exchange", "never"]

CLOSE_CODES: dict[int, Reconnect] = {
    1001: "now",
    1009: "never",
    1011: "backoff",
    1012: "now",
    1013: "backoff",
    4400: "never",
    4401: "exchange",
    4403: "never",
    4408: "exchange",
    4409: "never",
    4410: "never",
    4429: "backoff",
}
"""The hub's close codes, and how a client reconnects after each."""


def reconnect_after(code: int) -> Reconnect:
    """How to reconnect after this close code: with back-off after a lost connection and after an unknown code."""
    return CLOSE_CODES.get(code, "backoff")
