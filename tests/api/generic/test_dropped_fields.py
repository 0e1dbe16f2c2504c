"""Fields that the API server does not store: a CRD older than the program, a webhook that edits."""

from __future__ import annotations

import json
from contextlib import suppress
from copy import copy, deepcopy
from datetime import UTC, datetime
from typing import Any, ClassVar

import attrs
import pytest

from actuator import ActuatorError, ErrorCode, ExternalResource, RequeueAfter
from actuator.codec import decode, encode
from actuator.conditions import set_condition
from actuator.errors import AlreadyExists, Unavailable
from actuator.interface import Resource, resource_of
from actuator.meta import GROUP, Condition, DefaultSpec, DefaultStatus, Kind, Object, ReadyReasons
from generic.kube.client import path_of
from generic.kube.clock import SystemClock
from generic.kube.crds import crd
from generic.kube.delegating import DelegatingClient
from generic.kube.dropped import NotStored
from generic.kube.patches import replace
from generic.kube.warning_headers import Warnings
from generic.manager.orphans.ledger import write_status
from generic.manager.orphans.verification import verify
from generic.reconciler.orphans import ORPHANS, Orphan, OrphanedFrom, OrphanReason
from generic.reconciler.orphans.kind import OrphanStatus
from generic.reconciler.orphans.record import NOT_STORED, mark_gone, record
from generic.testing.seed import CRDS, install_crds
from generic.tools.explain import explain
from tests.support.cluster.harness import Script, Seed, cluster_rules, eventually
from tests.support.objects import builders

PROBLEM = [ErrorCode.ERR_CONFIGURATION_PROBLEM]
POLICIES = Resource(
    "admissionregistration.k8s.io/v1", "mutatingadmissionpolicies", namespaced=False
)
BINDINGS = Resource(
    "admissionregistration.k8s.io/v1", "mutatingadmissionpolicybindings", namespaced=False
)
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@attrs.define(kw_only=True)
class Silo(Object):
    """A kind of this version of a program."""

    KIND: ClassVar[Kind] = Kind(name="Silo", finalizer=f"{GROUP}/silo")

    spec: DefaultSpec = attrs.field(factory=DefaultSpec)
    status: DefaultStatus = attrs.field(factory=DefaultStatus)


class Depot(Silo):
    """The same, outside Gardener."""

    KIND: ClassVar[Kind] = Kind(name="Depot", finalizer=f"{GROUP}/depot", ready=ReadyReasons())


def older(cls: type[Object], **changes: Any) -> dict[str, Any]:
    """The CRD of an earlier version of a class, which lacks these fields or has these schemas."""
    made = deepcopy(crd(cls))
    schema = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for path, value in changes.items():
        *parents, last = path.split("__")
        place = schema
        for step in parents:
            place = place["items"] if step == "items" else place["properties"][step]
        if value is None:
            del place["properties"][last]
        else:
            place["properties"][last] = value
        for rule_of_fields in ("required", "x-kubernetes-validations"):
            place.pop(rule_of_fields, None)
    return made


def text(properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "string"} for name in properties}}


NET = {"type": "object", "properties": {"net": text(["id"])}}
NETS = {"type": "object", "properties": {"nets": {"type": "array", "items": text(["id"])}}}
BARE = {f"status__conditions__items__{name}": None for name in ("lastUpdateTime", "codes")}
OLDER: dict[str, tuple[type[Object], dict[str, Any]]] = {
    "nested": (Silo, {"status__providerStatus": NET}),
    "list": (Silo, {"status__providerStatus": NETS}),
    "upgraded": (Silo, {"status__providerStatus": text(["known"])}),
    "status": (Silo, {"status__providerStatus": None}),
    "observed": (Silo, {"status__observedGeneration": None}),
    "codes": (Silo, {"status__lastError__codes": None}),
    "error": (Silo, {"status__lastError": None}),
    "unready": (Depot, {"status__conditions": None}),
    "bare": (Depot, BARE),
    "edited": (Silo, {}),
    "bared": (Silo, {}),
    "id": (Orphan, {"spec__id": None, "spec__tags": None, "spec__object__uid": None}),
    "message": (Orphan, {"spec__id": None, "spec__message": None}),
    "note": (Orphan, {"status__verifiedAt": None, "status__note": None}),
}
"""CRDs by name: the class, and the fields that an earlier version lacked."""


