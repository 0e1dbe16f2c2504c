"""The end of a kubelet, and tokens as time passes."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from actuator.errors import ApiError
from actuator.interface import Resource
from generic.testing.landscape.volumes import Tokens
from tests.support.cluster.harness import eventually
from tests.support.landscape.pods import Namespace, Seed

REVIEWS = Resource("authentication.k8s.io/v1", "tokenreviews", namespaced=False)


@pytest.fixture
def own() -> Iterator[Seed]:
    """A cluster that a test may stop the kubelet of."""
    made = Seed(Path(tempfile.mkdtemp(prefix="actuator-landscape-")))
    yield made
    made.close()


class LateClock:
    """The real time, and some seconds that a test adds."""

    def __init__(self) -> None:
        self.added = 0.0

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return self.added


def username(client, token: bytes) -> str | None:
    review = client.create(REVIEWS, {"metadata": {}, "spec": {"token": token.decode()}})
    return review["status"].get("user", {}).get("username")


def test_a_token_is_renewed_at_four_fifths_of_its_life(place):
    pod = place.pod("web", {"image": "registry.example/x"})
    clock = LateClock()
    tokens = Tokens(place.client, clock)
    first = tokens.get(pod, "", 3600)
    clock.added = 0.79 * 3600
    assert tokens.get(pod, "", 3600) == first
    clock.added = 0.81 * 3600
    second = tokens.get(pod, "", 3600)
    assert second != first
    for token in (first, second):
        assert username(place.client, token) == f"system:serviceaccount:{place.name}:default"


def test_tokens_have_their_audience_and_end_with_their_pod(place):
    pod = place.pod("web", {"image": "registry.example/x"})
    tokens = Tokens(place.client, LateClock())
    default = tokens.get(pod, "", 3600)
    other = tokens.get(pod, "another", 3600)
    assert username(place.client, tokens.get(pod, "", 3601))  # whose answer is cached for 10 s
    assert username(place.client, other) is None  # not for the API server
    options = json.dumps({"gracePeriodSeconds": 0}).encode()
    place.client.send("DELETE", f"/api/v1/namespaces/{place.name}/pods/web", body=options)
    eventually(lambda: username(place.client, default) is None)
    tokens.forget(pod["metadata"]["uid"])
    with pytest.raises(ApiError, match='pods "web" not found'):
        tokens.get(pod, "", 3600)


def test_stop_ends_all_processes_and_removes_their_files(own):
    seed = own
    place = Namespace(own)
    place.service("web")
    place.deploy("web", replicas=2)
    place.deploy("stubborn", {"args": ["--ignore-sigterm"]})
    for name in ("web", "stubborn"):
        place.wait_available(name)
    assert len(place.running()) == 3
    seed.kubelet.stop()
    assert place.running() == []
    assert list((seed.processes.directory / "pods").iterdir()) == []
    assert seed.router.find(place.name, "web", 80) == []
    assert len(place.pods()) == 3
