"""The identity of the seed: read once, and never in the way of a record."""

from types import SimpleNamespace
from typing import Any

import pytest

from actuator.errors import Forbidden, NotFound, Unavailable
from generic.kube.seedidentity import SeedIdentity

FOUND = {"data": {"cluster-identity": "seed-1"}}


class Answers:
    """A client that returns or raises the given answers, one for each request."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)

    def get(self, resource: Any, name: str, namespace: str = "") -> Any:
        assert (str(resource), name, namespace) == ("configmaps", "cluster-identity", "kube-system")
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.mark.parametrize(
    ("answers", "read"),
    [
        ([FOUND], ["seed-1", "seed-1"]),
        ([NotFound(404, "none")], ["", ""]),
        ([Forbidden(403, "no")], ["", ""]),
        ([{"data": None}], ["", ""]),
        ([{"data": {"cluster-identity": 7}}], ["", ""]),
        ([Unavailable(0, "later"), FOUND], ["", "seed-1", "seed-1"]),
    ],
)
def test_the_identity_is_read_once_unless_the_api_server_is_unavailable(
    answers: list[Any], read: list[str]
) -> None:
    client: Any = Answers(*answers)
    now = 0.0
    clock: Any = SimpleNamespace(monotonic=lambda: now)
    identity = SeedIdentity(client, clock)
    for expected in read:
        assert identity.read() == expected
        now += 60.0
    assert client.answers == []


def test_a_failed_request_is_not_repeated_by_each_deletion() -> None:
    client: Any = Answers(Unavailable(0, "later"))
    clock: Any = SimpleNamespace(monotonic=lambda: 59.0)
    identity = SeedIdentity(client, clock)
    assert [identity.read() for _ in range(3)] == ["", "", ""]