def named(name: str) -> type[Object]:
    """The class of that CRD; each is a kind of its own, so that tests run beside each other."""
    cls, _ = OLDER[name]
    known = cls.KIND
    new = f"{known.name}{name}"
    kind = attrs.evolve(known, name=new, plural=f"{new.lower()}s", columns=())
    return type(new, (cls,), {"KIND": kind})


@pytest.fixture(scope="session")
def crds(admin) -> None:
    """All of them at once: the API server takes two seconds to serve new ones."""
    install_crds(admin, [older(named(name), **changes) for name, (_, changes) in OLDER.items()])


@pytest.fixture
def silos(crds, seed):
    """`silos(name)` looks at an object of that kind."""

    def look(name: str) -> Seed:
        cls = named(name)
        looking_at = seed.of(cls, "silo")
        looking_at.cls = cls
        return looking_at

    return look


class Provider(Script):
    """Saves an id ahead, then creates; `outside` counts created resources."""

    def __init__(self, of: type[Object], provider_status: Any = None, **on: Any) -> None:
        super().__init__(of, **on)
        self.provider_status = provider_status or {"vpcId": "vpc-1", "known": "yes"}
        self.outside = 0

    def reconcile(self, ctx, obj, cluster):
        obj.status.provider_status = self.provider_status
        ctx.save(obj)
        self.outside += 1

    def external_resources(self, obj):
        return [ExternalResource(type="VPC", id="vpc-1")]


def create(seed: Seed) -> None:
    manifest = builders.infrastructure(seed.namespace, seed.namespace, "silo")
    seed.create({**manifest, "kind": seed.kind.name, "spec": {"type": seed.namespace}})


def fails(*_: Any) -> None:
    raise ActuatorError("the cloud says no", codes=PROBLEM)


def error_of(seed: Seed) -> str:
    return seed.status().get("lastError", {}).get("description", "")


DROPS = {
    "nested": ({"net": {"id": "n", "region": "eu"}}, "net.region"),
    "list": ({"nets": [{"id": "a"}, {"id": "b", "zone": "z"}]}, "nets[1].zone"),
}


@pytest.mark.parametrize("name", DROPS)
def test_nothing_is_created_on_the_basis_of_an_id_that_is_dropped(admin, silos, start, name):
    silo = silos(name)
    value, path = DROPS[name]
    provider = Provider(silo.cls, value)
    manager = start(provider)
    create(silo)
    text = f"cannot store status.providerStatus.{path}: the CRD {silo.resource} "
    eventually(lambda: text in error_of(silo))
    assert silo.status()["lastError"]["codes"] == PROBLEM
    name = "actuator_status_writes_refused_total"
    eventually(lambda: sum(manager.metrics.total(name, "controller").values()) >= 2)
    assert provider.outside == 0, "each attempt fails"
    assert PROBLEM[0] in manager.metrics.total("actuator_errors_total", "code")
    assert eventually(lambda: silo.events("StatusNotWritten"))
    told = explain(admin, silo.kind, silo.namespace, "silo", datetime.now(UTC))
    assert any(text in blocker for blocker in told.standing.blockers)


def test_an_object_continues_once_its_crd_knows_the_field(admin, silos, start):
    silo = silos("upgraded")
    provider = Provider(silo.cls)
    start(provider)
    create(silo)
    eventually(lambda: error_of(silo))
    made = crd(silo.cls)["spec"]
    admin.patch(CRDS, str(silo.resource), "", [replace("/spec/versions", made["versions"])])
    eventually(silo.is_ready)
    assert silo.status()["providerStatus"] == provider.provider_status
    assert provider.outside == 1


def test_a_success_without_a_field_is_an_error_and_is_not_shown_again(admin, silos, start):
    """The first answer reveals the loss; from then on no success is written before the field is."""

    def act(_ctx: Any, obj: Any, _cluster: Any) -> None:
        obj.status.provider_status = {"vpcId": "vpc-1"}

    silo = silos("status")
    states: list[str] = []

    class Recording(DelegatingClient):
        def patch(self, resource, name, namespace, patch, *, subresource=""):
            answer = self._inner.patch(resource, name, namespace, patch, subresource=subresource)
            if subresource:
                states.append(answer["status"]["lastOperation"]["state"])
            return answer

    start(Script(silo.cls, reconcile=act), intercept=Recording)
    create(silo)
    eventually(lambda: "cannot store status.providerStatus: " in error_of(silo))
    eventually(lambda: states.count("Error") >= 3)
    assert states[:6] == ["Succeeded", "Error", "Processing", "Error", "Processing", "Error"]


