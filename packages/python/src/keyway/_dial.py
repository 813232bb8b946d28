"""One attempt to connect: obtains a token and performs the handshake. Fails if `ready` does not arrive within 10 s."""

from __future__ import annotations

import asyncio
from typing import Callable

from ._clock import Cancel, Clock
from ._hub_connection import ABNORMAL_CLOSURE, HubClosed, HubConnection
from ._token_source import TokenSource

DIAL_TIMEOUT_SECONDS = 10.0
"""Timeout of an attempt: the exchange, the handshake and the wait for `ready` together."""


class Dial:
    """One attempt to connect, which starts at once. `on_failed` is called at most once, and not after `succeeded` or
    `give_up`."""

    def __init__(
        self,
        *,
        tokens: TokenSource,
        clock: Clock,
        connect: Callable[[str], HubConnection],
        on_failed: Callable[[HubClosed | BaseException], None],
    ) -> None:
        self._tokens = tokens
        self._connect = connect
        self._on_failed = on_failed
        self._ended = False
        self.connection: HubConnection | None = None
        timeout = HubClosed(ABNORMAL_CLOSURE, "no answer in time")
        self._cancel_timer: Cancel = clock.after(DIAL_TIMEOUT_SECONDS, lambda: self.fail(timeout))
        self._task = asyncio.ensure_future(self._run())

    def succeeded(self) -> None:
        """Ends the attempt, because the connection is ready."""
        self._ended = True
        self._cancel_timer()

    def give_up(self) -> None:
        """Ends the attempt without calling `on_failed`."""
        self.succeeded()
        if self.connection:
            self.connection.close()

    def fail(self, why: HubClosed | BaseException) -> None:
        """Ends the attempt, and calls `on_failed` if it has not ended before."""
        if self._ended:
            return
        self.give_up()
        self._on_failed(why)

    async def _run(self) -> None:
        try:
            token = await self._tokens.get()
        except asyncio.CancelledError:
            return
        except Exception as error:
            self.fail(error)
            return
        if not self._ended:
            self.connection = self._connect(token)
