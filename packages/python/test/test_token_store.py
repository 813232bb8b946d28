"""Tokens in a file that several processes share, against a real service."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import AsyncIterator

import pytest
from conftest import CLIENTS, SignIn

import keyway as package
from keyway import FileTokenStore, Keyway, KeywayError, MemoryTokenStore, StoredTokens, TokenStore

SOURCES = str(Path(package.__file__).parent.parent)

PROGRAM = """
import asyncio, sys
from keyway import FileTokenStore, Keyway
path, url, action = sys.argv[1:]
store = FileTokenStore(path)
refreshes = 0

async def count(response):
    global refreshes
    if response.request.url.path == "/auth/refresh":
        refreshes += 1
        if action == "lose the answer":
            print("sent", flush=True)
            await asyncio.sleep(600)

async def main():
    if action == "hold":
        async with store.exclusive():
            print("holding", flush=True)
            await asyncio.sleep(600)
    async with Keyway(url=url, tokens=store) as keyway:
        keyway._client.event_hooks = {"response": [count]}
        if action == "call":
            await keyway.account.get()
        else:
            for _ in range(3):
                await keyway.refresh()
    print(refreshes)

asyncio.run(main())
"""


@asynccontextmanager
async def running_process(path: Path, url: str, action: str) -> AsyncIterator[Process]:
    args = [sys.executable, "-c", PROGRAM, str(path), url, action]
    child = await asyncio.create_subprocess_exec(*args, stdout=PIPE, env={**os.environ, "PYTHONPATH": SOURCES})
    try:
        yield child
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()


async def output_of(path: Path, url: str, action: str) -> str:
    async with running_process(path, url, action) as child:
        output, _ = await child.communicate()
        assert child.returncode == 0
        return output.decode().strip()


async def read_line(child: Process) -> bytes:
    assert child.stdout
    return (await child.stdout.readline()).strip()


async def test_processes_that_share_a_file_refresh_an_expired_token_once_and_take_turns(
    url: str, sign_in: SignIn, tmp_path: Path
) -> None:
    path = tmp_path / "private" / "session.json"
    store = FileTokenStore(path)
    keyway = await sign_in(store)
    before = store.get()
    assert before
    store.set(replace(before, access="expired"))
    counts = await asyncio.gather(*(output_of(path, url, "call") for _ in range(4)))
    assert sorted(counts) == ["0", "0", "0", "1"]
    assert await asyncio.gather(*(output_of(path, url, "refresh") for _ in range(4))) == ["3"] * 4
    assert len((await keyway.sessions.list())["data"]) == 1


async def test_a_process_that_is_killed_within_a_refresh_leaves_no_lock_and_its_refresh_is_repeated(
    url: str, sign_in: SignIn, tmp_path: Path
) -> None:
    path = tmp_path / "session.json"
    keyway = await sign_in(FileTokenStore(path))
    async with running_process(path, url, "lose the answer") as lost:
        assert await read_line(lost) == b"sent"
    async with running_process(path, url, "hold") as holder:
        assert await read_line(holder) == b"holding"
        waiting = asyncio.create_task(keyway.refresh())
        while not path.with_name(".session.json.lock").exists():
            await asyncio.sleep(0)
        assert not waiting.done()
    assert await waiting
    assert len((await keyway.sessions.list())["data"]) == 1


async def test_many_clients_of_one_process_that_share_a_file_or_the_memory_refresh_in_turn(
    url: str, sign_in: SignIn, tmp_path: Path
) -> None:
    # There are more clients than the event loop has threads, and the refreshing client needs a thread to look up the
    # address.
    stores: list[TokenStore] = [FileTokenStore(tmp_path / "session.json"), MemoryTokenStore()]
    for store in stores:
        keyway = await sign_in(store)
        clients = [Keyway(url=url, tokens=store) for _ in range(40)]
        CLIENTS.extend(clients)
        await asyncio.gather(*(client.refresh() for client in clients))
        assert len((await keyway.sessions.list())["data"]) == 1


async def test_a_call_that_is_cancelled_while_it_waits_for_the_file_leaves_no_lock(tmp_path: Path) -> None:
    store = FileTokenStore(tmp_path / "session.json")

    async def wait() -> None:
        async with store.exclusive():
            pass

    async with store.exclusive():
        waiting = asyncio.create_task(wait())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    await wait()


async def test_a_file_that_cannot_be_used_is_an_error_that_says_so(tmp_path: Path) -> None:
    path = tmp_path / "session.json"
    for text in ["", "{", "null", "[]", "{}", '{"access": 1, "refresh": "r", "session_id": "s"}']:
        path.write_text(text)
        with pytest.raises(KeywayError, match="Remove it, and sign in again") as raised:
            FileTokenStore(path).get()
        assert raised.value.code == "invalid_configuration"
    inside_file = FileTokenStore(path / "below")
    with pytest.raises(KeywayError, match="cannot be written"):
        inside_file.set(StoredTokens("a", "r", "s"))
    with pytest.raises(KeywayError, match="orders refreshes, cannot be used"):
        async with inside_file.exclusive():
            pass


async def test_a_link_in_the_place_of_the_lock_is_refused_and_its_file_unchanged(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("mine")
    other.chmod(0o644)
    path = tmp_path / "session.json"
    path.with_name(".session.json.lock").symlink_to(other)
    with pytest.raises(KeywayError, match="orders refreshes, cannot be used"):
        async with FileTokenStore(path).exclusive():
            pass
    assert other.read_text() == "mine"
    assert other.stat().st_mode & 0o777 == 0o644