def test_waiting_with_a_field_that_is_dropped_is_an_error(silos, start):
    def act(_ctx: Any, obj: Any, _cluster: Any) -> None:
        obj.status.provider_status = {"vpcId": "vpc-1"}
        raise RequeueAfter(1, "waiting")

    silo = silos("status")
    start(Script(silo.cls, reconcile=act))
    create(silo)
    eventually(lambda: "cannot store status.providerStatus: " in error_of(silo))


def test_an_error_of_the_provider_hides_no_dropped_field(silos, start):
    def act(_ctx: Any, obj: Any, _cluster: Any) -> None:
        obj.status.provider_status = {"vpcId": "vpc-1"}
        raise ActuatorError("the cloud says no")

    silo = silos("status")
    start(Script(silo.cls, reconcile=act))
    create(silo)
    (event, *_) = eventually(lambda: silo.events("StatusNotWritten"))
    assert "cannot store status.providerStatus: " in event["message"]
    assert "the cloud says no" in error_of(silo)


OF_GARDENER = {
    "observed": "status.observedGeneration",
    "codes": "status.lastError.codes",
    "error": "status.lastError",
}


@pytest.mark.parametrize(("name", "path"), OF_GARDENER.items(), ids=OF_GARDENER)
def test_a_dropped_field_of_gardener_is_named_though_no_error_can_be_in_the_status(
    silos, start, name, path
):
    def act(*_: Any) -> None:
        if name != "observed":
            fails()

    silo = silos(name)
    manager = start(Script(silo.cls, reconcile=act))
    create(silo)
    (event, *_) = eventually(lambda: silo.events("StatusNotWritten"))
    assert f"cannot store {path}: the CRD {silo.resource}" in event["message"]
    assert manager.metrics.total("actuator_status_writes_refused_total", "controller")
    if name == "observed":
        assert silo.last_operation() == ("Create", "Succeeded")


def test_a_kind_without_conditions_in_its_crd_is_named(silos, start):
    silo = silos("unready")
    start(Script(silo.cls))
    create(silo)
    (event, *_) = eventually(lambda: silo.events("StatusNotWritten"))
    assert "cannot store status.conditions: the CRD" in event["message"]


def test_conditions_as_kubernetes_defines_them_are_complete(silos, start):
    def act(_ctx: Any, obj: Any, _cluster: Any) -> None:
        mine = Condition(type="Own", status="True", reason="Yes", message="")
        obj.status.conditions = set_condition(obj.status.conditions, mine, NOW)

    silo = silos("bare")
    start(Script(silo.cls, reconcile=act))
    create(silo)
    conditions = eventually(lambda: silo.status()["conditions"])
    assert {condition["type"]: condition["status"] for condition in conditions} == {
        "Own": "True",
        "Ready": "True",
    }
    assert not silo.events("StatusNotWritten")


def test_a_force_deletion_whose_status_is_dropped_ends_within_its_budget(silos, start):
    def act(ctx: Any, obj: Any, _cluster: Any) -> None:
        obj.status.provider_status = {"step": "2"}
        ctx.save(obj)

    silo = silos("status")
    start(Script(silo.cls, delete=fails, force_delete=act), force_delete_budget=2.0)
    create(silo)
    eventually(silo.is_ready)
    silo.delete()
    silo.update_cluster(builders.cluster(silo.namespace, force="true"))
    eventually(silo.is_gone, 20.0)
    found = [obj["spec"] for obj in silo.client.list(ORPHANS)]
    (orphan,) = [item for item in found if item.get("shoot") == silo.namespace]
    assert orphan["reason"] == "BudgetExceeded"
    assert "cannot store status.providerStatus" in orphan["message"]


def policy(admin: Any, silo: Seed, expression: str) -> None:
    """A policy of the cluster that edits each write of the kind."""
    name = str(silo.resource)
    rule = {
        "apiGroups": [silo.resource.group],
        "apiVersions": ["*"],
        "operations": ["UPDATE"],
        "resources": [silo.resource.plural, f"{silo.resource.plural}/status"],
    }
    mutation = {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "reinvocationPolicy": "Never",
        "failurePolicy": "Ignore",
        "mutations": [mutation],
    }
    head = {"apiVersion": POLICIES.api_version, "metadata": {"name": name}}
    admin.create(POLICIES, {**head, "kind": "MutatingAdmissionPolicy", "spec": spec})
    bound = {"policyName": name}
    admin.create(BINDINGS, {**head, "kind": "MutatingAdmissionPolicyBinding", "spec": bound})


