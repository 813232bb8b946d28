"""An asynchronous iterator over items that are pushed into it."""

from __future__ import annotations

import asyncio
from typing import AsyncIterator, Callable, Generic, TypeVar

from ._errors import KeywayError

Item = TypeVar("Item")

MAX_BUFFERED = 10_000
"""Maximum number of buffered items of a slow iterator."""


class Stream(AsyncIterator[Item], Generic[Item]):
    """Delivers buffered items even after `end`. `items` is their name in error messages, in the plural."""

    def __init__(self, on_close: Callable[[Stream[Item]], None], items: str) -> None:
        self._queue: asyncio.Queue[tuple[Item] | KeywayError | None] = asyncio.Queue()
        self._on_close = on_close
        self._items = items
        self._ended = False

    def push(self, item: Item) -> None:
        """Appends an item, or ends the iteration with `queue_full` if too many are buffered."""
        if self._ended:
            return
        self._queue.put_nowait((item,))
        if self._queue.qsize() > MAX_BUFFERED:
            self._queue = asyncio.Queue()
            self.end(KeywayError("queue_full", f"More than {MAX_BUFFERED} {self._items} waited. Read them faster."))
            self._on_close(self)

    def end(self, error: KeywayError | None) -> None:
        """Ends the iteration after the buffered items, with the error if there is one."""
        if not self._ended:
            self._ended = True
            self._queue.put_nowait(error)

    async def aclose(self) -> None:
        """Ends the iteration from the reader's side."""
        self.end(None)
        self._on_close(self)

    async def __anext__(self) -> Item:
        item = await self._queue.get()
        if isinstance(item, tuple):
            return item[0]
        self._queue.put_nowait(None)  # the next call ends the iteration: an error is raised only once
        self._on_close(self)
        if item is None:
            raise StopAsyncIteration
        raise item
