from __future__ import annotations

import pytest
from scripted import Run, runner


@pytest.fixture(params=["blocking", "asynchronous"])
def run(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The same test for both clients."""
    return runner(request.param, monkeypatch)