WRITTEN = "has(object.status) && has(object.status.providerStatus)"
ID = "/status/providerStatus/vpcId"
FINALIZERS = "/metadata/finalizers"
EDITS = {
    "edited": (
        f'{WRITTEN} ? [JSONPatch{{op: "replace", path: "{ID}", value: "other"}}] : []',
        "cannot store status.providerStatus.vpcId (changed): the API server or a webhook",
    ),
    "bared": (
        f'has(object.metadata.finalizers) ? [JSONPatch{{op: "remove", path: "{FINALIZERS}"}}] : []',
        "cannot store metadata.finalizers (changed): the API server or a webhook",
    ),
}


@pytest.mark.parametrize("name", EDITS)
def test_nothing_is_created_while_a_policy_edits_protecting_fields(admin, silos, start, name):
    silo = silos(name)
    expression, problem = EDITS[name]
    policy(admin, silo, expression)
    try:
        eventually(lambda: is_edited(silo))
        provider = Provider(silo.cls)
        start(provider)
        create(silo)
        eventually(lambda: problem in error_of(silo))
        assert provider.outside == 0
    finally:
        for resource in (BINDINGS, POLICIES):
            admin.delete(resource, str(silo.resource))


def is_edited(silo: Seed) -> bool:
    """Whether the policy is active; it takes the API server a moment.

    For as long, it refuses writes of a kind whose definition its policies do not know yet.
    """
    manifest = builders.infrastructure(silo.namespace, "probe", "probe", finalizers=["a/b"])
    with suppress(AlreadyExists):
        silo.create({**manifest, "kind": silo.kind.name, "spec": {"type": "probe"}})
    try:
        status = {"status": {"providerStatus": {"vpcId": "mine"}}}
        silo.annotate("probe", at="1")
        stored = silo.patch(status, "probe", "status")
        wrong = stored["status"]["providerStatus"]["vpcId"] != "mine"
        found = wrong or not silo.get("probe")["metadata"].get("finalizers")
        silo.patch({"metadata": {"finalizers": None}}, "probe")
        silo.client.delete(silo.resource, "probe", silo.namespace)
    except Unavailable:
        return False
    return found


class OldOrphans(DelegatingClient):
    """A client of a cluster with an older CRD of Orphan: another resource plays its part."""

    def __init__(self, inner: Any, name: str, *, loses_answers: bool = False) -> None:
        super().__init__(inner)
        self.kind = named(name).KIND
        self.resource = resource_of(self.kind)
        self.loses_answers = loses_answers

    def get(self, resource, name, namespace=""):
        return self._inner.get(self.resource if resource == ORPHANS else resource, name, namespace)

    def create(self, resource, obj):
        if resource != ORPHANS:
            return self._inner.create(resource, obj)
        made = self._inner.create(self.resource, {**obj, "kind": self.kind.name})
        if self.loses_answers:
            raise Unavailable(0, "the answer is lost")
        return made

    def patch(self, resource, name, namespace, patch, *, subresource=""):
        place = self.resource if resource == ORPHANS else resource
        return self._inner.patch(place, name, namespace, patch, subresource=subresource)

    def stored(self, orphan: Orphan) -> Orphan:
        found = self._inner.get(self.resource, orphan.metadata.name)
        return decode(Orphan, {**found, "kind": "Orphan"})


VPC = ExternalResource(type="VPC", id="vpc-1", tags={"shoot": "a&b"}, region="eu")


def owner(namespace: str) -> OrphanedFrom:
    api = f"{GROUP}/v1alpha1"
    return OrphanedFrom(api_version=api, kind="Silo", namespace=namespace, name="s", uid=namespace)


def test_the_message_of_an_orphan_has_the_fields_that_its_crd_lacks(admin, crds, namespace):
    client = OldOrphans(admin, "id")
    orphan = record(client, owner(namespace), VPC, OrphanReason.FORCED, "why", NOW)
    message = client.stored(orphan).spec.message
    values, _, rest = message.removeprefix(f"{NOT_STORED} ").rpartition("; ")
    assert rest == "why"
    wanted = {"id": "vpc-1", "object": encode(owner(namespace)), "tags": {"shoot": "a&b"}}
    assert json.loads(values) == wanted


