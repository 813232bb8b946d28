"""Requests to other agents, each with one answer (docs/hub-protocol.md, section 3)."""

from __future__ import annotations

import asyncio
import secrets
from typing import Any, Awaitable, Callable

from ._errors import KeywayError
from ._events import Delivery
from ._protocol import REQUEST_ID_PREFIX, Frame, Json

MAX_PENDING = 1000
"""Maximum number of requests without an answer; more are refused at once."""
DEFAULT_TIMEOUT_SECONDS = 30.0
MAX_TIMEOUT_SECONDS = 86_400.0

Send = Callable[[str, str, Json], Awaitable[Delivery]]
"""Sends a message: its id, its receiver and its data."""


class _PendingRequest:
    def __init__(self) -> None:
        self.result: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self.receivers: int | None = None
        """Number of receivers, including `Delivery.held`; None until the hub has acknowledged the request."""
        self.refused_by: set[str] = set()
        # The error if all receivers refuse: the last one other than `no_handler`, if there is any.
        self.refusal: KeywayError | None = None

    def fail(self, error: BaseException) -> None:
        if not self.result.done():
            self.result.set_exception(error)

    def fail_if_all_refused(self) -> None:
        """Fails once every receiver has refused. Their number is known from the acknowledgement, before which answers
        may arrive."""
        if self.receivers == 0:
            self.fail(_no_responders())
        elif self.receivers is not None and len(self.refused_by) >= self.receivers and self.refusal:
            self.fail(self.refusal)


class Requests:
    """The requests of one agent that have no answer yet."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._pending: dict[str, _PendingRequest] = {}
        self._id_prefix = f"{REQUEST_ID_PREFIX}{secrets.token_hex(16)}-"
        self._counter = 0

    async def request(self, to: str, data: Json, timeout: float) -> Json:
        """Returns the first result; raises once every receiver has refused."""
        if not 0 < timeout <= MAX_TIMEOUT_SECONDS:
            message = f"timeout: must be more than 0 and at most {MAX_TIMEOUT_SECONDS:g} seconds, for example 5."
            raise KeywayError("invalid_configuration", message)
        if len(self._pending) >= MAX_PENDING:
            message = f"{MAX_PENDING} requests wait for their answers. Await request() before sending more."
            raise KeywayError("queue_full", message, retryable=True)
        self._counter += 1
        request_id = f"{self._id_prefix}{self._counter}"
        pending = self._pending[request_id] = _PendingRequest()
        sending = asyncio.ensure_future(self._send(request_id, to, data))
        sending.add_done_callback(lambda send: _on_sent(pending, send))
        try:
            return await asyncio.wait_for(pending.result, timeout)
        except asyncio.TimeoutError:
            message = f"No answer came within {timeout:g} s. The request may have been handled all the same."
            raise KeywayError("timeout", message, retryable=True) from None
        finally:
            del self._pending[request_id]
            sending.cancel()  # drops the request if it has not been sent yet

    def handle_answer(self, frame: Frame) -> bool:
        """Handles a message that is an answer, and returns whether it is; drops an answer that no request of this agent
        awaits."""
        reply_to = frame.get("reply_to")
        if not isinstance(reply_to, str) or not reply_to.startswith(REQUEST_ID_PREFIX):
            return False
        pending = self._pending.get(reply_to)
        if pending and not pending.result.done():
            _handle_data(pending, str(frame.get("from")), frame.get("data"))
        return True

    def reject_all(self, error: KeywayError) -> None:
        """Rejects all requests, since no more answers can arrive."""
        for pending in self._pending.values():
            pending.fail(error)


def _on_sent(pending: _PendingRequest, send: asyncio.Future[Delivery]) -> None:
    if send.cancelled():
        return
    error = send.exception()
    if error is not None:
        return pending.fail(error)
    delivery = send.result()
    pending.receivers = delivery.delivered + delivery.held
    pending.fail_if_all_refused()


def _handle_data(pending: _PendingRequest, sender: str, data: Any) -> None:
    """Data without `result` or `error` is itself the result, so that clients without this convention can answer."""
    error = data.get("error") if isinstance(data, dict) else None
    if isinstance(error, dict) and isinstance(error.get("code"), str) and isinstance(error.get("message"), str):
        pending.refused_by.add(sender)
        if error["code"] != "no_handler" or pending.refusal is None:
            pending.refusal = _refusal_error(error["code"], error["message"])
        pending.fail_if_all_refused()
    else:
        pending.result.set_result(data["result"] if isinstance(data, dict) and "result" in data else data)


def _refusal_error(code: str, message: str) -> KeywayError:
    if code == "no_handler":
        return _no_responders()
    return KeywayError("request_failed", message, reason=code, retryable=code == "busy")


def _no_responders() -> KeywayError:
    advice = "No agent that answers requests is connected there. Check the id, or try again later."
    return KeywayError("no_responders", advice, retryable=True)
