"""Which of our objects an event about something else is about."""

import pytest

from actuator import Resource, v1alpha1
from actuator.interface import resource_of
from actuator.meta import Kind, own_kind
from actuator.v1alpha1 import Infrastructure
from generic.controller.mappers import (
    KnownObjects,
    by_controller_owner,
    by_label,
    by_secret_reference,
    in_clusters_namespace,
    of_shoot_namespace,
)
from generic.controller.predicates import for_event_types
from generic.controller.watch import MACHINES, owns, watches, watches_for
from generic.kube.headers import Event, EventType, Request, header
from generic.kube.store import Store
from tests.support.objects.predicates import has_name

INFRASTRUCTURES = resource_of(Infrastructure.KIND)
SECRETS = Resource("v1", "secrets")
CLUSTERED = Kind(name="Tenant", plural="tenants", finalizer="t", group="x.y", namespaced=False)


def manifest(name="o", namespace="n", **more):
    meta = {"name": name, "namespace": namespace, "uid": f"uid-{name}", "resourceVersion": "1"}
    return {"metadata": meta | more.pop("metadata", {}), **more}


def target(*manifests, kind=Infrastructure.KIND):
    store = Store(resource_of(kind), header)
    for item in manifests:
        store.observe(item)
    return KnownObjects(kind, store)


def event(old=None, new=None):
    known = new or old
    kind = EventType.MODIFIED if old and new else EventType.ADDED if new else EventType.DELETED
    meta = known["metadata"]
    request = Request(meta["namespace"], meta["name"])
    before, after = (header(state) if state else None for state in (old, new))
    return Event(kind, request, before, after)


def names(requests):
    return [str(request) for request in requests]


def owned(kind="Infrastructure", group="extensions.gardener.cloud", controller=True, uid="uid-o"):
    owner = {"apiVersion": f"{group}/v1", "kind": kind, "name": "o", "uid": uid}
    return {"ownerReferences": [owner | {"controller": controller}]}


def test_a_cluster_is_about_all_objects_of_its_namespace_and_no_others():
    objects = target(manifest("a"), manifest("b"), manifest("c", "other"))
    cluster = event(new=manifest("n", ""))
    assert sorted(names(in_clusters_namespace(cluster, objects))) == ["n/a", "n/b"]
    assert names(in_clusters_namespace(event(new=manifest("empty", "")), objects)) == []


@pytest.mark.parametrize(
    ("spec", "is_about"),
    [
        ({"secretRef": {"name": "s", "namespace": "n"}}, True),
        ({"secretRef": {"name": "s"}}, True),
        ({"secretRef": {"name": "s", "namespace": "other"}}, False),
        ({"secretRef": {"name": "another", "namespace": "n"}}, False),
        ({"credentialsRef": {"kind": "Secret", "name": "s", "namespace": "n"}}, True),
        ({"credentialsRef": {"kind": "WorkloadIdentity", "name": "s", "namespace": "n"}}, False),
        ({"secretRef": "nonsense"}, False),
        ({}, False),
    ],
)
def test_a_secret_is_about_objects_that_name_it_by_name_and_namespace(spec, is_about):
    found = by_secret_reference(event(new=manifest("s")), target(manifest(spec=spec)))
    assert names(found) == (["n/o"] if is_about else [])


@pytest.mark.parametrize(
    ("namespace", "uid", "is_about"),
    [
        ("shoot--p--s", "u-1", ["shoot--p--s--u-1", "source-shoot--p--s--u-1"]),
        ("shoot--p--s", "u-2", []),
        ("shoot--p", "u-1", []),
        ("shoot--p--s", None, []),
    ],
)
def test_a_namespace_is_about_the_backup_entries_of_its_technical_id_and_uid(
    namespace, uid, is_about
):
    entries = target(
        manifest("shoot--p--s--u-1", ""), manifest("source-shoot--p--s--u-1", ""), kind=CLUSTERED
    )
    said = {"annotations": {"shoot.gardener.cloud/uid": uid}} if uid else {}
    found = of_shoot_namespace(event(new=manifest(namespace, "", metadata=said)), entries)
    assert [name for name in names(found) if entries.store.get(Request("", name))] == is_about


