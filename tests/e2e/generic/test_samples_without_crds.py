"""Each sample in a seed that has Gardener's kinds, and no CRD of another controller.

A rehearsal installs the CRDs that its sample needs (`crds`); a real seed may lack them. Then an
object whose actuator creates objects of such a kind reports which CRD is missing, with a code.
A deletion, forced or not, does not need the CRDs.
"""

import re
import secrets
from pathlib import Path

import pytest

import extensions
from actuator.errors import ErrorCode
from actuator.interface import object_class, resource_of
from actuator.v1alpha1 import KINDS, Cluster, Infrastructure
from generic.kube.client import connect
from generic.library.machines import MACHINE_KINDS
from generic.library.managedresources import ManagedResource
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.reconciler.orphans import RECORD_KINDS
from generic.testing.envtest import Environment
from generic.testing.garden import Garden, GardenletFlows, SeedShoot, not_ready_because
from generic.testing.garden.flows import still_there
from generic.testing.rehearsal import RehearsedShoot
from generic.testing.seed import install
from generic.tools.cli.load import load
from tests.support.cluster.harness import PATIENCE, connected, eventually

REHEARSALS = {
    "aws": "extensions.aws.full_rehearsal:AwsFullRehearsal",
    "azurecontrolplane": "extensions.azurecontrolplane.rehearsal:AzureRehearsal",
    "certificate": "extensions.certificate.rehearsal:CertificateRehearsal",
    "helmreleaseproxy": "extensions.helmreleaseproxy.rehearsal:HelmReleaseProxyRehearsal",
    "local": "extensions.local.rehearsal:LocalRehearsal",
    "networkfilter": "extensions.networkfilter.rehearsal:NetworkFilterRehearsal",
}
MISSING = {
    "aws": {"targetgroupbindings.elbv2.k8s.aws", "machineclasses.machine.sapcloud.io"},
    "azurecontrolplane": {"managedresources.resources.gardener.cloud"},
    "certificate": {"issuers.certificates.example.org"},
    "local": {"managedresources.resources.gardener.cloud", "mounts.storage.example.org"},
    "networkfilter": {"managedresources.resources.gardener.cloud"},
}
"""The CRDs that a sample's objects name, each object the first that it needs."""
OF_GARDENER = {str(resource_of(cls.KIND)) for cls in (ManagedResource, *MACHINE_KINDS)}
"""Gardener installs them in each seed."""
NAMED = re.compile(r"needs the CRD ([a-z0-9.-]+); install the CRD")


def test_each_rehearsal_with_crds_is_here_and_its_readme_names_them():
    folder = Path(extensions.__file__).parent
    readmes = sorted(folder.glob("*/README.md"))
    assert {readme.parent.name for readme in readmes} >= set(REHEARSALS)
    for readme in readmes:
        sample = readme.parent.name
        text = readme.read_text(encoding="utf-8")
        for module in sorted(readme.parent.glob("*rehearsal.py")):
            assert "def crds" not in module.read_text(encoding="utf-8") or sample in REHEARSALS
        if sample in REHEARSALS:
            for crd in load(REHEARSALS[sample])().crds():
                name = crd["metadata"]["name"]
                kind = crd["spec"]["names"]["kind"]
                is_named = re.search(rf"(?mi)^(?=.*\bcrds?\b).*\b{kind}\b", text)
                assert is_named or name in OF_GARDENER, f"{readme} does not name {name}"


@pytest.fixture(scope="module")
def seed_cluster():
    with Environment() as environment:
        install(environment, [*RECORD_KINDS, Cluster, *KINDS])
        yield environment


@pytest.fixture(params=MISSING)
def sample(request, tmp_path):
    rehearsal = load(REHEARSALS[request.param])()
    rehearsal.start(tmp_path)
    yield request.param, rehearsal
    rehearsal.stop()


class Life:
    """A shoot with the objects of a sample."""

    def __init__(self, admin, rehearsal, type):
        technical_id = f"shoot--{secrets.token_hex(3)}--x"
        labels = {"shoot.gardener.cloud/technical-id": technical_id}
        shoot = SeedShoot(
            technical_id=technical_id,
            name="x",
            project="test",
            region=rehearsal.region,
            labels=labels,
        )
        rehearsed = RehearsedShoot(technical_id=technical_id, type=type, labels=labels)
        self.garden = Garden(admin)
        self.garden.create_namespace(shoot)
        kinds = [object_class(actuator).KIND for actuator in rehearsal.actuators()]
        self.flow = GardenletFlows(self.garden, shoot, kinds, patience=PATIENCE)
        self.shoot = shoot
        self.kinds = kinds
        manifests = list(rehearsal.manifests(rehearsed))
        for manifest in manifests:
            if manifest["apiVersion"] == "v1":
                self.garden.deploy(manifest)
        first = [kind for kind in kinds if kind is Infrastructure.KIND]  # others read its status
        self.flow.deploy(first, manifests, "reconcile")
        self.flow.wait(first, not_ready_because)
        self.flow.deploy(kinds, manifests, "reconcile")

    def objects(self):
        return [obj for kind in self.kinds for obj in self.garden.objects(kind, self.shoot)]

    def missing(self):
        """The CRDs that the objects name; none while one of them has no outcome."""
        found = set()
        for obj in self.objects():
            why = not_ready_because(obj)
            if why is None:
                continue
            name = NAMED.search(why)
            if name is None:
                return set()
            codes = obj["status"]["lastError"].get("codes")
            assert codes == [ErrorCode.ERR_CONFIGURATION_PROBLEM], obj
            found.add(name[1])
        return found


@pytest.mark.long
def test_a_missing_crd_is_named_with_a_code_and_blocks_no_deletion(seed_cluster, sample):
    name, rehearsal = sample
    admin = connect(seed_cluster.kubeconfig)
    manager = Manager(Options(metrics_bind_address="0", health_bind_address="0"))
    for actuator in rehearsal.actuators():
        manager.add(actuator, type="test")
    with connected(seed_cluster, admin, manager, name):
        manager.start()
        deleted, forced = (Life(admin, rehearsal, "test") for _ in range(2))
        for life in (deleted, forced):
            eventually(lambda item=life: item.missing() == MISSING[name])
        forced.garden.force(forced.shoot)
        for life in (deleted, forced):
            life.flow.remove(life.kinds)
            life.flow.wait(life.kinds, still_there)
