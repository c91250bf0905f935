"""Lists: the service answers one page at a time, and a page's `Link` header has the cursor of the next."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, TypeVar, cast
from urllib.parse import parse_qs, urlsplit

from ._request import Answer, Call, QueryValue

T = TypeVar("T")

NEXT = re.compile(r'<([^>]*)>\s*;[^,]*\brel="?next"?')


@dataclass(frozen=True)
class Page(Generic[T]):
    items: Sequence[T]
    #: How many items the list has. `None` above 10 000.
    total_count: int | None
    #: Continues the list after this page, now or later: `list(after=page.after)`. `None` on the last page.
    after: str | None


class Pages(Generic[T]):
    """A list, newest first. Iterating it reads page after page; nothing is read before that."""

    def __init__(self, run: Callable[[Call[Page[T]]], Page[T]], first: Call[Any]) -> None:
        self._run = run
        self._first = first

    def __iter__(self) -> Iterator[T]:
        for page in self.pages():
            yield from page.items

    def pages(self) -> Iterator[Page[T]]:
        call: Call[Page[T]] | None = paged(self._first)
        while call is not None:
            page = self._run(call)
            yield page
            call = following(call, page)


class AsyncPages(Generic[T]):
    """A list, newest first. Iterating it reads page after page; nothing is read before that."""

    def __init__(self, run: Callable[[Call[Page[T]]], Awaitable[Page[T]]], first: Call[Any]) -> None:
        self._run = run
        self._first = first

    async def __aiter__(self) -> AsyncIterator[T]:
        async for page in self.pages():
            for item in page.items:
                yield item

    async def pages(self) -> AsyncIterator[Page[T]]:
        call: Call[Page[T]] | None = paged(self._first)
        while call is not None:
            page = await self._run(call)
            yield page
            call = following(call, page)


def paged(first: Call[Any]) -> Call[Page[Any]]:
    return cast("Call[Page[Any]]", first.reading(partial(read_page, first.query.get("after"))))


def following(call: Call[Page[T]], page: Page[T]) -> Call[Page[T]] | None:
    if page.after is None:
        return None
    return replace(call, query={**call.query, "after": page.after}, read=partial(read_page, page.after))


def read_page(asked: QueryValue, answer: Answer) -> Page[Any]:
    """Raises `ValueError` for what is no list, and for a page whose next page is itself.

    A proxy answers the one, and a cache that ignores the query the other.
    """
    items = answer.json()
    total = answer.headers.get("x-total-count")
    found = NEXT.search(answer.headers.get("link", ""))
    after = parse_qs(urlsplit(found.group(1)).query).get("after", []) if found else []
    if not isinstance(items, list) or (after and after[0] == asked):
        raise ValueError("The answer is no list, or the page leads to itself.")
    return Page(items, None if total is None else int(total), after[0] if after else None)
