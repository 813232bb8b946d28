"""An agent that answers each message. Reads KEYWAY_URL and KEYWAY_API_KEY."""

import asyncio
import sys

from keyway import Agent, Disconnected, Gap, KeywayError, Message, Ready


async def main() -> None:
    agent = Agent()

    @agent.on("ready")
    def ready(connection: Ready) -> None:
        print("connected as", connection.connection_id, "resumed" if connection.resumed else "anew", flush=True)

    @agent.on("gap")
    def gap(event: Gap) -> None:
        print("messages may be lost of", event.previous_connection_id, flush=True)

    @agent.on("disconnected")
    def disconnected(event: Disconnected) -> None:
        print("disconnected:", event.error or event.reason, flush=True)

    @agent.on("message")
    async def echo(message: Message) -> None:
        print(message.from_, message.data, flush=True)
        # A message from the API has no agent to answer, and two echo agents would answer each other forever.
        if message.from_ == "api" or (isinstance(message.data, dict) and "echo" in message.data):
            return
        try:
            await agent.send(message.from_, {"echo": message.data})
        except KeywayError as error:
            print(error, file=sys.stderr)  # for example a key without the scope agents:send

    await agent.run()


try:
    asyncio.run(main())
except KeywayError as stopped:
    print(stopped, file=sys.stderr)
    sys.exit(77)
except KeyboardInterrupt:
    pass
