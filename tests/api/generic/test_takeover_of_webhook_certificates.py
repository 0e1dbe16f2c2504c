"""Take-over of a webhook server from a real extension on Gardener's Go library, and the way back.

The library's certificates are Secrets of its secrets manager: `ca-NAME-webhook-…`, their bundle,
and `NAME-webhook-server-…` (`extensions/pkg/webhook/certificates`). Each side serves with its own,
and the API server trusts the one that serves.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from actuator.errors import ApiError
from actuator.interface import SECRETS
from actuator.v1alpha1 import Network
from generic.library.webhooks import mutates
from generic.library.webhooks.certificates import from_secret
from generic.testing.envtest.servers import free_port
from tests.support.cluster.go_library import serving_library
from tests.support.cluster.harness import eventually

CA_DAYS = 25
"""The age at which the library replaces an authority of 30 days, and keeps the former one."""


class Answers:
    """The webhook as the API server calls it, and the Secrets with certificates."""

    def __init__(self, serving, kubeconfig):
        self.serving = serving
        self.admin = serving.admin
        self.namespace = serving.namespace
        self.kubeconfig = kubeconfig
        self.port = free_port()
        selected = {"kubernetes.io/metadata.name": self.namespace}

        @mutates(Network, name="change", failure_policy="Fail", namespace_labels=selected)
        def change(request):
            request.new.metadata.labels["served-by"] = "python"

        self.webhook = change

    def served_by(self):
        """The side that answered; the API server's error if it trusts no answer."""
        try:
            return self.serving.try_create("x")["metadata"].get("labels", {}).get("served-by")
        except ApiError as error:
            return str(error)

    def run_go(self, age, authorities):
        """Let the Go extension serve until it has removed its older Secrets, but authorities."""
        server = f"{self.namespace}-webhook-server"
        names = [f"ca-{self.namespace}-webhook"] * authorities
        names += [f"ca-{self.namespace}-webhook-bundle", server]
        given = {"namespace": self.namespace, "port": self.port, "age": age}
        eventually(self.is_a_later_second)
        with serving_library(self.kubeconfig, **given):
            eventually(lambda: self.go_names() == names and self.is_issued_by_the_newest())
            eventually(lambda: self.served_by() == "go")

    def is_a_later_second(self):
        """Whether a Secret that is created now is newer for the library, which compares seconds."""
        created = [obj["metadata"]["creationTimestamp"] for obj in self.secrets()[0].values()]
        return f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}" > max(created, default="")

    def is_issued_by_the_newest(self):
        """Whether the server's Secret is not older than an authority: the library makes it last."""
        authority, server = f"ca-{self.namespace}-webhook", f"{self.namespace}-webhook-server"
        created: dict[str, str] = {}
        for obj in self.secrets()[0].values():
            meta = obj["metadata"]
            name = meta["labels"]["name"]
            created[name] = max(created.get(name, ""), meta["creationTimestamp"])
        return created[server] >= created[authority]

    def run_ours(self):
        """Let our manager serve until the API server has its answer."""
        service = self.serving.start(self.webhook, port=self.port)
        eventually(lambda: self.served_by() == "python")
        self.serving.stop(service)

    def secrets(self):
        """All Secrets of the namespace, ours apart: its certificates."""
        found = {obj["metadata"]["name"]: obj for obj in self.admin.list(SECRETS, self.namespace)}
        ours = found.pop(f"gardener-extension-{self.namespace}-webhooks", None)
        return found, ours and from_secret(ours)

    def go_names(self):
        """The names that the library gave its Secrets."""
        found = self.secrets()[0].values()
        return sorted(obj["metadata"]["labels"]["name"] for obj in found)


@pytest.fixture
def answers(serving, kubeconfig):
    return Answers(serving, kubeconfig)


@pytest.mark.parametrize(
    ("ages", "authorities"), [([0], 1), ([CA_DAYS, 0], 2)], ids=["no rotation", "rotation"]
)
def test_each_side_serves_with_trusted_certificates_and_keeps_those_of_the_other(
    answers, ages, authorities
):
    for number, age in enumerate(ages, 1):
        answers.run_go(age, number)
    before, _ = answers.secrets()
    answers.run_ours()
    after, ours = answers.secrets()
    assert after == before, "a take-over changes no Secret of the library"
    answers.run_go(0, authorities)
    assert answers.secrets() == (before, ours), "nothing is issued anew on the way back"
    answers.run_ours()
    assert answers.secrets() == (before, ours), "nor when it is taken over again"
