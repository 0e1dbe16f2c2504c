"""Each sample's chart as gardenlet and gardener-operator install it, on clusters without our CRDs.

The API server runs with OwnerReferencesPermissionEnforcement, so a missing permission to set owner
references fails here. Each sample's process has the rights of its chart and nothing else.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import extensions
from actuator import Resource
from actuator.codec import decode
from actuator.errors import Forbidden, NotFound
from actuator.interface import Client, object_class, resource_of
from actuator.meta import GROUP, Kind, Object, Raw
from actuator.ownership import with_owner
from actuator.v1alpha1 import (
    KINDS,
    BackupBucket,
    BackupEntry,
    Cluster,
    DNSRecord,
    Extension,
    Infrastructure,
    OperatingSystemConfig,
    Worker,
)
from extensions.relations.kinds import Team
from generic.controller.watch import owns
from generic.kube.client import connect
from generic.kube.clusters import CLUSTERS
from generic.kube.finalizers import patch_removing, patch_tested
from generic.library.machines import MACHINE_KINDS
from generic.library.managedresources import ManagedResource
from generic.manager.manager import Manager
from generic.manager.rbac import grant
from generic.reconciler.orphans import ORPHANS
from generic.testing.envtest import Environment
from generic.testing.envtest import environment as embedded
from generic.testing.envtest.servers import apiserver_command
from generic.testing.garden import (
    SHOOT,
    Garden,
    GardenletFlows,
    SeedShoot,
    not_ready_because,
    resource_of_manifest,
)
from generic.testing.machinecontroller import MachineControllers
from generic.testing.polling import polling
from generic.testing.rehearsal import RehearsedShoot
from generic.testing.resourcemanager import ResourceManager
from generic.testing.seed import install_crds
from generic.tools.cli.load import load, load_manager
from generic.tools.packaging.chart import options_for
from tests.support.cluster.harness import (
    INFRASTRUCTURES,
    Script,
    cluster_rules,
    eventually,
    is_allowed,
)
from tests.support.landscape.chart import (
    GARDENLET,
    OPERATOR,
    definitions,
    install,
    remove,
    remove_definition,
    rendered,
    running,
)
from tests.support.objects.builders import infrastructure
from tests.support.objects.present import present
from tests.support.pages.commands import run_command

PATIENCE = 120.0
PLUGIN = "--enable-admission-plugins=OwnerReferencesPermissionEnforcement"
IN_GARDEN: list[type[Object]] = [BackupBucket, BackupEntry, DNSRecord, Extension]
CONFIG_MAPS = Resource("v1", "configmaps")
NAMESPACES = Resource("v1", "namespaces", namespaced=False)


class Sample(NamedTuple):
    """A sample's rehearsal, and the environment variables with its outside."""

    rehearsal: str
    variables: Callable[[Any], dict[str, str]] = lambda _: {}


SAMPLES = {
    "aws": Sample(
        "extensions.aws.full_rehearsal:AwsFullRehearsal", lambda r: {"AWS_ENDPOINT_URL": r.url}
    ),
    "azurecontrolplane": Sample("extensions.azurecontrolplane.rehearsal:AzureRehearsal"),
    "certificate": Sample("extensions.certificate.rehearsal:CertificateRehearsal"),
    "externaldatabase": Sample(
        "extensions.externaldatabase.rehearsal:DatabaseRehearsal",
        lambda r: {
            "DATABASES_POSTGRES_URL": r.share()["postgres"],
            "DATABASES_POSTGRES_CA": r.share()["ca.crt"],
            "DATABASES_MYSQL_URL": r.share()["mysql"],
            "DATABASES_MYSQL_CA": r.share()["ca.crt"],
        },
    ),
    "helmreleaseproxy": Sample("extensions.helmreleaseproxy.rehearsal:HelmReleaseProxyRehearsal"),
    "local": Sample(
        "extensions.local.rehearsal:LocalRehearsal",
        lambda r: {"LOCAL_OUTSIDE": r.share()["outside"]},
    ),
    "networkfilter": Sample("extensions.networkfilter.rehearsal:NetworkFilterRehearsal"),
    "relations": Sample(
        "extensions.relations.rehearsal:RelationsRehearsal",
        lambda r: {"RELATIONS_REGISTER": r.share()["path"]},
    ),
}


