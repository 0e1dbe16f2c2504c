"""etcd is restored from a backup while a manager runs: whatever it remembers may never have been.

The backup is a copy of the data of a stopped etcd; its revisions go back as with `etcdutl snapshot
restore`. The API server is restarted, as etcd's documentation asks for.
"""

import shutil
import time
from itertools import count

import pytest

from actuator import ActuatorError, ExternalResource
from actuator.v1alpha1 import Cluster, Infrastructure
from generic.kube.client import connect
from generic.kube.clusters import NAMESPACES
from generic.manager.rbac import grant
from generic.reconciler.orphans import ORPHANS, RECORD_KINDS, SHOOT_LABEL
from generic.testing.envtest import Environment
from generic.testing.seed import install
from hack.faults import KillableServer
from tests.support.cluster.fault_proxy import TcpProxy
from tests.support.cluster.harness import FINALIZER, Script, Seed, eventually, running
from tests.support.objects.builders import cluster, infrastructure

DATA = "etcd"
"""The folder of etcd's data in that of the cluster."""

pytestmark = pytest.mark.long  # a cluster of its own, whose servers are restarted


@pytest.fixture(scope="module")
def own():
    with Environment() as environment:
        install(environment, [Infrastructure, Cluster, *RECORD_KINDS])
        yield environment


@pytest.fixture
def shoot(own):
    client = connect(own.kubeconfig)
    name = f"shoot--x--{time.monotonic_ns():x}"
    client.create(NAMESPACES, {"metadata": {"name": name}})
    seed = Seed(client, name)
    seed.create(cluster(name))
    return seed


@pytest.fixture
def proxy(own):
    proxy = TcpProxy(own.url)
    yield proxy
    proxy.close()


class OneVpc(Script):
    """Has one resource outside for each object."""

    def external_resources(self, obj):
        yield ExternalResource(type="VPC", id=f"vpc-{obj.metadata.name}")


def stop_servers(own):
    own.stop_apiserver()
    own.kill(KillableServer.ETCD)


def back_up(own):
    stop_servers(own)
    shutil.copytree(own.directory / DATA, own.directory / "backup")
    own.restart(KillableServer.APISERVER)


def restore(own):
    stop_servers(own)
    shutil.rmtree(own.directory / DATA)
    (own.directory / "backup").rename(own.directory / DATA)
    own.restart(KillableServer.APISERVER)


def create(seed, *names):
    for name in names:
        seed.create(infrastructure(seed.namespace, seed.namespace, name))
    for name in names:
        eventually(lambda name=name: seed.is_ready(name))


def fails(ctx, obj, cluster):
    if obj.metadata.name == "deleting":
        raise ActuatorError("the cloud says no")


def version(seed, name):
    return int(seed.get(name)["metadata"]["resourceVersion"])


@pytest.fixture
def script():
    return OneVpc(delete=fails)


@pytest.fixture
def manager(own, shoot, proxy, script):
    def user(manager):
        grant(shoot.client, manager, shoot.namespace)
        path = own.user_kubeconfig(shoot.namespace)
        path.write_text(path.read_text().replace(own.url, proxy.url))
        return path

    with running(own, shoot.client, shoot.namespace, script, user_for=user) as manager:
        yield manager


def test_everything_remembered_is_compared_after_a_restore_of_etcd(
    own, shoot, proxy, manager, script
):
    """Others write so much meanwhile that no version that a watch shows is below the last one.

    A version that is below is in `api/generic/test_informer.py`.
    """
    create(shoot, "kept", "released", "deleting", "changed")
    shoot.delete("deleting")
    eventually(lambda: shoot.last_operation("deleting") == ("Delete", "Error"))
    back_up(own)
    eventually(lambda: manager.check_ready()["streams"]() is None)
    script.on.clear()
    change_everything(shoot)
    eventually(lambda: manager.verdict(shoot.namespace).forced)
    eventually(
        lambda: all(informer.failing() == 0 for informer in manager._running.wiring.informers)
    )
    last = version(shoot, "changed")
    before = len(script.calls)
    restore_and_write(own, shoot, proxy, last)
    assert version(shoot, "changed") < last < version(shoot, "kept")

    eventually(lambda: shoot.is_gone("deleting"))
    again = [operation for operation, name in script.calls[before:] if name == "deleting"]
    assert again[0] in ("delete", "force_delete"), "watches are not ordered among each other"
    eventually(lambda: not manager.verdict(shoot.namespace).forced)
    shoot.delete("released")
    eventually(lambda: shoot.is_gone("released"))
    assert ("delete", "released") in script.calls[before:], "the shoot is not forced any more"
    change(shoot, "eu-3")
    create(shoot, "new")
    eventually(lambda: "vpc-created" in orphans(shoot))
    assert "delete" not in script.operations("created"), "its VPC may be in use"
    assert shoot.get("kept")["metadata"]["finalizers"] == [FINALIZER]
    assert "delete" not in script.operations("kept")
    assert manager.check_ready()["streams"]() is None


def change_everything(seed):
    """Make changes that the backup does not contain."""
    eventually(lambda: seed.is_gone("deleting"))
    seed.delete("released")
    eventually(lambda: seed.is_gone("released"))
    create(seed, "created")
    change(seed, "eu-2")
    seed.update_cluster(cluster(seed.namespace, force="true"))


def change(seed, region):
    """Give `changed` its second generation, and have it reconciled."""
    seed.patch({"spec": {"region": region}}, "changed")
    seed.ask("reconcile", "changed")
    eventually(lambda: seed.status("changed")["observedGeneration"] == 2)


def restore_and_write(own, seed, proxy, last):
    """Write as others do, before the manager can have a watch again."""
    proxy.refuses = True
    restore(own)
    numbers = count()
    while version(seed, "kept") <= last:
        seed.annotate("kept", n=str(next(numbers)))
    proxy.refuses = False


def orphans(seed):
    found = seed.client.list(ORPHANS, label_selector=f"{SHOOT_LABEL}={seed.namespace}")
    return {obj["spec"]["id"] for obj in found}
