"""The parameters of a usage report."""

from __future__ import annotations

from typing import Literal

Bucket = Literal["hour", "day"]
"""Hours are kept for 90 days, days for 400."""


def usage_query(bucket: Bucket | None, start: str | None, end: str | None) -> dict[str, str | None]:
    """The query of a usage report. `start` is its `from`, which is a keyword of Python."""
    return {"bucket": bucket, "from": start, "to": end}
