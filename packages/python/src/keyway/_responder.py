"""Answers the requests that arrive (docs/hub-protocol.md, section 3)."""

from __future__ import annotations

import asyncio
import inspect
from collections import OrderedDict
from typing import Any, Awaitable, Callable, Union

from ._errors import KeywayError
from ._events import Delivery, Request
from ._protocol import REQUEST_ID_PREFIX, Frame, Json

MAX_HANDLED = 100
"""Requests that are handled at a time."""
MAX_KEPT_ANSWERS = 256
"""Number of answers that are kept for repeated requests: a sender repeats what was not acknowledged."""
MAX_ERROR_LENGTH = 1000
"""Maximum length of an error's message, in characters."""

Handler = Callable[[Request], Union[Json, Awaitable[Json]]]
"""Its result is the answer. It may raise a `KeywayError` `request_failed` with a `reason` of its own."""
Send = Callable[[str, Json, str], Awaitable[Delivery]]
"""Sends an answer to a connection, in reply to a request."""


class _Handled:
    def __init__(self, sender: str) -> None:
        self.sender = sender
        """The requesting connection; after a reconnection another one."""
        self.answer: Json = None


class Responder:
    """Answers requests. Without a handler each is answered with `no_handler`."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._handled: OrderedDict[str, _Handled] = OrderedDict()
        self._running = 0
        self._tasks: set[asyncio.Future[None]] = set()
        self.handler: Handler | None = None

    def take(self, frame: Frame) -> bool:
        """Whether a message is a request; one that was handled before gets the same answer again."""
        request_id, sender = str(frame.get("id")), str(frame.get("from"))
        if not request_id.startswith(REQUEST_ID_PREFIX):
            return False
        name = f"{frame.get('from_key_id')} {request_id}"
        known = self._handled.get(name)
        if known:
            known.sender = sender
            if known.answer is not None:
                self._begin(self._reply(sender, request_id, known.answer))
        elif self.handler is None:
            self._begin(self._reply(sender, request_id, _error("no_handler", "This agent answers no requests.")))
        elif self._running >= MAX_HANDLED:
            busy = _error("busy", f"This agent handles {MAX_HANDLED} requests already.")
            self._begin(self._reply(sender, request_id, busy))
        else:
            request = Request(request_id, sender, frame.get("from_key_id"), frame.get("data"))
            # Kept and counted before its task begins, since the next frame may be read before that.
            handled = self._keep(name, sender)
            self._running += 1
            self._begin(self._handle(handled, request, self.handler))
        return True

    def stop(self) -> None:
        """Cancels the handlers that run."""
        for task in self._tasks:
            task.cancel()

    def _begin(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _keep(self, name: str, sender: str) -> _Handled:
        handled = self._handled[name] = _Handled(sender)
        if len(self._handled) > MAX_KEPT_ANSWERS:
            self._handled.popitem(last=False)
        return handled

    async def _handle(self, handled: _Handled, request: Request, handler: Handler) -> None:
        try:
            handled.answer = await _answer(handler, request)
            await self._reply(handled.sender, request.id, handled.answer)
        finally:
            self._running -= 1

    async def _reply(self, to: str, request_id: str, answer: Json) -> None:
        """An answer that is no JSON or too long is a failure; one that cannot be sent is given up."""
        try:
            await self._send(to, answer, request_id)
        except KeywayError as error:
            if error.code not in ("too_large", "invalid_request"):
                return
            try:
                await self._send(to, _error("failed", error.message), request_id)
            except KeywayError:
                return


async def _answer(handler: Handler, request: Request) -> Json:
    try:
        result: Any = handler(request)
        return {"result": await result if inspect.isawaitable(result) else result}
    except KeywayError as error:
        return _error(error.reason or "failed", error.message)
    except Exception as error:
        return _error("failed", str(error))


def _error(code: str, message: str) -> Json:
    return {"error": {"code": code, "message": message[:MAX_ERROR_LENGTH]}}
