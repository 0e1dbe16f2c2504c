"""The cloud account: asked while the credentials work, and kept in the status."""

import logging
from collections import Counter

import pytest

from actuator import ActuatorError, ExternalResource
from actuator.interface import Resource
from actuator.meta import Raw
from generic.reconciler.orphans import ORPHANS, SHOOT_LABEL
from tests.support.cluster.harness import Script, eventually
from tests.support.objects.builders import cluster, infrastructure
from tests.support.objects.contract import secret

SECRETS = Resource("v1", "secrets")
ACCOUNT = "123456789012"


class InAccount(Script):
    """Reads its account with the Secret that its reconcile reads too; a resource remains."""

    permissions = (SECRETS.permission("get"),)

    def __init__(self, *answers, **on):
        super().__init__(**on)
        self.answers = [*answers]
        self.asked = 0

    def cloud_account(self, ctx, obj, cluster):
        self.asked += 1
        answer = self.answers[min(self.asked, len(self.answers)) - 1]
        if isinstance(answer, BaseException):
            raise answer
        if callable(answer):
            return answer(ctx)
        return answer

    def external_resources(self, obj):
        return [ExternalResource(type="VPC", id="vpc-1")]


def condition(seed):
    found = seed.status().get("conditions") or []
    return [(item["message"], item["status"]) for item in found if item["type"] == "CloudAccount"]


def test_an_orphan_has_the_account_after_the_credentials_are_revoked(seed, start):
    def revoked(ctx, obj, cluster):
        raise ActuatorError("the credentials are revoked")

    script = InAccount(ACCOUNT, ActuatorError("revoked"), delete=revoked)
    start(script)
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(seed.is_ready)
    assert condition(seed) == [(ACCOUNT, "True")]
    seed.delete()
    eventually(lambda: seed.last_operation() == ("Delete", "Error"))
    seed.update_cluster(cluster(seed.namespace, force="true"))
    eventually(seed.is_gone)
    (orphan,) = seed.client.list(ORPHANS, label_selector=f"{SHOOT_LABEL}={seed.namespace}")
    assert orphan["spec"]["object"]["origin"]["account"] == ACCOUNT
    assert script.asked == 1
    seed.client.delete(ORPHANS, orphan["metadata"]["name"])


def test_the_account_is_kept_also_when_the_first_reconcile_fails(seed, start):
    def fails(ctx, obj, cluster):
        raise ActuatorError("quota exceeded")

    start(InAccount(ACCOUNT, reconcile=fails))
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(lambda: seed.last_operation() == ("Create", "Error"))
    assert condition(seed) == [(ACCOUNT, "True")]


@pytest.mark.parametrize(
    "answer",
    [
        ActuatorError("sts says no"),
        None,
        7,
        ["1"],
        "a\nb",
        "\x1b[2J",
        "\u202e1",
        "1" * 254,
        RuntimeError("bug"),
        "",
    ],
    ids=ascii,
)
def test_an_account_that_cannot_be_read_stops_nothing_and_is_asked_again(
    seed, start, caplog, answer
):
    with caplog.at_level(logging.WARNING):
        script = InAccount(answer, ACCOUNT)
        start(script)
        seed.create(infrastructure(seed.namespace, seed.namespace))
        eventually(seed.is_ready)
    assert condition(seed) == []
    logged = [item for item in caplog.records if item.message == "account not read"]
    assert bool(logged) == (answer != "")
    for item in logged:
        assert item.exc_info is None
        assert item.fields["error"].isprintable()
        if not isinstance(answer, Exception):
            assert item.fields["error"].startswith("InAccount.cloud_account returned ")
    seed.ask("reconcile")
    eventually(lambda: condition(seed) == [(ACCOUNT, "True")])


def test_the_account_costs_no_request(seed, start):
    """The status is written anyway, and the Secret is read once for both."""
    counts: Counter[str] = Counter()

    def counting(client):
        class Counting:
            def __getattr__(self, name):
                method = getattr(client, name)

                def counted(resource, *args, **more):
                    counts[str(resource)] += 1
                    return method(resource, *args, **more)

                return counted

        return Counting()

    name = secret(seed.namespace)["metadata"]["name"]

    def read(ctx, *_of):
        ctx.secret(name, seed.namespace)
        return ACCOUNT

    def reconcile(ctx, obj, cluster):
        read(ctx)

    seed.client.create(SECRETS, secret(seed.namespace))
    start(InAccount(read, reconcile=reconcile), intercept=counting)
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(seed.is_ready)
    assert condition(seed) == [(ACCOUNT, "True")]
    assert counts["secrets"] == 1
    assert counts[str(seed.resource)] == 2
    seed.delete()
    eventually(seed.is_gone)
    assert counts[str(seed.resource)] == 3


def test_a_second_read_in_a_call_is_a_new_one(seed, start):
    contents: list[Raw] = []

    def reconcile(ctx, obj, cluster):
        for value in ("Zmlyc3Q=", "c2Vjb25k"):
            contents.append(ctx.secret(name, seed.namespace)["data"])
            seed.client.patch(SECRETS, name, seed.namespace, {"data": {"changed": value}})

    made = seed.client.create(SECRETS, secret(seed.namespace))
    name = made["metadata"]["name"]
    start(InAccount(lambda ctx: str(len(ctx.secret(name, seed.namespace))), reconcile=reconcile))
    seed.create(infrastructure(seed.namespace, seed.namespace))
    eventually(seed.is_ready)
    assert "changed" not in contents[0]
    assert contents[1]["changed"] == "Zmlyc3Q="
