"""The tables of methods in the README, and what narrows a text."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from settlement_service import Client, ConsumerClient, is_corridor, is_currency, is_payment_method, is_payout_rail

PARTNER, CONSUMER = (Path(__file__).parents[1] / "README.md").read_text().split("| a consumer's client")
#: They send anything, or make an intent, or close the client.
OTHERS = re.compile(r"(^|\.)(request|send|close|prepare\w*)$")


def methods_of(client: object) -> set[str]:
    groups = {name: value for name, value in vars(client).items() if not name.startswith("_")}
    own = [("", client), *((f"{name}.", value) for name, value in groups.items())]
    return {
        f"{prefix}{name}"
        for prefix, value in own
        for name, _ in inspect.getmembers(value, inspect.ismethod)
        if not name.startswith("_")
    }


@pytest.mark.parametrize(
    ("table", "client"),
    [(PARTNER, Client("http://localhost")), (CONSUMER, ConsumerClient("http://localhost"))],
)
def test_every_method_is_in_the_table_and_no_other(table: str, client: object) -> None:
    named = set(re.findall(r"^\| `([\w.]+)` \|", table, re.MULTILINE))
    assert {one for one in methods_of(client) if not OTHERS.search(one)} == named


def test_a_text_is_narrowed_to_what_a_field_takes() -> None:
    assert is_corridor("US-JM")
    assert is_currency("JMD")
    assert is_payment_method("card")
    assert is_payout_rail("cash_pickup")
    assert not is_corridor("us-jm")
    assert not is_payment_method("internal")
    assert not is_payout_rail("")