def test_every_sample_that_is_an_extension_is_installed_here():
    folder = Path(extensions.__file__).parent
    assert set(SAMPLES) == {path.parent.name for path in folder.glob("*/__init__.py")}


@contextmanager
def landscape(*classes: Any) -> Iterator[Environment]:
    """A cluster with these kinds and ManagedResources, and without any CRD of ours."""
    environment = Environment()
    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                embedded, "apiserver_command", lambda *a: [*apiserver_command(*a), PLUGIN]
            )
            stack.enter_context(environment)
        admin = connect(environment.kubeconfig)
        install_crds(admin, [*classes, ManagedResource, *MACHINE_KINDS])
        stack.enter_context(polling(ResourceManager(admin).poll, "resource-manager", every=0.5))
        yield environment


@pytest.fixture(scope="module")
def seed_cluster() -> Iterator[Environment]:
    """A seed: all kinds of Gardener, and the machine API."""
    with landscape(*KINDS, Cluster) as environment:
        yield environment


@pytest.fixture(scope="module")
def runtime_cluster() -> Iterator[Environment]:
    """A garden runtime cluster: four kinds, and no Cluster."""
    with landscape(*IN_GARDEN) as environment:
        yield environment


class Installed(NamedTuple):
    """A sample that runs from its chart."""

    admin: Client
    manager: Manager
    rehearsal: Any

    @property
    def kinds(self) -> list[Kind]:
        """The kinds that its rehearsal has objects of."""
        return [object_class(actuator).KIND for actuator in self.rehearsal.actuators()]

    def manifests(self, shoot: SeedShoot) -> list[Raw]:
        """The rehearsal's, with the types that the sample serves."""
        types = {
            registration.kind.name: registration.types
            for registration in self.manager.registrations
        }
        rehearsed = RehearsedShoot(technical_id=shoot.technical_id, type="", labels=shoot.labels)
        manifests = list(self.rehearsal.manifests(rehearsed))
        for manifest in manifests:
            if types.get(manifest["kind"]):
                (manifest["spec"]["type"],) = types[manifest["kind"]]
        return manifests

    def third_parties(self, namespace: str) -> None:
        """One look of the controllers that hold the objects which the sample makes in the seed."""
        for actuator in self.rehearsal.actuators():
            for group in actuator.seed_objects:
                if group.resource.group == "machine.sapcloud.io" or not group.resource.namespaced:
                    continue
                for obj in self.admin.list(group.resource, namespace):
                    meta = obj["metadata"]
                    held = meta.get("finalizers") or []
                    if meta.get("deletionTimestamp") and set(held) & set(group.finalizers):
                        patch = patch_removing(group.finalizers, meta["uid"], held)
                        patch_tested(self.admin, group.resource, meta["name"], namespace, patch)


@pytest.fixture
def put_up(tmp_path, monkeypatch) -> Iterator[Callable[..., Installed]]:
    """Installs a sample as Gardener does, and starts it; removes it afterwards."""
    with ExitStack() as stack:

        def call(environment: Environment, name: str, gardener: Raw) -> Installed:
            admin = connect(environment.kubeconfig)
            sample = SAMPLES[name]
            rehearsal = load(sample.rehearsal)()
            stack.callback(rehearsal.stop)
            (outside := tmp_path / "outside").mkdir()
            rehearsal.start(outside)
            for variable, value in sample.variables(rehearsal).items():
                monkeypatch.setenv(variable, value)
            flags = ("--output", tmp_path, "--name", name)
            run_command("chart", f"extensions.{name}:extension", *flags)
            namespace = f"extension-{secrets.token_hex(3)}"
            admin.create(NAMESPACES, {"metadata": {"name": namespace}})
            objects = rendered(tmp_path / name, namespace, gardener)
            stack.callback(forget, admin, objects)
            install(admin, objects)
            install_crds(admin, rehearsal.crds())
            for poll in rehearsal.other_controllers(admin):
                stack.enter_context(polling(poll, "other-controller"))
            if any(object_class(actuator) is Worker for actuator in rehearsal.actuators()):
                machines = MachineControllers(admin)
                stack.enter_context(polling(machines.poll, "machines", every=0.5))
            manager = load_manager(
                f"extensions.{name}:extension", (), options_for(f"extension-{name}")
            )
            stack.enter_context(running(environment, objects, tmp_path / "log"))
            return Installed(admin, manager, rehearsal)

        yield call


