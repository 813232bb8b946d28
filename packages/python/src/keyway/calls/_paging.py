"""Every item of a list, page by page."""

from __future__ import annotations

from typing import AsyncIterator, Awaitable, Callable, TypeVar

from ..objects import Page

Item = TypeVar("Item")


async def every_item(page: Callable[[str | None], Awaitable[Page[Item]]]) -> AsyncIterator[Item]:
    """Yields every item; requests a page once the items of the previous one are used up."""
    cursor: str | None = None
    while True:
        answer = await page(cursor)
        for item in answer["data"]:
            yield item
        cursor = answer["next_cursor"]
        if cursor is None:
            return
