"""The order of messages while an agent moves to a new connection."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import websockets

from keyway import HUB_PROTOCOL
from keyway._clock import SystemClock
from keyway._handover import Handover
from keyway._hub_connection import HubClosed, HubConnection
from keyway._hub_session import HubSession
from keyway._protocol import Frame


class Events:
    """Passes what a connection receives to a handover, as an agent does."""

    def __init__(self) -> None:
        self.delivered: asyncio.Queue[str] = asyncio.Queue()
        self.handover = Handover(SystemClock(), lambda _, frame: self.delivered.put_nowait(str(frame["id"])))
        self.pongs: asyncio.Queue[None] = asyncio.Queue()
        self.ready: asyncio.Queue[None] = asyncio.Queue()

    def on_ready(self, connection: HubConnection, frame: Frame) -> None:
        self.ready.put_nowait(None)

    def on_frame(self, connection: HubConnection, frame: Frame) -> None:
        if frame["type"] == "pong":
            self.handover.pong_arrived(connection)
            self.pongs.put_nowait(None)
        else:
            self.handover.receive(connection, frame)

    def on_closed(self, connection: HubConnection, closed: HubClosed) -> None:
        self.handover.closed(connection)


async def test_messages_of_a_new_connection_wait_until_the_last_ping_of_the_old_one_is_answered() -> None:
    events = Events()
    sockets: list[Any] = []

    async def greet(socket: Any, *_: Any) -> None:
        sockets.append(socket)
        await socket.send(json.dumps({"type": "ready"}))
        await socket.wait_closed()

    async def connect() -> HubConnection:
        connection = HubConnection(
            url=url, token="t", clock=SystemClock(), events=events, session_to_resume=HubSession()
        )
        await events.ready.get()
        return connection

    async def send(socket: Any, *frames: dict[str, object]) -> None:
        for frame in frames:
            await socket.send(json.dumps(frame))

    serve: Any = getattr(websockets, "serve")  # its type depends on the version of websockets
    async with serve(greet, "127.0.0.1", 0, subprotocols=[HUB_PROTOCOL]) as server:
        url = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        old = await connect()
        old.send({"type": "ping"})
        new = await connect()
        events.handover.begin(old, new)
        await send(sockets[1], {"type": "message", "id": "second"}, {"type": "pong"})
        await events.pongs.get()
        await send(sockets[0], {"type": "pong"}, {"type": "message", "id": "first"}, {"type": "pong"})
        delivered = [await events.delivered.get(), await events.delivered.get()]
        old.close()
        new.close()
        await asyncio.gather(old.wait_closed(), new.wait_closed())
    assert delivered == ["first", "second"]
