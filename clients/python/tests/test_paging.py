"""A list is read page after page, by the cursor of the last one."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from scripted import Run, Script, answer

from settlement_service import AsyncClient, Client
from settlement_service.errors import UnexpectedAnswerError


def pages() -> list[httpx.Response]:
    link = '</v2/settlements?offset=0>; rel="prev", </v2/settlements?limit=2&status=settled&after=c{}>; rel="next"'
    return [
        answer(200, [{"settlement_id": "a"}, {"settlement_id": "b"}], {"Link": link.format(1), "X-Total-Count": "3"}),
        answer(200, [{"settlement_id": "c"}], {"X-Total-Count": "3"}),
    ]


async def collected(items: Any) -> list[Any]:
    return [item async for item in items]


def test_iterating_reads_all_pages_and_keeps_the_filters(run: Run) -> None:
    script = Script(pages())

    def act(client: Client | AsyncClient) -> Any:
        if isinstance(client, Client):
            return list(client.settlements.list(status="settled", page_size=2))
        return collected(client.settlements.list(status="settled", page_size=2))

    assert [item["settlement_id"] for item in run(script, act)] == ["a", "b", "c"]
    first, second = script.requests
    assert dict(first.url.params) == {"status": "settled", "limit": "2"}
    assert dict(second.url.params) == {"status": "settled", "limit": "2", "after": "c1"}


def test_a_page_has_its_items_the_total_and_the_cursor(run: Run) -> None:
    def act(client: Client | AsyncClient) -> Any:
        if isinstance(client, Client):
            return list(client.settlements.list().pages())
        return collected(client.settlements.list().pages())

    first, second = run(Script(pages()), act)
    assert (len(first.items), first.total_count, first.after) == (2, 3, "c1")
    assert (len(second.items), second.after) == (1, None)


def test_a_page_is_read_again_after_a_lost_connection_and_may_have_no_total(run: Run) -> None:
    def act(client: Client | AsyncClient) -> Any:
        if isinstance(client, Client):
            return list(client.wallets.list().pages())
        return collected(client.wallets.list().pages())

    (page,) = run(Script([httpx.ReadError("reset"), answer(200, [])]), act)
    assert (page.items, page.total_count) == ([], None)


@pytest.mark.parametrize("link", ['</v2/settlements?offset=0>; rel="prev"', ""])
def test_without_a_next_link_the_list_ends(run: Run, link: str) -> None:
    script = Script([answer(200, [], {"Link": link})])
    act = lambda client: list(client.wallets.list()) if isinstance(client, Client) else collected(client.wallets.list())  # noqa: E731
    assert run(script, act) == []
    assert len(script.requests) == 1


def test_a_list_whose_pages_are_all_the_same_ends_with_an_error(run: Run) -> None:
    script = Script([answer(200, [{}], {"Link": '</v1/wallets?after=c>; rel="next"'})] * 9)

    def act(client: Client | AsyncClient) -> Any:
        return list(client.wallets.list()) if isinstance(client, Client) else collected(client.wallets.list())

    with pytest.raises(UnexpectedAnswerError):
        run(script, act)
    assert len(script.requests) == 2


def test_a_list_whose_answer_is_no_list_ends_with_an_error(run: Run) -> None:
    script = Script([answer(200, {"message": "Signed in."})])
    act = lambda client: list(client.wallets.list()) if isinstance(client, Client) else collected(client.wallets.list())  # noqa: E731
    with pytest.raises(UnexpectedAnswerError):
        run(script, act)


def test_nothing_is_read_before_the_list_is_iterated(run: Run) -> None:
    script = Script([])

    async def nothing() -> None:
        return None

    def act(client: Client | AsyncClient) -> Any:
        client.settlements.list()
        return None if isinstance(client, Client) else nothing()

    run(script, act)
    assert script.requests == []
