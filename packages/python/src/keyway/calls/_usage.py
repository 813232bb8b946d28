"""The range of a usage report."""

from __future__ import annotations

from typing import Literal

Bucket = Literal["hour", "day"]
"""Hours are kept for 90 days, days for 400."""


def usage_query(bucket: Bucket | None, start: str | None, end: str | None) -> dict[str, str | None]:
    """The parameters of a usage report; `from` cannot be a name in Python."""
    return {"bucket": bucket, "from": start, "to": end}