def forget(admin: Client, objects: list[Raw]) -> None:
    """Afterwards the next chart has to bring its own definitions."""
    remove(admin, objects)
    kept = [
        object_["metadata"]["name"]
        for object_ in objects
        if object_["metadata"]["name"] in definitions(admin)
    ]
    assert str(ORPHANS) in kept, "removing a chart keeps what it defines"
    for name in kept:
        remove_definition(admin, name)
    eventually(lambda: not set(kept) & definitions(admin))


def a_shoot(name: str, rehearsal: Any) -> SeedShoot:
    technical_id = f"shoot--{name}--{secrets.token_hex(3)}"
    return SeedShoot(
        technical_id=technical_id,
        name=name,
        project="tests",
        region=rehearsal.region,
        labels={SHOOT: technical_id},
    )


def delete(found: Installed, shoot: SeedShoot) -> None:
    """The life of a shoot that is deleted while everyone does their part."""
    flow = GardenletFlows(Garden(found.admin), shoot, found.kinds, patience=PATIENCE)
    flow.create(found.manifests(shoot))
    with polling(partial(found.third_parties, shoot.technical_id), "third-parties"):
        flow.delete()


def force(found: Installed, shoot: SeedShoot) -> None:
    """The life of a shoot that is force-deleted."""
    flow = GardenletFlows(Garden(found.admin), shoot, found.kinds, patience=PATIENCE)
    flow.create(found.manifests(shoot))
    flow.force_delete()
    flow.delete_afterwards()


def add_owners(found: Installed) -> None:
    """Two Teams own one child: the second is added where the API server checks that."""
    namespace = f"teams-{secrets.token_hex(3)}"
    found.admin.create(NAMESPACES, {"metadata": {"name": namespace}})
    spec = {"type": "relations", "namespace": namespace, "shared": "all-teams"}
    for name in (f"{namespace}-a", f"{namespace}-b"):
        team = {"apiVersion": Team.KIND.api_version, "kind": "Team", "metadata": {"name": name}}
        found.admin.create(resource_of(Team.KIND), {**team, "spec": spec})
        eventually(lambda item=name: item in owners(found.admin, "all-teams", namespace))
    for name in (f"{namespace}-a", f"{namespace}-b"):
        found.admin.delete(resource_of(Team.KIND), name)
        eventually(lambda item=name: item not in str(found.admin.list(resource_of(Team.KIND))))


def owners(admin: Client, name: str, namespace: str) -> list[str]:
    meta = admin.get(CONFIG_MAPS, name, namespace)["metadata"]
    return [owner_reference["name"] for owner_reference in meta["ownerReferences"]]


MORE_LIVES: dict[str, Callable[[Installed], None]] = {"relations": add_owners}
"""Checks of a sample beside the lives of shoots."""


@pytest.mark.long
@pytest.mark.parametrize("name", SAMPLES)
def test_a_chart_without_hooks_and_crds_gets_ready_and_serves_the_lives_of_shoots(
    seed_cluster, put_up, name
):
    found = put_up(seed_cluster, name, GARDENLET)
    shoots = [a_shoot(end, found.rehearsal) for end in ("deleted", "forced")]
    with ThreadPoolExecutor() as pool:
        for life in [pool.submit(delete, found, shoots[0]), pool.submit(force, found, shoots[1])]:
            life.result()
    garden = Garden(found.admin)
    assert not [
        object_
        for kind in found.kinds
        for shoot in shoots
        for object_ in garden.objects(kind, shoot)
    ]
    if name in MORE_LIVES:
        MORE_LIVES[name](found)


