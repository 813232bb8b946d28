"""Agents against a real service."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from conftest import SignIn, event

from keyway import Agent, Delivery, Disconnected, Keyway, KeywayError, Message, Renewed, Request, Stopped
from keyway._hub_connection import _parse
from keyway._inbox import Inbox
from keyway._hub_session import HubSession

WRONG_KEY = f"svc_{'0' * 32}"


async def ready(agent: Agent) -> Any:
    agent.start()
    return await event(agent, "ready")


async def test_an_agent_connects_and_reports_its_identity(url: str, sign_in: SignIn) -> None:
    keyway = await sign_in()
    created = await keyway.api_keys.create(name="pump 4", scopes=["agent:connect"])
    async with Agent(url=url, api_key=created["key"]) as agent:
        connection = await event(agent, "ready")
        assert connection.key_id == created["id"]
        assert connection.agent_id == created["user_id"]
        assert connection.key_name == "pump 4"
        assert connection.scopes == ["agent:connect"]
        assert 800 < connection.expires_in <= 900
        assert agent.connected and agent.connection == connection
        listed = [each async for each in keyway.agents.all()]
        assert [each["connection_id"] for each in listed] == [connection.connection_id]
        assert str(listed[0]["client"]).startswith("keyway-python/")
    assert not agent.connected
    await until_disconnected(keyway)


async def test_data_that_is_nested_too_deeply_is_refused_and_stops_no_agent(url: str, sign_in: SignIn) -> None:
    key = (await (await sign_in()).api_keys.create())["key"]
    async with Agent(url=url, api_key=key) as sender, Agent(url=url, api_key=key) as agent:
        await asyncio.gather(event(sender, "ready"), event(agent, "ready"))
        assert agent.connection
        to = agent.connection.connection_id
        stream = aiter(agent)
        deep: Any = []
        for _ in range(64):
            deep = [deep]
        with pytest.raises(KeywayError, match="64 levels"):
            await sender.send(to, deep)
        assert (await sender.send(to, deep[0])).delivered == 1
        assert (await anext(stream)).data == deep[0]
    assert _parse('{"type":' + "[" * 100_000) is None


async def until_disconnected(keyway: Keyway) -> None:
    while (await keyway.agents.list())["data"]:
        await asyncio.sleep(0.05)


async def test_agents_of_one_owner_exchange_messages_in_order(url: str, sign_in: SignIn) -> None:
    keyway = await sign_in()
    key = (await keyway.api_keys.create())["key"]
    async with Agent(url=url, api_key=key) as sender, Agent(url=url, api_key=key) as receiver:
        await asyncio.gather(event(sender, "ready"), event(receiver, "ready"))
        assert receiver.connection and sender.connection
        stream = aiter(receiver)
        to = receiver.connection.connection_id
        answers = await asyncio.gather(*(sender.send(to, {"n": n}) for n in range(100)))
        assert {answer.delivered for answer in answers} == {1}
        messages = [await anext(stream) for _ in range(100)]
        assert [message.data for message in messages] == [{"n": n} for n in range(100)]
        assert {message.from_ for message in messages} == {sender.connection.connection_id}
        assert (await sender.send("nobody", None)).delivered == 0
        assert (await keyway.agents.send(to, "from afar")).delivered == 1
        last = await anext(stream)
        assert (last.from_, last.from_key_id, last.data) == ("api", None, "from afar")


async def test_listeners_are_functions_or_coroutines_and_their_errors_stop_nothing(
    url: str, sign_in: SignIn
) -> None:
    keyway = await sign_in()
    key = (await keyway.api_keys.create())["key"]
    reported: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["exception"]))
    agent = Agent(url=url, api_key=key)
    seen: list[str] = []

    @agent.on("message")
    def fail(message: Message) -> None:
        raise RuntimeError("a bug")

    @agent.on("message")
    async def collect(message: Message) -> None:
        seen.append(str(message.data))
        await agent.close()

    agent.on("ready", lambda ready: asyncio.ensure_future(keyway.agents.send(ready.connection_id, "hello")))
    await agent.run()
    assert seen == ["hello"]
    assert [str(error) for error in reported] == ["a bug"]
    with pytest.raises(ValueError, match="these exist: disconnected, gap, message"):
        agent.on("messages", print)


async def test_revoking_the_key_stops_its_agent_permanently_and_says_what_to_do(
    url: str, sign_in: SignIn
) -> None:
    keyway = await sign_in()
    created = await keyway.api_keys.create()
    agent = Agent(url=url, api_key=created["key"])
    disconnected: list[Disconnected] = []
    stopped: list[Stopped] = []
    agent.on("disconnected", disconnected.append)
    agent.on("stopped", stopped.append)
    agent.on("ready", lambda _: asyncio.ensure_future(keyway.api_keys.revoke(created["id"])))
    with pytest.raises(KeywayError, match="was revoked. Make a new key") as raised:
        await agent.run()
    assert raised.value.code == "revoked"
    assert [(each.code, each.will_reconnect) for each in disconnected] == [(4410, False)]
    assert [each.error for each in stopped] == [raised.value]
    with pytest.raises(KeywayError) as after:
        await agent.send("all", 1)
    assert after.value is raised.value


async def test_an_unknown_key_stops_the_agent_and_iterating_raises(url: str) -> None:
    agent = Agent(url=url, api_key=WRONG_KEY)
    agent.start()
    with pytest.raises(KeywayError, match="unknown here") as raised:
        async for _ in agent:
            pass
    assert (raised.value.code, raised.value.status) == ("invalid_api_key", 401)
    await agent.close()


async def test_without_the_scope_a_send_is_refused_and_the_agent_stays(url: str, sign_in: SignIn) -> None:
    keyway = await sign_in()
    key = (await keyway.api_keys.create(scopes=["agent:connect"]))["key"]
    async with Agent(url=url, api_key=key) as agent:
        with pytest.raises(KeywayError) as raised:
            await agent.send("all", "hello")
        assert raised.value.code == "insufficient_scope"
        assert agent.connected


async def test_a_refused_message_costs_nothing(url: str) -> None:
    agent = Agent(url=url, api_key=WRONG_KEY)
    for data, code in [("x" * 65_536, "too_large"), (object(), "invalid_request"), (float("nan"), "invalid_request")]:
        with pytest.raises(KeywayError) as raised:
            await agent.send("all", data)  # type: ignore[arg-type]
        assert raised.value.code == code
    waiting = [asyncio.ensure_future(agent.send("all", n)) for n in range(256)]
    await asyncio.sleep(0)
    with pytest.raises(KeywayError) as full:
        await agent.send("all", "one more")
    assert (full.value.code, full.value.retryable) == ("queue_full", True)
    waiting[0].cancel()
    await asyncio.sleep(0)
    waiting.append(asyncio.ensure_future(agent.send("all", "takes its place")))
    await asyncio.sleep(0)
    await agent.close()
    ends = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(ends[0], asyncio.CancelledError)
    assert {end.code for end in ends[1:] if isinstance(end, KeywayError)} == {"closed"}
    assert len(ends) == 257


async def test_cancelled_sends_and_requests_hold_up_no_others_also_over_a_break(url: str, sign_in: SignIn) -> None:
    key = (await (await sign_in()).api_keys.create())["key"]
    async with Agent(url=url, api_key=key) as sender, Agent(url=url, api_key=key) as receiver:
        await asyncio.gather(event(sender, "ready"), event(receiver, "ready"))
        assert receiver.connection
        stream, to = aiter(receiver), receiver.connection.connection_id
        kept: list[int] = []

        @receiver.on_request
        async def answer_too_late(_: Request) -> None:
            await asyncio.sleep(60)

        async def send_and_cancel_some(first: int) -> None:
            sending = {n: asyncio.ensure_future(sender.send(to, n)) for n in range(first, first + 40)}
            request = asyncio.ensure_future(sender.request(to, "who are you?"))
            for n in range(first, first + 40, 3):
                await asyncio.sleep(0)
                sending[n].cancel()
            request.cancel()
            ends = await asyncio.gather(*sending.values(), request, return_exceptions=True)
            assert isinstance(ends.pop(), asyncio.CancelledError)
            kept.extend(n for n, end in zip(sending, ends) if isinstance(end, Delivery))

        await send_and_cancel_some(0)
        connection = sender._lifecycle.connection
        assert connection
        connection._abort()
        await send_and_cancel_some(100)
        await sender.send(to, "last")
        arrived: list[Any] = []
        while (data := (await anext(stream)).data) != "last":
            arrived.append(data)
        assert arrived == sorted(set(arrived))
        assert len(kept) >= 2 * 26 and set(kept) <= set(arrived)


async def test_an_agent_asks_another_and_gets_its_answer_and_typed_errors(url: str, sign_in: SignIn) -> None:
    keyway = await sign_in()
    created = await keyway.api_keys.create()
    async with Agent(url=url, api_key=created["key"]) as printer, Agent(url=url, api_key=created["key"]) as asker:
        await asyncio.gather(event(printer, "ready"), event(asker, "ready"))
        assert printer.connection
        to = printer.connection.connection_id
        assert await failure(asker.request(to, 1)) == ("no_responders", None, True)
        handled: list[Any] = []

        @printer.on_request
        async def answer(request: Request) -> Any:
            handled.append(request.data)
            if request.data == "paper?":
                raise KeywayError("request_failed", "Load A4.", reason="out_of_paper")
            if request.data == "bug":
                raise RuntimeError("a bug")
            if request.data == "wait":
                await asyncio.sleep(60)
            if request.data == "too much":
                return "x" * 70_000
            return {"printed": request.data}

        assert await asker.request(created["id"], "page 1") == {"printed": "page 1"}
        answers = await asyncio.gather(*(asker.request("all", n) for n in range(50)))
        assert answers == [{"printed": n} for n in range(50)]
        assert await failure(asker.request(to, "paper?")) == ("request_failed", "out_of_paper", False)
        async with Agent(url=url, api_key=created["key"]) as silent:  # answers `no_handler`, first or last
            await event(silent, "ready")
            for _ in range(5):
                assert await failure(asker.request("all", "paper?")) == ("request_failed", "out_of_paper", False)
        assert await failure(asker.request(to, "bug")) == ("request_failed", "failed", False)
        assert await failure(asker.request(to, "too much")) == ("request_failed", "failed", False)
        assert await failure(asker.request(to, "wait", timeout=0.2)) == ("timeout", None, True)
        assert await failure(asker.request("nobody", 1)) == ("no_responders", None, True)
        assert await failure(asker.request(to, "x" * 70_000)) == ("too_large", None, False)
        assert await failure(asker.request(to, 1, timeout=0)) == ("invalid_configuration", None, False)
        printer.on_request(lambda request: request.from_key_id)
        assert await asker.request(to, None) == created["id"]
        waiting = asyncio.ensure_future(asker.request("nobody", 1, timeout=5))
        await asyncio.sleep(0)
    with pytest.raises(KeywayError):
        await waiting


async def test_an_agent_watches_who_joins_and_leaves(url: str, sign_in: SignIn) -> None:
    keyway = await sign_in()
    created = await keyway.api_keys.create(name="all")
    blind = (await keyway.api_keys.create(scopes=["agent:connect"]))["key"]
    async with Agent(url=url, api_key=created["key"]) as watcher:
        changes = watcher.watch()
        first: Any = await anext(changes)
        assert first["type"] == "presence"
        assert watcher.connection
        assert [each["connection_id"] for each in first["connections"]] == [watcher.connection.connection_id]
        async with Agent(url=url, api_key=blind) as other:
            joined: Any = await anext(changes)
            assert joined["type"] == "joined" and joined["connection"]["key_name"] is None
            with pytest.raises(KeywayError) as refused:
                await anext(other.watch())
            assert refused.value.code == "insufficient_scope"
            again: Any = await anext(watcher.watch())
            assert len(again["connections"]) == 2
        left: Any = await anext(changes)
        assert (left["type"], left["reason"]) == ("left", "closed")
        assert left["connection_id"] == joined["connection"]["connection_id"]
        await changes.aclose()
    with pytest.raises(StopAsyncIteration):
        await anext(changes)


async def test_a_resumed_connection_gets_the_list_again_and_each_later_change_once(
    url: str, sign_in: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyway = await sign_in()
    key = (await keyway.api_keys.create(name="watcher"))["key"]
    agents = [Agent(url=url, api_key=(await keyway.api_keys.create(name=name))["key"]) for name in ["a", "b", "c"]]
    leaving, staying, coming = agents
    before = {"leaving": await ready(leaving), "staying": await ready(staying)}
    async with Agent(url=url, api_key=key) as watcher:
        changes = watcher.watch()

        async def names() -> list[str | None]:
            seen: Any = await anext(changes)
            assert seen["type"] == "presence"
            return sorted(each["key_name"] for each in seen["connections"])

        assert await names() == ["a", "b", "watcher"]
        previous = watcher.connection
        connection = watcher._lifecycle.connection
        assert previous and connection
        may_connect = asyncio.Event()
        get = watcher._lifecycle._tokens.get

        async def get_later() -> str:
            await may_connect.wait()
            return await get()

        monkeypatch.setattr(watcher._lifecycle._tokens, "get", get_later)
        disconnected = asyncio.ensure_future(event(watcher, "disconnected"))
        again = asyncio.ensure_future(event(watcher, "ready"))
        await asyncio.sleep(0)
        connection._socket.transport.abort()
        await disconnected
        await leaving.close()
        await ready(coming)
        may_connect.set()
        now = await again
        assert (now.resumed, now.connection_id) == (True, previous.connection_id)
        assert await names() == ["b", "c", "watcher"]
        await staying.close()
        left: Any = await anext(changes)
        assert left == {"type": "left", "connection_id": before["staying"].connection_id, "reason": "closed"}
        await coming.close()
        last: Any = await anext(changes)
        assert (last["type"], last["reason"]) == ("left", "closed")


async def failure(request: Any) -> tuple[str, str | None, bool]:
    with pytest.raises(KeywayError) as raised:
        await request
    return raised.value.code, raised.value.reason, raised.value.retryable


async def test_a_sender_that_reuses_ids_loses_nothing_on_a_connection_that_is_resumed() -> None:
    inbox, resumed, other = Inbox(), HubSession(), HubSession()
    frame = {"type": "message", "id": "1", "from": "x", "from_key_id": "k", "data": None}
    assert inbox.is_new(resumed, frame)
    assert inbox.is_new(resumed, frame)
    assert not inbox.is_new(other, frame)


async def test_messages_are_queued_until_the_agent_is_connected(url: str, sign_in: SignIn) -> None:
    keyway = await sign_in()
    key = (await keyway.api_keys.create())["key"]
    agent = Agent(url=url, api_key=key)
    sending = asyncio.ensure_future(agent.send("all", "early"))
    await asyncio.sleep(0)
    async with agent:
        assert await sending == Delivery(0)


async def test_a_token_of_another_service_connects_and_is_renewed_with_one(url: str, sign_in: SignIn) -> None:
    keyway = await sign_in()
    key = (await keyway.api_keys.create())["key"]
    call_count = 0

    async def get_token() -> Any:
        nonlocal call_count
        call_count += 1
        answer = await keyway.exchange(key)
        # Both forms are accepted: the bare token, and the response of the exchange.
        return answer["token"] if call_count == 1 else answer

    async with Agent(url=url, get_token=get_token) as agent:
        await event(agent, "ready")
        assert call_count == 1
        assert isinstance(await renew_now(agent), Renewed)
        assert call_count == 2


async def renew_now(agent: Agent) -> Any:
    """Makes the agent renew its token at once, as after `token_expiring`, and waits for the event `renewed`."""
    current = agent._lifecycle._current
    assert current
    waiting = asyncio.ensure_future(event(agent, "renewed"))
    await asyncio.sleep(0)
    current.renewal.expiring()
    return await waiting


@pytest.mark.parametrize(
    "options, code, advice",
    [
        ({"url": "keyway.example.com", "api_key": WRONG_KEY}, "invalid_configuration", "https://"),
        ({"url": "https://", "api_key": WRONG_KEY}, "invalid_configuration", "pass an origin"),
        ({"url": "https://keyway.example.com"}, "invalid_configuration", "KEYWAY_API_KEY"),
        ({"api_key": WRONG_KEY}, "invalid_configuration", "KEYWAY_URL"),
        ({"url": "https://keyway.example.com", "api_key": f" {WRONG_KEY}"}, "invalid_api_key", "without spaces"),
        ({"url": "https://keyway.example.com", "api_key": f"{WRONG_KEY}\n"}, "invalid_api_key", "without spaces"),
    ],
)
def test_wrong_settings_are_named(
    options: dict[str, str], code: str, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("KEYWAY_URL", "KEYWAY_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(KeywayError, match=advice) as raised:
        Agent(**options)  # type: ignore[arg-type]
    assert raised.value.code == code


async def test_a_key_that_a_service_imported_from_another_system_is_exchanged_too(url: str) -> None:
    with pytest.raises(KeywayError) as raised:
        await Agent(url=url, api_key="sk_live_0123456789abcdef").run()
    assert (raised.value.code, raised.value.status) == ("invalid_api_key", 401)
