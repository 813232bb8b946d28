"""Requests and answers (docs/hub-protocol.md, section 3), in cases that a real hub causes rarely."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from keyway import Delivery, KeywayError, Request
from keyway._requests import MAX_PENDING, Requests
from keyway._responder import MAX_CONCURRENT_REQUESTS, Responder
from keyway._stream import MAX_BUFFERED, Stream


class Asker:
    """The requests of an agent, whose fake hub acknowledges each as delivered to `delivered` connections and held for
    `held` ones."""

    def __init__(self, delivered: int, held: int = 0) -> None:
        self.sent: list[tuple[str, str, Any]] = []
        self.delivery = Delivery(delivered, held)
        self.requests = Requests(self._send)

    async def _send(self, message_id: str, to: str, data: Any) -> Delivery:
        self.sent.append((message_id, to, data))
        return self.delivery

    async def ask(self, timeout: float = 30) -> asyncio.Task[Any]:
        request_task = asyncio.create_task(self.requests.request("printer", "page", timeout))
        while not self.sent:
            await asyncio.sleep(0)
        return request_task

    def answer(self, data: Any, sender: str = "printer") -> None:
        frame = {"type": "message", "id": "x", "from": sender, "from_key_id": "k", "data": data}
        assert self.requests.handle_answer({**frame, "reply_to": self.sent[-1][0]})


def refusal(code: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": "No."}}


async def failure(request_task: asyncio.Task[Any]) -> tuple[str, str | None, bool]:
    with pytest.raises(KeywayError) as raised:
        await request_task
    return raised.value.code, raised.value.reason, raised.value.retryable


async def test_a_request_to_several_waits_for_a_result_until_all_of_them_refused() -> None:
    asker = Asker(delivered=2, held=1)
    request_task = await asker.ask()
    asker.answer(refusal("busy"), "a")
    asker.answer(refusal("no_handler"), "b")
    asker.answer({"result": 7}, "c")
    asker.answer({"result": "too late"}, "a")
    assert await request_task == 7

    asker = Asker(delivered=2)
    request_task = await asker.ask()
    asker.answer(refusal("no_handler"), "a")
    asker.answer(refusal("no_handler"), "a")
    await asyncio.sleep(0)
    assert not request_task.done(), "the same connection twice"
    asker.answer(refusal("busy"), "b")
    assert await failure(request_task) == ("request_failed", "busy", True)


async def test_a_request_to_a_held_connection_waits_and_ends_with_its_time() -> None:
    assert await failure(await Asker(delivered=0, held=1).ask(timeout=0.01)) == ("timeout", None, True)


@pytest.mark.parametrize("data", [7, None, ["x"], {"error": "paper"}, {"page": 1}])
async def test_data_of_another_form_is_itself_the_result(data: Any) -> None:
    asker = Asker(delivered=1)
    request_task = await asker.ask()
    asker.answer(data, "api")
    assert await request_task == data


async def test_requests_without_an_answer_are_bounded() -> None:
    asker = Asker(delivered=1)
    waiting = [asyncio.create_task(asker.requests.request("printer", n, 30)) for n in range(MAX_PENDING)]
    while len(asker.sent) < MAX_PENDING:
        await asyncio.sleep(0)
    with pytest.raises(KeywayError) as raised:
        await asker.requests.request("printer", "one more", 30)
    assert raised.value.code == "queue_full"
    asker.requests.reject_all(KeywayError("closed", "closed"))
    ends = await asyncio.gather(*waiting, return_exceptions=True)
    assert {end.code for end in ends if isinstance(end, KeywayError)} == {"closed"} and len(ends) == MAX_PENDING


class Printer:
    """A responder whose answers are recorded."""

    def __init__(self) -> None:
        self.answers: list[tuple[str, Any, str]] = []
        self.handled: list[Any] = []
        self.may_answer = asyncio.Event()
        self.responder = Responder(self._send)
        self.responder.handler = self._handle

    async def _send(self, to: str, answer: Any, reply_to: str) -> Delivery:
        self.answers.append((to, answer, reply_to))
        return Delivery(1, 0)

    async def _handle(self, request: Request) -> Any:
        self.handled.append(request.data)
        await self.may_answer.wait()
        return request.data

    def ask(self, request_id: str, sender: str = "asker", data: Any = None) -> None:
        frame = {"type": "message", "id": f"request.{request_id}", "from": sender, "from_key_id": "k", "data": data}
        assert self.responder.handle_request(frame)

    async def until(self, answers: int) -> None:
        while len(self.answers) < answers:
            await asyncio.sleep(0)


async def test_a_handler_is_called_once_for_a_request_that_arrives_again() -> None:
    printer = Printer()
    printer.ask("1", data="page")
    printer.ask("1", sender="asker, back again", data="page")
    printer.may_answer.set()
    await printer.until(1)
    assert printer.answers == [("asker, back again", {"result": "page"}, "request.1")]
    printer.ask("1", sender="asker, once more", data="page")
    await printer.until(2)
    assert printer.answers[1] == ("asker, once more", {"result": "page"}, "request.1")
    assert printer.handled == ["page"]


async def test_a_hundred_requests_are_handled_at_a_time_and_more_are_refused() -> None:
    printer = Printer()
    for n in range(MAX_CONCURRENT_REQUESTS):
        printer.ask(str(n), data=n)
    printer.ask("one more")
    await printer.until(1)
    assert printer.answers[0][1]["error"]["code"] == "busy"
    printer.may_answer.set()
    await printer.until(MAX_CONCURRENT_REQUESTS + 1)
    printer.ask("later", data="later")
    await printer.until(MAX_CONCURRENT_REQUESTS + 2)
    assert printer.answers[-1] == ("asker", {"result": "later"}, "request.later")


async def test_an_iterator_that_is_read_too_slowly_is_closed_and_says_so() -> None:
    closed: list[Stream[int]] = []
    stream: Stream[int] = Stream(closed.append, "changes")
    for n in range(MAX_BUFFERED + 1):
        stream.push(n)
    assert closed == [stream]
    with pytest.raises(KeywayError) as raised:
        await anext(stream)
    assert raised.value.code == "queue_full"


async def test_an_agent_without_a_handler_says_so() -> None:
    printer = Printer()
    printer.responder.handler = None
    printer.ask("1")
    await printer.until(1)
    assert printer.answers[0][1]["error"]["code"] == "no_handler"
