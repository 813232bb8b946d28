"""Back-off: the delay before the next attempt."""

from __future__ import annotations

from ._errors import KeywayError
from ._protocol import Reconnect

BASE_SECONDS = 0.5
CAP_SECONDS = 20.0
RESTART_JITTER_SECONDS = 0.5
"""Longest random delay before the first attempt, so that not all agents reconnect to a restarted service at once."""
STABLE_AFTER_SECONDS = 5.0
"""A connection that was ready for this long resets the back-off."""


def full_jitter(attempt: int, random: float) -> float:
    """Seconds, uniform between 0 and a bound that doubles from 0.5 s to 20 s; `attempt` counts from 0."""
    return float(random * min(CAP_SECONDS, BASE_SECONDS * 2 ** min(attempt, 30)))


class Retries:
    """Decides how long to wait before the next connection: shortly after a planned end, longer after every failure."""

    def __init__(self) -> None:
        self._failures = 0

    def next(self, reconnect: Reconnect, why: object, random: float) -> float:
        """The delay in seconds. `why` may be an error with `retry_after`, which is added."""
        attempt = self._failures
        self._failures += 1
        if attempt == 0 and reconnect != "backoff":
            return random * RESTART_JITTER_SECONDS
        retry_after = (why.retry_after or 0) if isinstance(why, KeywayError) else 0
        return retry_after + full_jitter(attempt, random)

    def after_connection_of(self, seconds: float) -> None:
        """Called when a connection ends that was ready for this long."""
        if seconds >= STABLE_AFTER_SECONDS:
            self._failures = 0
