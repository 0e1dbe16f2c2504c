"""Shoots of a real gardenlet, with our extensions as its only ones; AWS is simulated by moto.

gardenlet shows an error of an Infrastructure on the Shoot after minutes, and one of a ControlPlane
after half a minute: these waits are Gardener's own.
"""

import pytest
from aws_landscape import NAMESPACE, aws_landscape, shoot
from harness import eventually

from actuator.errors import ApiError, NotFound
from extensions.aws.controlplane import AwsControlPlane
from generic.kube.clusters import NAMESPACES
from generic.reconciler.orphans import ORPHANS, SHOOT_LABEL
from generic.testing.drill.seeds import other_owners
from generic.testing.landscape.garden import SHOOTS
from generic.testing.landscape.seed import SEEDS

CREATE, DELETE, FORCE, SEED = 600.0, 420.0, 180.0, 420.0
"""Seconds on a busy machine."""
CONFIRMED = {"confirmation.gardener.cloud/deletion": "true"}
FORCED = {"confirmation.gardener.cloud/force-deletion": "true"}


@pytest.fixture(scope="module")
def aws(tmp_path_factory):
    with aws_landscape(tmp_path_factory.mktemp("charts")) as running:
        eventually(lambda: succeeded(running.landscape.garden.client.get(SEEDS, "seed")), SEED)
        yield running


@pytest.fixture
def garden(aws):
    return aws.landscape.garden.client


def succeeded(obj):
    operation = (obj.get("status") or {}).get("lastOperation") or {}
    return operation.get("state") == "Succeeded"


def created(garden, name):
    garden.create(SHOOTS, shoot(name))
    eventually(lambda: succeeded(garden.get(SHOOTS, name, NAMESPACE)), CREATE)


def annotate(garden, name, annotations):
    garden.patch(SHOOTS, name, NAMESPACE, {"metadata": {"annotations": annotations}})


def delete(garden, name):
    annotate(garden, name, CONFIRMED)
    garden.delete(SHOOTS, name, NAMESPACE)


def codes(garden, name):
    errors = garden.get(SHOOTS, name, NAMESPACE)["status"].get("lastErrors") or []
    return {code for error in errors for code in error.get("codes") or ()}


def is_gone(client, *where):
    try:
        return client.get(*where) is None
    except NotFound:
        return True


def test_a_shoot_whose_credentials_are_revoked_is_force_deleted(aws, garden):
    created(garden, "forced")
    with pytest.raises(ApiError, match="force-deletion"):
        annotate(garden, "forced", FORCED)  # Gardener's condition: it is not being deleted
    aws.allow(active=False)
    try:
        delete(garden, "forced")
        eventually(lambda: "ERR_INFRA_UNAUTHENTICATED" in codes(garden, "forced"), DELETE)
        annotate(garden, "forced", FORCED)
        eventually(lambda: is_gone(garden, SHOOTS, "forced", NAMESPACE), FORCE)
    finally:
        aws.allow(active=True)
    seed, namespace = aws.seed.client, "shoot--dev--forced"
    found = seed.list(ORPHANS, label_selector=f"{SHOOT_LABEL}={namespace}")
    assert {"AWS::EC2::VPC", "AWS::EC2::Subnet"} <= {one["spec"]["resourceType"] for one in found}
    assert is_gone(seed, NAMESPACES, namespace)
    assert [name for name in aws.landscape.processes.alive() if namespace in name] == []


def test_a_shoot_is_created_and_deleted_to_its_end(aws, garden):
    """The AWS load balancer controller is simulated: a normal deletion waits for it."""
    created(garden, "deleted")
    delete(garden, "deleted")
    with other_owners(aws.seed.client, [AwsControlPlane()], ["shoot--dev--deleted"]):
        eventually(lambda: is_gone(garden, SHOOTS, "deleted", NAMESPACE), DELETE)
    label = f"{SHOOT_LABEL}=shoot--dev--deleted"
    assert aws.seed.client.list(ORPHANS, label_selector=label) == []