def test_an_orphan_whose_answer_was_lost_gets_its_message_in_the_next_attempt(
    admin, crds, namespace
):
    way = owner(namespace), VPC, OrphanReason.FORCED, "", NOW
    with pytest.raises(Unavailable):
        record(OldOrphans(admin, "id", loses_answers=True), *way)
    client = OldOrphans(admin, "id")
    messages = {client.stored(record(client, *way)).spec.message for _ in range(2)}
    assert len(messages) == 1
    assert '"id": "vpc-1"' in messages.pop()


def test_an_orphan_that_is_complete_stays_as_it_is_when_it_is_repeated(admin, seed):
    first = record(admin, owner(seed.namespace), VPC, OrphanReason.FORCED, "why", NOW)
    before = admin.get(ORPHANS, first.metadata.name)
    again = record(admin, owner(seed.namespace), VPC, OrphanReason.BUDGET, "later", NOW)
    assert admin.get(ORPHANS, again.metadata.name) == before
    admin.delete(ORPHANS, first.metadata.name)


def test_the_finalizer_stays_while_no_orphan_can_hold_the_id(admin, crds, seed, start):
    client = OldOrphans(admin, "message")

    class Leaving(Script):
        def external_resources(self, obj):
            return [VPC]

    start(Leaving(delete=fails), intercept=lambda _client: client, force_delete_budget=2.0)
    seed.create(builders.infrastructure(seed.namespace, seed.namespace))
    eventually(seed.is_ready)
    seed.delete()
    seed.update_cluster(builders.cluster(seed.namespace, force="true"))
    eventually(lambda: "cannot store spec.id, spec.message: the CRD orphans." in error_of(seed))
    assert seed.status()["lastError"]["codes"] == PROBLEM
    assert seed.get()["metadata"]["finalizers"]
    reasons = [c["reason"] for c in seed.status()["conditions"] if c["type"] == "DeletionBlocked"]
    assert reasons == ["NotRecorded"]
    versions = crd(named("message"))["spec"]["versions"]
    admin.patch(CRDS, str(client.resource), "", [replace("/spec/versions", versions)])
    eventually(seed.is_gone)
    found = [obj["spec"] for obj in admin.list(client.resource)]
    assert [item["message"] for item in found if item["shoot"] == seed.namespace] == [
        f'{NOT_STORED} {{"id": "vpc-1"}}'
    ]


def test_an_orphan_that_cannot_store_a_state_is_an_error(admin, crds, namespace):
    client = OldOrphans(admin, "note")
    orphan = record(client, owner(namespace), VPC, OrphanReason.FORCED, "", NOW)
    with pytest.raises(NotStored, match=r"cannot store status\.verifiedAt: the CRD orphans\."):
        mark_gone(client, orphan, NOW)
    with pytest.raises(NotStored, match=r"cannot store status\.note"):
        write_status(client, client.stored(orphan), OrphanStatus(state="Closed", note="why"))


def test_an_incomplete_orphan_is_never_verified_as_gone(admin, crds, namespace):
    client = OldOrphans(admin, "id")
    orphan = record(client, owner(namespace), VPC, OrphanReason.FORCED, "", NOW)
    (finding,) = verify(client, [client.stored(orphan)], [], SystemClock())
    assert "fields of this Orphan were not stored" in finding.problem
    assert finding.orphan.is_open


def test_a_manager_may_complete_its_orphans(seed, start):
    manager = start(Script())
    (rule,) = [
        cluster_rule
        for cluster_rule in cluster_rules(manager)
        if cluster_rule["resources"] == ["orphans"]
    ]
    assert {"get", "create", "patch"} <= set(rule["verbs"])


def test_each_dropped_field_of_a_kind_is_one_line_of_the_log(admin, silos, caplog):
    silo = silos("status")
    client = copy(admin)
    vars(client)["_warnings"] = Warnings()
    for name in ("first", "second"):
        manifest = builders.infrastructure(silo.namespace, "other", name)
        client.create(silo.resource, {**manifest, "kind": silo.kind.name})
    lines = [vars(item)["fields"] for item in caplog.records if "warns" in item.message]
    path = path_of(silo.resource, silo.namespace)
    unknown = [line for line in lines if "spec.region" in line["warning"]]
    assert unknown == [{"path": path, "warning": 'unknown field "spec.region"'}]
