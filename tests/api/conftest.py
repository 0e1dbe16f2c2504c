"""Tests with a manager poll at short intervals: operations take moments, unlike in a cloud."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tests.support.cluster.webhook_services import Serving

LOOK_AGAIN = 0.4
"""Seconds in place of the 5 of the library and the samples; a look is several requests."""
_INTERVALS = {
    "extensions.aws.bastion": "_LOOK_AGAIN",
    "extensions.azurecontrolplane.actuator": "_LOOK_AGAIN",
    "extensions.local.share": "_LOOK_AGAIN",
    "extensions.relations.owned": "_LOOK_AGAIN",
    "extensions.relations.watched": "_LOOK_AGAIN",
    "generic.library.managedresources.ours": "LOOK_AGAIN",
    "generic.library.seedobjects": "_LOOK_AGAIN",
    "generic.library.worker.objects": "LOOK_AGAIN",
}


@pytest.fixture(autouse=True)
def short_intervals(monkeypatch: pytest.MonkeyPatch) -> None:
    """The interval of every module that this process has loaded."""
    for name, interval in _INTERVALS.items():
        if module := sys.modules.get(name):
            monkeypatch.setattr(module, interval, LOOK_AGAIN)


@pytest.fixture
def serving(admin, namespace) -> Iterator[Serving]:
    serving = Serving(admin, namespace)
    yield serving
    serving.close()
