"""Names that managers write into the API server: with others, a version would not find its objects.

A later version may add names. It may change one only if it still reads the former one.
"""

from __future__ import annotations

from actuator.codec import decode, encode
from actuator.interface import ExternalResource
from actuator.provider_config import is_accepted
from actuator.v1alpha1 import KINDS
from generic.library.flow import FlowStatus
from generic.library.webhooks.publishing import WRITTEN
from generic.manager.heartbeat import LEASE_NAME
from generic.manager.leaderelection import SERVES
from generic.manager.options import Options
from generic.reconciler.orphans import Orphan
from generic.reconciler.orphans.kind import KIND_LABEL, SHOOT_LABEL, orphan_name

FINALIZERS = {"OperatingSystemConfig": "extensions.gardener.cloud/operatingsystemconfigs"}
"""Those that do not follow the rule, as in Gardener's Go library."""
OURS = "actuator.extensions.gardener.cloud"


def test_finalizers_stay():
    rule = {cls.KIND.name: f"extensions.gardener.cloud/{cls.KIND.name.lower()}" for cls in KINDS}
    assert {cls.KIND.name: cls.KIND.finalizer for cls in KINDS} == rule | FINALIZERS


def test_records_stay():
    assert (Orphan.KIND.api_version, Orphan.KIND.plural) == (f"{OURS}/v1alpha1", "orphans")
    assert (f"{OURS}/shoot", f"{OURS}/kind") == (SHOOT_LABEL, KIND_LABEL)
    status = FlowStatus()
    assert (status.api_version, status.kind) == (f"{OURS}/v1alpha1", "FlowStatus")


def test_what_a_later_version_recorded_of_a_resource_stays():
    record = {"name": "vpc", "type": "vpc", "id": "vpc-1", "later": {"account": "1"}}
    stored = {"apiVersion": f"{OURS}/v1alpha1", "kind": "FlowStatus", "resources": [record]}
    assert encode(decode(FlowStatus, stored)) == stored


def test_an_orphan_that_another_version_recorded_is_not_recorded_twice():
    resource = ExternalResource(type="vpc", id="vpc-1", tags={"a": "b"}, region="eu-1")
    assert orphan_name("uid", resource) == "uid-6d011887e97b037c"


def test_leases_stay():
    assert LEASE_NAME == "gardener-extension-heartbeat"
    assert Options().leader_election_id == "gardener-actuator-leader-election"
    assert f"{OURS}/serves" == SERVES


def test_accepted_configurations_stay():
    message = "The configuration of generation 3 was accepted."
    condition = {"type": "ConfigurationAccepted", "status": "True", "message": message}
    assert is_accepted(3, {"conditions": [condition]})


def test_the_annotation_of_webhook_configurations_stays():
    assert f"{OURS}/webhooks" == WRITTEN
