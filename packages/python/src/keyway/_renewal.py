"""Renews one connection's token in place, before the token expires."""

from __future__ import annotations

import asyncio
from typing import Callable

from ._backoff import full_jitter
from ._clock import Clock
from ._errors import KeywayError
from ._token_source import TokenSource, lifetime_seconds

RENEW_AT_SHARE = 0.8
"""Fraction of a token's lifetime after which it is renewed at the latest."""
JITTER_SHARE = 0.1
"""A random part of this fraction of the lifetime is subtracted, so that agents do not renew simultaneously."""
MIN_INTERVAL_SECONDS = 5.0
"""Minimum interval between renewals, since the tokens of a key that is about to expire have ever shorter lifetimes."""
ANSWER_DEADLINE_SECONDS = 10.0
"""If the hub does not answer a renewal within this time, the agent renews again."""
SHORTEST_RETRY_SECONDS = 1.0


class Renewal:
    """Renews the token of one connection. `present` sends a token to the hub. `stop_if_final` stops the agent if an
    error is permanent, and returns whether it did."""

    def __init__(
        self,
        *,
        tokens: TokenSource,
        clock: Clock,
        present: Callable[[str], object],
        stop_if_final: Callable[[BaseException], bool],
    ) -> None:
        self._tokens = tokens
        self._clock = clock
        self._present = present
        self._stop_if_final = stop_if_final
        self._cancel_timer: Callable[[], None] = _no_timer
        self._task: asyncio.Task[None] | None = None
        self._stopped = False
        self._failures = 0
        self._unanswered = False
        self._tried_at = float("-inf")
        self._refused_until = float("-inf")
        """Until when a refused exchange must not be repeated, by its `Retry-After`."""

    def schedule(self, expires_in: object) -> None:
        """Schedules the renewal by the remaining lifetime of the current token, which the hub reported."""
        share = RENEW_AT_SHARE - JITTER_SHARE * self._clock.random()
        self._renew_after(max(lifetime_seconds(expires_in) * share, self._remaining_pause()))

    def accepted(self, expires_in: object) -> None:
        """Handles the frame `token_accepted`."""
        self._failures = 0
        self._unanswered = False
        self.schedule(expires_in)

    def refused(self) -> None:
        """Renews again if the frame that the hub refused was the renewal; until then the old token stays in use."""
        if not self._unanswered:
            return
        self._unanswered = False
        self._tokens.forget()
        self._retry()

    def expiring(self) -> None:
        """Handles the frame `token_expiring`: renews as soon as `MIN_INTERVAL_SECONDS` and `Retry-After` allow."""
        self._renew_after(self._remaining_pause())

    def stop(self) -> None:
        """Stops the timer, and discards the token of an exchange in progress."""
        self._stopped = True
        self._cancel_timer()

    def _remaining_pause(self) -> float:
        return max(0.0, max(self._tried_at + MIN_INTERVAL_SECONDS, self._refused_until) - self._clock.now())

    def _renew_after(self, seconds: float) -> None:
        self._cancel_timer()
        if not self._stopped:
            self._cancel_timer = self._clock.after(seconds, self._start)

    def _start(self) -> None:
        self._task = asyncio.ensure_future(self._renew())

    async def _renew(self) -> None:
        self._tried_at = self._clock.now()
        try:
            token = await self._tokens.get_new()
        except asyncio.CancelledError:
            return
        except Exception as error:
            if not self._stopped and not self._stop_if_final(error):
                self._retry(error)
            return
        if self._stopped:
            return
        self._present(token)
        self._unanswered = True
        self._renew_after(ANSWER_DEADLINE_SECONDS)

    def _retry(self, error: Exception | None = None) -> None:
        retry_after = (error.retry_after or 0.0) if isinstance(error, KeywayError) else 0.0
        self._refused_until = self._clock.now() + retry_after
        wait = full_jitter(self._failures, self._clock.random())
        self._failures += 1
        self._renew_after(retry_after + max(SHORTEST_RETRY_SECONDS, wait))


def _no_timer() -> None:
    """The cancel function while no timer runs."""