def test_a_machine_is_about_the_worker_that_its_label_names():
    label = {"labels": {"worker.gardener.cloud/name": "w"}}
    named = manifest("m", metadata=label)
    unnamed = manifest("m")
    workers = target()
    assert names(MACHINES.mapper(event(new=named), workers)) == ["n/w"]
    assert names(MACHINES.mapper(event(new=unnamed), workers)) == []
    assert names(by_label("x")(event(new=named), workers)) == []
    assert names(MACHINES.mapper(event(old=named, new=unnamed), workers)) == ["n/w"]


@pytest.mark.parametrize(
    ("child", "is_about"),
    [
        pytest.param(owned(), ["n/o"], id="its controller"),
        pytest.param(owned(controller=False), [], id="an owner that does not control it"),
        pytest.param(owned(kind="Worker"), [], id="an owner of another kind"),
        pytest.param(owned(group="apps"), [], id="an owner of another group"),
        pytest.param(owned(uid="uid-before"), [], id="an owner that was there before"),
        pytest.param({}, [], id="no owner"),
    ],
)
def test_a_child_is_about_the_object_of_our_kind_that_controls_it(child, is_about):
    seen = event(new=manifest("child", metadata=child))
    assert names(by_controller_owner(seen, target(manifest()))) == is_about


def test_a_child_that_goes_or_leaves_its_owner_is_still_news_for_it():
    mine = manifest("child", metadata=owned())
    nobodys = manifest("child")
    for seen in (event(old=mine), event(old=mine, new=nobodys)):
        assert names(by_controller_owner(seen, target(manifest()))) == ["n/o"]


def test_a_child_enqueues_all_owners_of_our_kind_or_its_controller_only():
    references = [
        owned(controller=controller, uid=f"uid-{name}")["ownerReferences"][0] | {"name": name}
        for name, controller in (("a", True), ("b", False), ("gone", False))
    ]
    child = manifest("child", metadata={"ownerReferences": [*references, "nonsense"]})
    owners = target(*(manifest(name, metadata={"uid": f"uid-{name}"}) for name in ("a", "b")))
    seen = event(new=child)
    assert names(owns(SECRETS, controller_only=False).requests(seen, owners)) == ["n/a", "n/b"]
    assert names(owns(SECRETS).requests(seen, owners)) == ["n/a"]


def test_an_owner_without_a_namespace_may_control_children_in_any():
    child = manifest("child", metadata=owned(kind="Tenant", group="x.y"))
    objects = target(manifest("o", ""), kind=CLUSTERED)
    assert names(by_controller_owner(event(new=child), objects)) == ["o"]


def test_a_watch_names_each_object_once_and_only_for_events_that_its_predicates_pass():
    twice = manifest("child", metadata=owned())
    watch = owns(SECRETS, predicates=[has_name("child"), for_event_types(EventType.MODIFIED)])
    objects = target(manifest())
    assert names(watch.requests(event(old=twice, new=twice), objects)) == ["n/o"]
    assert names(watch.requests(event(new=twice), objects)) == []


def test_the_watches_of_gardeners_kinds_depend_on_the_mode():
    def watched(cls, *own, ignore):
        found = watches_for(cls.KIND, own, ignore_operation_annotation=ignore)
        return [watch.resource.plural for watch in found]

    own = watches(SECRETS, by_label("l"))
    assert watched(v1alpha1.Worker, own, ignore=False) == ["secrets"]
    assert watched(v1alpha1.Worker, own, ignore=True) == ["secrets", "clusters"]
    assert watched(v1alpha1.BackupEntry, ignore=True) == ["secrets", "namespaces"]
    assert watched(v1alpha1.BackupBucket, ignore=True) == ["secrets"]
    quiet = v1alpha1.Bastion, v1alpha1.OperatingSystemConfig, v1alpha1.SelfHostedShootExposure
    assert [watched(cls, ignore=True) for cls in quiet] == [[], [], []]


def test_an_own_kind_watches_nothing_by_its_name():
    kind = own_kind("Worker", "example.org")
    assert watches_for(kind, (), ignore_operation_annotation=True) == ()


def test_the_annotation_of_kubectl_on_a_secret_is_not_kept():
    noted = {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": '{"data":"x"}'}}
    store = Store(SECRETS, header, keeps=lambda _request, _header: False)
    store.observe(manifest("s", metadata=noted))
    entry = store.get(Request("n", "s"))
    assert entry is not None
    assert not entry.header.annotations
    assert entry.raw == b""
