"""Distinguishes omitted fields, which are not sent, from fields that are None, which are sent and remove a value."""

from __future__ import annotations

import enum
from typing import Any


class Omitted(enum.Enum):
    OMITTED = "omitted"


OMITTED = Omitted.OMITTED
"""The default of fields for which None has a meaning."""


def without_omitted(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not OMITTED}


def without_none(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
