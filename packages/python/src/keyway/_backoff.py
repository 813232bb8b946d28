"""Back-off: the delay before a failed connection or call is tried again."""

from __future__ import annotations

from ._errors import KeywayError
from ._protocol import Reconnect

BASE_SECONDS = 0.5
CAP_SECONDS = 20.0
RESTART_JITTER_SECONDS = 0.5
"""Maximum random delay of the first attempt to reconnect, so that not all agents reconnect to a restarted service at
once."""
STABLE_AFTER_SECONDS = 5.0
"""A connection that was ready for this long resets the back-off."""


def full_jitter(attempt: int, random: float) -> float:
    """A random delay in seconds, between 0 and a bound that doubles from 0.5 s to 20 s. `attempt` counts from 0."""
    return float(random * min(CAP_SECONDS, BASE_SECONDS * 2 ** min(attempt, 30)))


class Retries:
    """Decides the delay before the next attempt to connect: short after a planned end, longer after each failure."""

    def __init__(self) -> None:
        self._failures = 0

    def next(self, reconnect: Reconnect, why: object, random: float) -> float:
        """The delay in seconds: short for the first attempt after a planned end, otherwise a back-off, which begins
        after the `retry_after` of the error `why` if it has one."""
        attempt = self._failures
        self._failures += 1
        if attempt == 0 and reconnect != "backoff":
            return random * RESTART_JITTER_SECONDS
        retry_after = (why.retry_after or 0) if isinstance(why, KeywayError) else 0
        return retry_after + full_jitter(attempt, random)

    def connection_ended(self, ready_seconds: float) -> None:
        """Resets the back-off if the connection that ended was ready for long enough."""
        if ready_seconds >= STABLE_AFTER_SECONDS:
            self._failures = 0
