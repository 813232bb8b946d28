"""Fields that a call does not send, as opposed to None, which removes a value."""

from __future__ import annotations

import enum
from typing import Any


class Omitted(enum.Enum):
    """The type of `OMITTED`."""

    OMITTED = "omitted"


OMITTED = Omitted.OMITTED
"""The default of fields for which None has a meaning."""


def given(**fields: Any) -> dict[str, Any]:
    """The fields that are not omitted."""
    return {name: value for name, value in fields.items() if value is not OMITTED}


def present(**fields: Any) -> dict[str, Any]:
    """The fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}
