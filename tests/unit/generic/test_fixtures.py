"""The fixtures of generic.testing.fixtures, where they need no cluster."""

from types import SimpleNamespace
from typing import Any

import pytest

from generic.library.manifests import manifest
from generic.testing.fixtures import ShootSettings, _end
from generic.testing.recording import RecordingClient

ROLE = manifest("rbac.authorization.k8s.io/v1", "ClusterRole", "me")


def manager_that(*, stops: bool) -> Any:
    return SimpleNamespace(stop=lambda: stops)


def test_an_actuator_that_survives_its_manager_fails_the_test():
    client = RecordingClient(ROLE)
    with pytest.raises(AssertionError, match="still runs after the test; let its operation end"):
        _end(manager_that(stops=False), client, "me")
    assert [step.partition(".")[0] for step in client.steps] == [
        "delete clusterrolebindings",
        "delete clusterroles",
    ], "also a Role whose binding was not granted"
    _end(manager_that(stops=True), client, "me")


def test_the_output_of_a_failed_test_has_no_credentials():
    assert "hunter2" not in repr(ShootSettings(credentials={"token": "hunter2"}))
