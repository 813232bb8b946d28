"""Time and randomness. Time is monotonic, so that a wrong or changed system time affects no lifetime."""

from __future__ import annotations

import asyncio
import random
import time
from typing import Callable, Protocol

Cancel = Callable[[], None]


class Clock(Protocol):
    """The package's source of time; tests pass a clock of their own."""

    def now(self) -> float:
        """Monotonic seconds."""

    def after(self, seconds: float, callback: Callable[[], None]) -> Cancel:
        """Calls `callback` once after this time. Returns a function that cancels the call."""

    def random(self) -> float:
        """A random number, uniform in [0, 1)."""


class SystemClock:
    """The system's monotonic clock, and the timers of the running event loop."""

    def now(self) -> float:
        return time.monotonic()

    def after(self, seconds: float, callback: Callable[[], None]) -> Cancel:
        return asyncio.get_running_loop().call_later(max(0.0, seconds), callback).cancel

    def random(self) -> float:
        return random.random()