GARDEN_SAMPLES = ["aws", "certificate", "local", "networkfilter"]
"""Samples with a kind that exists in a garden runtime cluster."""


@pytest.mark.long
@pytest.mark.parametrize("name", GARDEN_SAMPLES)
def test_a_chart_gets_ready_and_serves_class_garden_where_no_other_kind_exists(
    runtime_cluster, put_up, name
):
    found = put_up(runtime_cluster, name, OPERATOR)
    assert str(CLUSTERS) not in definitions(found.admin)
    garden = Garden(found.admin)
    names = {cls.KIND.name for cls in IN_GARDEN}
    shoot = a_shoot("garden", found.rehearsal)
    namespace = {"name": shoot.technical_id}  # not a shoot's: like `garden`, it has no Cluster
    found.admin.create(NAMESPACES, {"metadata": namespace})
    manifests = found.manifests(shoot)
    served = [manifest for manifest in manifests if manifest["kind"] in names]
    for manifest in (
        manifest for manifest in manifests if manifest["kind"] in ("Namespace", "Secret")
    ):
        garden.deploy(manifest)
    for manifest in served:
        manifest["spec"]["class"] = "garden"
        garden.deploy(manifest)
        eventually(lambda item=manifest: not_ready_because(present(there(found, item))) is None)
    with polling(partial(found.third_parties, shoot.technical_id), "third-parties"):
        for manifest in reversed(served):
            kind = next(cls.KIND for cls in IN_GARDEN if cls.KIND.name == manifest["kind"])
            meta = manifest["metadata"]
            garden.delete(kind, meta.get("namespace", ""), meta["name"])
            eventually(lambda item=manifest: there(found, item) is None)


def there(found: Installed, manifest: Raw) -> Raw | None:
    meta = manifest["metadata"]
    try:
        return found.admin.get(
            resource_of_manifest(manifest), meta["name"], meta.get("namespace", "")
        )
    except NotFound:
        return None


def test_the_samples_for_a_garden_are_those_with_a_kind_that_exists_there(monkeypatch, tmp_path):
    monkeypatch.setenv("LOCAL_OUTSIDE", str(tmp_path))
    found = set()
    for name in SAMPLES.keys() - {"externaldatabase"}:  # needs a server to be loaded
        manager = load_manager(f"extensions.{name}:extension", (), options_for(f"extension-{name}"))
        kinds = {
            registration.kind.name
            for registration in manager.registrations
            if registration.kind.group == GROUP
        }
        if kinds & {cls.KIND.name for cls in IN_GARDEN}:
            found.add(name)
    assert found == set(GARDEN_SAMPLES)


@pytest.mark.long  # stays with the tests that use this cluster
def test_the_generated_role_allows_controller_references_that_the_api_server_checks(seed_cluster):
    admin = connect(seed_cluster.kubeconfig)
    name = f"owns-{secrets.token_hex(3)}"
    admin.create(NAMESPACES, {"metadata": {"name": name}})
    owner = decode(Infrastructure, admin.create(INFRASTRUCTURES, infrastructure(name, name)))
    maps = Resource("v1", "configmaps").permission("create")

    def child_made_by(user: str, **more: Any) -> Raw:
        script = Script()
        script.permissions = (maps,)
        manager = Manager()
        manager.add(script, type=name, **more)
        grant(admin, manager, user)
        client = connect(seed_cluster.user_kubeconfig(user))
        meta = {"name": user, "namespace": name}
        child = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}
        eventually(lambda: is_allowed(admin, user, "create", "configmaps", namespace=name))
        return client.create(CONFIG_MAPS, with_owner(child, owner))

    with pytest.raises(Forbidden, match="cannot set blockOwnerDeletion"):
        child_made_by(f"{name}-without")
    assert child_made_by(f"{name}-with", watches=[owns(CONFIG_MAPS)])


def test_the_generated_role_of_a_kind_that_owns_its_user_data_allows_that():
    manager = Manager()
    manager.add(Script(OperatingSystemConfig), type="x")
    rules = cluster_rules(manager)
    verbs = [r["verbs"] for r in rules if "operatingsystemconfigs/finalizers" in r["resources"]]
    assert verbs == [["update"]]
