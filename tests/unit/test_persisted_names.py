"""Names that managers write into the API server: with others, a version would not find its objects.

A later version may add names. It may change one only if it still reads the former one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import attrs

from actuator.codec import decode, encode
from actuator.interface import ExternalResource
from actuator.meta import Object, Raw
from actuator.provider_config import is_accepted
from actuator.v1alpha1 import KINDS
from generic.kube.crds import crd
from generic.library.external import ExternalResources
from generic.library.flowstate import FlowState
from generic.library.webhooks.publishing import WRITTEN
from generic.manager.heartbeat import LEASE_NAME
from generic.manager.leaderelection import SERVES
from generic.manager.options import Options
from generic.reconciler.origin import CLOUD_ACCOUNT, ORIGIN, DeletionOrigin
from generic.reconciler.orphans import FORCE_DELETIONS, RECORD_KINDS, Orphan
from generic.reconciler.orphans.kind import KIND_LABEL, SHOOT_LABEL, orphan_name

FINALIZERS = {"OperatingSystemConfig": "extensions.gardener.cloud/operatingsystemconfigs"}
"""Names that do not follow the rule, as in Gardener's Go library."""
OURS = "actuator.extensions.gardener.cloud"


def test_finalizers_stay():
    rule = {cls.KIND.name: f"extensions.gardener.cloud/{cls.KIND.name.lower()}" for cls in KINDS}
    assert {cls.KIND.name: cls.KIND.finalizer for cls in KINDS} == rule | FINALIZERS


def test_records_stay():
    assert (Orphan.KIND.api_version, Orphan.KIND.plural) == (f"{OURS}/v1alpha1", "orphans")
    assert str(FORCE_DELETIONS) == f"forcedeletionrecords.{OURS}"
    assert (f"{OURS}/shoot", f"{OURS}/kind") == (SHOOT_LABEL, KIND_LABEL)
    state = FlowState()
    assert (state.api_version, state.kind) == (f"{OURS}/v1alpha1", "FlowState")
    record = ExternalResources()
    assert (record.api_version, record.kind) == (f"{OURS}/v1alpha1", "ExternalResources")


def test_no_field_of_a_record_is_removed():
    """A new field is added to the file, and none is taken from it."""
    recorded = Path(__file__).parents[1].joinpath("recorded/record_fields.txt").read_text()
    found = {f"{cls.KIND.name}.{path}" for cls in RECORD_KINDS for path in fields(schema_of(cls))}
    assert found == set(recorded.split())


def schema_of(cls: type[Object]) -> Raw:
    (version,) = crd(cls)["spec"]["versions"]
    schema: Raw = version["schema"]["openAPIV3Schema"]["properties"]
    return {"properties": {part: schema[part] for part in ("spec", "status") if part in schema}}


def fields(schema: Raw) -> Iterator[str]:
    """The paths of the fields without fields of their own."""
    for name, field in schema.get("items", schema).get("properties", {}).items():
        inner = [f"{name}.{path}" for path in fields(field)]
        yield from inner or [name]


def test_fields_of_a_resource_recorded_by_a_later_version_stay():
    later = {"account": "1"}
    record: Raw = {"name": "subnet", "type": "subnet", "id": "subnet-1", "needs": ["vpc"]}
    record |= {"existing": True, "later": later}
    stored = {"apiVersion": f"{OURS}/v1alpha1", "kind": "FlowState", "resources": [record]}
    assert encode(decode(FlowState, stored)) == stored


def test_an_orphan_that_another_version_recorded_is_not_recorded_twice():
    resource = ExternalResource(type="vpc", id="vpc-1", tags={"a": "b"}, region="eu-1")
    assert orphan_name("uid", resource) == "uid-6d011887e97b037c"


def test_names_of_the_origin_stay():
    assert (CLOUD_ACCOUNT, f"{OURS}/origin") == ("CloudAccount", ORIGIN)
    fields = (attribute.name for attribute in attrs.fields(DeletionOrigin))
    assert {*fields} >= {"seed", "project", "shoot", "shoot_uid", "account", "confirmed_by"}


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
