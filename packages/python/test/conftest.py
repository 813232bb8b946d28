"""The tests run against a service at KEYWAY_TEST_URL with a local inbox, and the app KEYWAY_TEST_APP (`id:secret`).
Test functions may be coroutine functions."""

from __future__ import annotations

import asyncio
import inspect
import os
import uuid
from typing import Any, Awaitable, Callable

import httpx
import pytest

from keyway import Keyway, TokenStore

LONGEST_TEST_SECONDS = 60
CLIENTS: list[Keyway] = []
"""The clients of the running test, closed after it."""


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: Any) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = pyfuncitem._fixtureinfo.argnames
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    asyncio.run(asyncio.wait_for(_run(pyfuncitem.obj(**arguments)), LONGEST_TEST_SECONDS))
    return True


async def _run(test: Awaitable[None]) -> None:
    try:
        await test
    finally:
        while CLIENTS:
            await CLIENTS.pop().aclose()


@pytest.fixture(scope="session")
def url() -> str:
    return os.environ["KEYWAY_TEST_URL"]


@pytest.fixture(scope="session")
def app() -> tuple[str, str]:
    app_id, secret = os.environ["KEYWAY_TEST_APP"].split(":")
    return app_id, secret


SignIn = Callable[..., Awaitable[Keyway]]


@pytest.fixture
def sign_in(url: str) -> SignIn:
    """Signs a new person in, with the code of the mail."""

    async def sign_in(tokens: TokenStore | None = None) -> Keyway:
        keyway = Keyway(url=url, tokens=tokens)
        CLIENTS.append(keyway)
        email = f"{uuid.uuid4()}@example.com"
        sent = await keyway.send_magic_link(email)
        code = await code_for(url, email)
        await keyway.verify_magic_link(login_id=sent["login_id"], code=code, email=email)
        return keyway

    return sign_in


async def code_for(url: str, email: str) -> str:
    """Polls the inbox until the mail has arrived."""
    async with httpx.AsyncClient(headers={"accept": "application/json"}) as client:
        while True:
            mails = (await client.get(f"{url}/inbox", params={"to": email})).json()["data"]
            if mails:
                return str(mails[0]["code"])
            await asyncio.sleep(0.05)


async def event(agent: Any, name: str) -> Any:
    """Waits for the next event of this name, and returns its content."""
    content_future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def listener(content: Any) -> None:
        agent.off(name, listener)
        content_future.set_result(content)

    agent.on(name, listener)
    return await content_future
