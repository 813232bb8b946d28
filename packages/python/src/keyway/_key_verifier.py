"""Verifies API keys; concurrent verifications share requests."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from itertools import islice
from typing import Any, NamedTuple

from ._errors import KeywayError, error_from_problem
from ._transport import Transport

MAX_REQUESTS_IN_PROGRESS = 4
"""While this many requests are in progress, further verifications wait; then they share one request."""

MAX_KEYS = 32
"""Maximum number of keys in one request, which is the service's limit."""

MAX_CHARACTERS = 20_000
"""Maximum length of all keys in one request, in characters. The service accepts a body of 24 KiB."""

SHAREABLE_CREDENTIAL = re.compile(r"[\w.~+/=-]{1,2000}", re.ASCII)
"""Matches credentials that may share a request. Generated keys and tokens have only these characters (RFC 6750 section
2.1). Others are verified in requests of their own, so that a stranger's malformed credential cannot make a shared
request fail."""


class _PendingVerification(NamedTuple):
    check: dict[str, Any]
    answer: asyncio.Future[Any]


class KeyVerifier:
    """Sends a verification at once while few requests are in progress; those that had to wait share one request."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._queue: deque[_PendingVerification] = deque()
        self._workers: set[asyncio.Task[None]] = set()

    async def verify(self, check: dict[str, Any]) -> Any:
        """Verifies one key. `check` is the body of a single introspection."""
        pending = _PendingVerification(check, asyncio.get_running_loop().create_future())
        self._queue.append(pending)
        if len(self._workers) < MAX_REQUESTS_IN_PROGRESS:
            worker = asyncio.create_task(self._send_batches())
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)
        return await pending.answer

    async def _send_batches(self) -> None:
        # A task starts after the current turn of the event loop, so calls that are made in the same turn share a
        # request.
        while self._queue:
            batch = [self._queue.popleft() for _ in range(_next_batch_size(self._queue))]
            # Verifications whose callers have been cancelled in the meantime are left out.
            batch = [each for each in batch if not each.answer.done()]
            if len(batch) == 1:
                await self._send_alone(batch[0])
            elif batch:
                await self._send_together(batch)

    async def _send_together(self, batch: list[_PendingVerification]) -> None:
        try:
            body = {"tokens": [each.check for each in batch]}
            answers = (await self._call("/auth/introspections", body))["data"]
        except KeywayError as error:
            # The service refused the whole request, because it is malformed or too long, or the service is too old to
            # know the path. It has counted no call, so each verification may be sent alone.
            if error.status in (400, 404, 413):
                await asyncio.gather(*(self._send_alone(each) for each in batch))
            else:
                for each in batch:
                    _fail(each, error)
            return
        except Exception as error:  # otherwise the callers would wait forever
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

    async def _send_alone(self, pending: _PendingVerification) -> None:
        try:
            answer = await self._call("/auth/introspect", pending.check)
        except Exception as error:  # for example a value that cannot be written as JSON
            _fail(pending, error)
        else:
            if not pending.answer.done():
                pending.answer.set_result(answer)

    async def _call(self, path: str, body: dict[str, Any]) -> Any:
        return await self._transport.call("POST", path, body=body, credential="app")


def _next_batch_size(queue: deque[_PendingVerification]) -> int:
    """How many verifications from the head of the queue share the next request."""
    characters = 0
    for count, each in enumerate(islice(queue, MAX_KEYS)):
        characters += len(each.check["token"]) if _is_shareable(each.check) else MAX_CHARACTERS + 1
        if characters > MAX_CHARACTERS:
            return max(1, count)
    return min(MAX_KEYS, len(queue))


def _is_shareable(check: dict[str, Any]) -> bool:
    """Whether the verification may share a request. Checks types too, since callers may have no type checker."""
    token = check.get("token")
    is_credential = isinstance(token, str) and SHAREABLE_CREDENTIAL.fullmatch(token) is not None
    return is_credential and isinstance(check.get("consume") or 0, int)


def _fail(pending: _PendingVerification, error: Exception) -> None:
    if not pending.answer.done():
        pending.answer.set_exception(error)
