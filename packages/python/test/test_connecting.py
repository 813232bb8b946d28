"""Errors of an agent and of the client when the service cannot be reached."""

from __future__ import annotations

import asyncio
import socket
import ssl

import pytest
from conftest import event

from keyway import Agent, Keyway, KeywayError

KEY = f"svc_{'a' * 32}"


BOUND_SOCKETS: list[socket.socket] = []


def closed_port() -> int:
    """A port on which nothing listens, and which no other process gets, since a socket stays bound to it."""
    bound_socket = socket.socket()
    bound_socket.bind(("127.0.0.1", 0))
    BOUND_SOCKETS.append(bound_socket)
    return int(bound_socket.getsockname()[1])


@pytest.mark.parametrize(
    "address, cause, advice",
    [
        ("http://keyway.invalid", "dns", "its name does not resolve"),
        ("http://127.0.0.1:{closed}", "refused", "it refuses connections"),
        ("https://127.0.0.1:{plain}", "tls", "its certificate was not accepted"),
    ],
)
async def test_the_cause_of_a_failed_connection_is_reported(address: str, cause: str, advice: str) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    url = address.format(closed=closed_port(), plain=server.sockets[0].getsockname()[1])
    async with Agent(url=url, api_key=KEY) as agent:
        failed = await event(agent, "disconnected")
    assert (failed.code, failed.reason, failed.cause) == (1006, "network_error", cause)
    assert failed.will_reconnect and 0 <= failed.retry_in_seconds <= 0.5
    assert advice in failed.error.message
    async with Keyway(url=url, api_key=KEY, max_retries=0) as keyway:
        with pytest.raises(KeywayError, match=advice) as raised:
            await keyway.account.get()
    assert (raised.value.code, raised.value.network_cause) == ("network_error", cause)
    server.close()


async def test_no_answer_in_time_is_a_timeout() -> None:
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with Keyway(url=f"http://127.0.0.1:{port}", api_key=KEY, max_retries=0, timeout_seconds=0.1) as keyway:
        with pytest.raises(KeywayError, match="within 0.1 s") as raised:
            await keyway.account.get()
    assert (raised.value.code, raised.value.retryable) == ("timeout", True)
    server.close()


async def test_a_redirect_is_not_followed_with_a_credential() -> None:
    seen: list[bytes] = []

    async def redirect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.append(await reader.readline())
        writer.write(b"HTTP/1.1 307 Temporary Redirect\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async def get_token() -> str:
        return "token"

    server = await asyncio.start_server(redirect, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with Keyway(url=url, api_key=KEY, max_retries=0) as keyway:
        with pytest.raises(KeywayError) as raised:
            await keyway.account.get()
    assert (raised.value.code, raised.value.status) == ("bad_response", 307)
    async with Agent(url=url, get_token=get_token) as agent:
        failed = await event(agent, "disconnected")
    assert failed.code == 1006 and "handshake was refused" in failed.reason
    assert seen == [b"GET /v1/me HTTP/1.1\r\n", b"GET /hub HTTP/1.1\r\n"]
    server.close()


async def test_an_own_certificate_authority_is_passed_on() -> None:
    context = ssl.create_default_context()
    async with Agent(url=f"https://127.0.0.1:{closed_port()}", api_key=KEY, ssl=context) as agent:
        assert (await event(agent, "disconnected")).cause == "refused"
