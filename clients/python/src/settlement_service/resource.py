"""What the generated groups of operations are made of."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from ._request import Call, QueryValue, path_of
from .paging import AsyncPages, Pages
from .retry import DeadlineError, Pause

if TYPE_CHECKING:
    from .transport import AsyncTransport, Transport

T = TypeVar("T")


class Resource:
    """A group of operations of the blocking client."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def _run(self, call: Call[T]) -> T:
        return self._transport.run(call)

    def _pages(self, template: str, query: Mapping[str, QueryValue], **values: str) -> Pages[Any]:
        return Pages(self._transport.run, Call("GET", path_of(template, **values), query=query, repeatable=True))

    def _follow(self, steps: Generator[Call[Any] | Pause, Any, T]) -> T:
        try:
            step = next(steps)
            while True:
                if isinstance(step, Pause):
                    self._transport.pause(step.seconds)
                    step = next(steps)
                else:
                    try:
                        value = self._transport.run(step)
                    except DeadlineError as late:
                        step = steps.throw(late)
                    else:
                        step = steps.send(value)
        except StopIteration as end:
            result: T = end.value
            return result


class AsyncResource:
    """A group of operations of the asynchronous client."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def _run(self, call: Call[T]) -> T:
        return await self._transport.run(call)

    def _pages(self, template: str, query: Mapping[str, QueryValue], **values: str) -> AsyncPages[Any]:
        return AsyncPages(self._transport.run, Call("GET", path_of(template, **values), query=query, repeatable=True))

    async def _follow(self, steps: Generator[Call[Any] | Pause, Any, T]) -> T:
        try:
            step = next(steps)
            while True:
                if isinstance(step, Pause):
                    await self._transport.pause(step.seconds)
                    step = next(steps)
                else:
                    try:
                        value = await self._transport.run(step)
                    except DeadlineError as late:
                        step = steps.throw(late)
                    else:
                        step = steps.send(value)
        except StopIteration as end:
            result: T = end.value
            return result
