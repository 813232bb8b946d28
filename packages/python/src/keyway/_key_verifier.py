"""Verifications of keys that are asked for at the same time share requests."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, NamedTuple

from ._errors import KeywayError, error_from_problem
from ._transport import Transport

MAX_IN_PROGRESS = 4
"""Requests in progress beyond which further verifications wait, and then share one request."""

MAX_KEYS = 32
"""The service's limit for one request."""


class _Waiting(NamedTuple):
    check: dict[str, Any]
    answer: asyncio.Future[Any]


class KeyVerifier:
    """A busy API then spends a fraction of the requests, and one that is not waits no longer."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._waiting: deque[_Waiting] = deque()
        self._workers: set[asyncio.Task[None]] = set()

    async def verify(self, check: dict[str, Any]) -> Any:
        """`check` is the body of a single introspection."""
        waiting = _Waiting(check, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        if len(self._workers) < MAX_IN_PROGRESS:
            worker = asyncio.create_task(self._work())
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)
        return await waiting.answer

    async def _work(self) -> None:
        # A new task runs after its creator paused, so the calls of one turn of the event loop come together.
        while self._waiting:
            batch = [self._waiting.popleft() for _ in range(min(MAX_KEYS, len(self._waiting)))]
            # The callers of some may have been cancelled in the meantime.
            batch = [each for each in batch if not each.answer.done()]
            if len(batch) == 1:
                await self._send_alone(batch[0])
            elif batch:
                await self._send_together(batch)

    async def _send_together(self, batch: list[_Waiting]) -> None:
        try:
            body = {"tokens": [each.check for each in batch]}
            answers = (await self._call("/auth/introspections", body))["data"]
        except KeywayError as error:
            if error.status == 404:  # A service of an earlier version, which counted nothing.
                await asyncio.gather(*(self._send_alone(each) for each in batch))
            else:
                for each in batch:
                    _fail(each, error)
            return
        for each, answer in zip(batch, answers):
            if "error" in answer:
                _fail(each, error_from_problem(answer["error"]))
            elif not each.answer.done():
                each.answer.set_result(answer)
        for each in batch[len(answers) :]:
            _fail(each, KeywayError("bad_response", "The response lacks a key."))

    async def _send_alone(self, waiting: _Waiting) -> None:
        try:
            answer = await self._call("/auth/introspect", waiting.check)
        except KeywayError as error:
            _fail(waiting, error)
        else:
            if not waiting.answer.done():
                waiting.answer.set_result(answer)

    async def _call(self, path: str, body: dict[str, Any]) -> Any:
        return await self._transport.call("POST", path, body=body, credential="app")


def _fail(waiting: _Waiting, error: KeywayError) -> None:
    if not waiting.answer.done():
        waiting.answer.set_exception(error)
