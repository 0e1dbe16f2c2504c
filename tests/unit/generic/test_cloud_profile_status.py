"""The mutator of `namespacedcloudprofiles/status`, and statuses that no webhook refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from actuator import ObjectMeta
from actuator.meta import Raw
from actuator.v1alpha1 import Infrastructure
from generic.library.webhooks import (
    AdmissionRequest,
    Denied,
    NamespacedCloudProfile,
    cloud_profile_status,
    mutates,
)
from generic.library.webhooks.lint import findings
from generic.library.webhooks.review import evaluate, parse
from generic.testing.admission import admit

MERGE = cloud_profile_status("acme")


def image(name: str, **versions: str) -> Raw:
    listed = [{"version": version, "image": at} for version, at in versions.items()]
    return {"name": name, "versions": listed}


def profile(own: Any, parent: Any, *, observed: int = 2, **meta: Any) -> NamespacedCloudProfile:
    return NamespacedCloudProfile(
        metadata=ObjectMeta(name="a", namespace="garden-a", generation=2, **meta),
        spec={"providerConfig": own},
        status={"cloudProfileSpec": {"providerConfig": parent}, "observedGeneration": observed},
    )


def merged(given: NamespacedCloudProfile) -> Any:
    found = admit(MERGE, given, given)
    return found.status["cloudProfileSpec"]["providerConfig"]


def test_images_are_added_to_those_of_the_parent_and_replace_versions():
    own = {"kind": "C", "machineImages": [image("a", v1="mine", v3="new"), image("c", v1="c")]}
    parent = {"kind": "C", "ranges": [1], "machineImages": [image("a", v1="1", v2="2"), image("b")]}
    assert merged(profile(own, parent)) == {
        "kind": "C",
        "ranges": [1],
        "machineImages": [image("a", v1="mine", v2="2", v3="new"), image("b"), image("c", v1="c")],
    }


@pytest.mark.parametrize(
    "given",
    [
        profile({"machineImages": [image("a")]}, {}, observed=1),  # Gardener merges it afterwards
        profile({"machineImages": [image("a")]}, {}, deletion_timestamp="2026-01-01T00:00:00Z"),
        profile(None, {}),
        profile({"machineImages": None}, {"machineImages": []}),
        profile({"machineImages": [image("a")]}, None),
        profile("text", {}),
    ],
)
def test_other_statuses_stay_as_they_are(given):
    assert merged(given) == given.status["cloudProfileSpec"]["providerConfig"]


def test_an_author_can_merge_other_fields():
    webhook = cloud_profile_status("acme", lambda own, parent: parent | own)
    given = profile({"zone": "b"}, {"zone": "a", "size": 1})
    found = admit(webhook, given, given).status["cloudProfileSpec"]["providerConfig"]
    assert found == {"zone": "b", "size": 1}


def test_it_selects_the_statuses_of_its_provider_and_blocks_no_deletion():
    assert findings([MERGE]) == []
    assert MERGE.object_labels == {"provider.extensions.gardener.cloud/acme": "true"}
    assert (MERGE.subresource, MERGE.operations) == ("status", ("UPDATE",))


def test_a_refused_status_of_an_object_that_a_deletion_waits_for_is_written():
    """As by a webhook that cannot be reached: the refusal is a failure."""

    @mutates(
        Infrastructure,
        failure_policy="Ignore",
        subresource="status",
        namespace_labels={"shoot.gardener.cloud/provider": "acme"},
    )
    def refuse(_request: AdmissionRequest[Infrastructure]) -> None:
        raise Denied("no")

    kind = Infrastructure.KIND
    where = {"group": kind.group, "version": kind.version, "resource": kind.plural}
    obj = {"apiVersion": kind.api_version, "kind": kind.name, "metadata": {"name": "a"}, "spec": {}}
    request = {"uid": "1", "resource": where, "operation": "UPDATE", "object": obj}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    answer = evaluate(refuse, parse(json.dumps(review).encode()), client=None)  # type: ignore[arg-type]
    assert findings([refuse]) == []
    assert (answer.allowed, answer.failed) == (True, True)
    assert answer.message == "webhook refuse failed: it refuses a status: no"
