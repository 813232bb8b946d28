"""Answers the requests that arrive (docs/hub-protocol.md, section 3)."""

from __future__ import annotations

import asyncio
import inspect
from collections import OrderedDict
from typing import Any, Awaitable, Callable, Union

from ._errors import KeywayError
from ._events import Delivery, Request
from ._protocol import REQUEST_ID_PREFIX, Frame, Json

MAX_CONCURRENT_REQUESTS = 100
"""Maximum number of requests that are handled concurrently."""
MAX_KEPT_ANSWERS = 256
"""Maximum number of answers that are kept for repeated requests: a sender repeats messages that were not
acknowledged."""
MAX_ERROR_LENGTH = 1000
"""Maximum length of an error's message, in characters."""

Handler = Callable[[Request], Union[Json, Awaitable[Json]]]
"""A function whose result is the answer to a request. It may raise a `KeywayError` with the code `request_failed` and a
`reason` of its own."""
Send = Callable[[str, Json, str], Awaitable[Delivery]]
"""Sends an answer to a connection, in reply to a request."""


class _HandledRequest:
    def __init__(self, sender: str) -> None:
        self.sender = sender
        """The connection to answer: the one that sent the request last, since a requester that reconnects sends it
        again."""
        self.answer: Json = None


class Responder:
    """Answers requests. Without a handler each is answered with `no_handler`."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._handled: OrderedDict[str, _HandledRequest] = OrderedDict()
        self._running = 0
        self._tasks: set[asyncio.Future[None]] = set()
        self.handler: Handler | None = None

    def handle_request(self, frame: Frame) -> bool:
        """Handles a message that is a request, and returns whether it is. A request that the handler has got
        before is answered with the same answer."""
        request_id, sender = str(frame.get("id")), str(frame.get("from"))
        if not request_id.startswith(REQUEST_ID_PREFIX):
            return False
        request_key = f"{frame.get('from_key_id')} {request_id}"
        repeated = self._handled.get(request_key)
        if repeated:
            repeated.sender = sender
            if repeated.answer is not None:
                self._start_task(self._reply(sender, request_id, repeated.answer))
        elif self.handler is None:
            no_handler = _error_answer("no_handler", "This agent answers no requests.")
            self._start_task(self._reply(sender, request_id, no_handler))
        elif self._running >= MAX_CONCURRENT_REQUESTS:
            busy = _error_answer("busy", f"This agent handles {MAX_CONCURRENT_REQUESTS} requests already.")
            self._start_task(self._reply(sender, request_id, busy))
        else:
            request = Request(request_id, sender, frame.get("from_key_id"), frame.get("data"))
            # Remembered and counted here and not in the task, since the next frame may be read before the task starts.
            handled = self._remember(request_key, sender)
            self._running += 1
            self._start_task(self._handle(handled, request, self.handler))
        return True

    def stop(self) -> None:
        """Cancels the running handlers."""
        for task in self._tasks:
            task.cancel()

    def _start_task(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _remember(self, request_key: str, sender: str) -> _HandledRequest:
        handled = self._handled[request_key] = _HandledRequest(sender)
        if len(self._handled) > MAX_KEPT_ANSWERS:
            self._handled.popitem(last=False)
        return handled

    async def _handle(self, handled: _HandledRequest, request: Request, handler: Handler) -> None:
        try:
            handled.answer = await _answer(handler, request)
            await self._reply(handled.sender, request.id, handled.answer)
        finally:
            self._running -= 1

    async def _reply(self, to: str, request_id: str, answer: Json) -> None:
        """An answer that is not JSON or too long is replaced by the error `failed`; other errors of the send are
        ignored."""
        try:
            await self._send(to, answer, request_id)
        except KeywayError as error:
            if error.code not in ("too_large", "invalid_request"):
                return
            try:
                await self._send(to, _error_answer("failed", error.message), request_id)
            except KeywayError:
                return


async def _answer(handler: Handler, request: Request) -> Json:
    try:
        result: Any = handler(request)
        return {"result": await result if inspect.isawaitable(result) else result}
    except KeywayError as error:
        return _error_answer(error.reason or "failed", error.message)
    except Exception as error:
        return _error_answer("failed", str(error))


def _error_answer(code: str, message: str) -> Json:
    return {"error": {"code": code, "message": message[:MAX_ERROR_LENGTH]}}
