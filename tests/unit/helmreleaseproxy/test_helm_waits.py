"""A helm of another process is waited for, by a wall clock that may be wrong."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from actuator.errors import RequeueAfter
from extensions.helmreleaseproxy.releases import ActualRelease, HelmRelease
from generic.kube.clock import WatchedClock, trusted_now
from tests.support.cluster.clocks import Hands
from tests.support.objects.stand_ins import UNUSED


def waits(clock, since):
    """Whether a release that began `since` is left to another helm."""
    obj: Any = SimpleNamespace(spec=SimpleNamespace(namespace="n", release_name="r"))
    call: Any = SimpleNamespace(clock=clock)
    release = HelmRelease(UNUSED, call, UNUSED, UNUSED, obj)
    there = ActualRelease(status="pending-install", revision=1, updated=since)
    try:
        release._wait_for_the_other(there)
    except RequeueAfter:
        return True
    return False


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0, True), (59, True), (60, False), (-59, True), (-86400, False), (86400, False)],
)
def test_a_helm_is_waited_for_while_it_may_run(seconds, expected):
    """A release of the future was written by a clock that was wrong."""
    clock = Hands()
    assert waits(clock, clock.now() - timedelta(seconds=seconds)) is expected


def test_a_clock_that_may_be_wrong_does_not_end_the_wait():
    hands = Hands()
    clock = WatchedClock(hands)
    began = hands.now()
    hands.ahead = 2 * 86400.0
    assert waits(clock, began)
    hands.ahead = 0.0
    for seconds in (1.0, 61.0):
        trusted_now(clock)
        hands.seconds += seconds
    assert not waits(clock, began)
