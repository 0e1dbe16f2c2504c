"""The objects that a rehearsal has by default: each is one that its actuator accepts."""

from typing import Annotated, Any, Literal

import attrs
import pytest

from actuator import Actuator, Object, ProviderConfig, Schema, SeedObjects, own_kind
from actuator.codec import decode
from actuator.interface import config_class, resource_of
from actuator.provider_config import Configurations
from actuator.schema import structural
from actuator.v1alpha1 import KINDS, BackupBucket, BackupEntry, DNSRecord, Extension, Worker
from extensions.aws.config import BastionConfig, ControlPlaneConfig
from extensions.certificate.config import CertificateConfig
from extensions.certificate.issuers import Issuer
from extensions.certificate.rehearsal import CertificateRehearsal
from extensions.local.config import NetworkConfig, ShareConfig
from extensions.networkfilter.config import FilterConfig
from extensions.relations.kinds import Entry, Mirror, Team
from generic.library import technical_id_and_uid
from generic.testing import Rehearsal, RehearsedShoot, minimal_object
from generic.testing.drill.inventory import spoiled
from generic.testing.minimal import minimal_spec
from generic.testing.rehearsal import CombinedRehearsal

SHOOT = RehearsedShoot(technical_id="shoot--a--b", type="drill-1", labels={"drill": "x"})
CREDENTIALS = "cloudprovider"
BACKUPS = "backup-shoot--a--b"
CONFIGS = (
    BastionConfig,
    CertificateConfig,
    ControlPlaneConfig,
    FilterConfig,
    NetworkConfig,
    ShareConfig,
)


def actuator(cls: Any, config: Any = None):
    class Author(Actuator[cls, config]):
        finalizer = "example.org/author"

        def reconcile(self, ctx, obj, cluster): ...
        def delete(self, ctx, obj, cluster): ...

    return Author()


def manifests(*actuators, suffixes=()):
    class Offered(Rehearsal):
        title = "offered"
        scenarios = {}
        type_suffixes = dict(suffixes)

        def start(self, directory): ...
        def inject_failure(self, scenario): ...
        def remaining_resources(self):
            return ()

        def actuators(self):
            return actuators

    found = Offered().manifests(SHOOT)
    assert found[0]["kind"] == "Secret"
    return [obj for obj in found if obj["metadata"]["name"] not in (CREDENTIALS, BACKUPS)]


@pytest.mark.parametrize("cls", [*KINDS, Entry, Mirror, Team])
def test_an_object_of_each_kind_has_all_required_fields(cls):
    obj, *secrets = manifests(actuator(cls))
    assert obj["kind"] == cls.KIND.name
    assert [secret["kind"] for secret in secrets] == ["Secret"] * (cls is Worker)
    required = structural(cls)["properties"]["spec"].get("required", ())
    assert {*required} <= obj["spec"].keys()
    assert decode(cls, obj).metadata.name
    assert obj["metadata"]["labels"] == SHOOT.labels
    assert ("namespace" in obj["metadata"]) == cls.KIND.namespaced


@pytest.mark.parametrize("cls", KINDS)
def test_the_required_fields_of_gardeners_kinds_have_values(cls):
    [obj, *_] = manifests(actuator(cls))
    assert [name for name, value in obj["spec"].items() if not value] == []


def test_dns_records_of_two_shoots_have_different_names():
    [record] = manifests(actuator(DNSRecord))
    assert SHOOT.technical_id in record["spec"]["name"]
    assert minimal_object(DNSRecord, "a").spec.name != minimal_object(DNSRecord, "b").spec.name


def test_a_minimal_worker_needs_no_configuration_of_a_pool():
    assert minimal_object(Worker).spec.pools == []


def test_an_object_of_an_own_kind_has_the_examples_of_its_required_fields():
    @attrs.frozen(kw_only=True)
    class PeeringSpec:
        size: Annotated[int, Schema(minimum=1)]
        peer: Annotated[str, Schema(example="vpc-1", pattern="vpc-[0-9]+")]
        mode: Literal["Active", "Passive"]
        ports: Annotated[list[Annotated[int, Schema(minimum=1)]], Schema(min_length=1)]

    @attrs.define(kw_only=True)
    class Peering(Object):
        KIND = own_kind("Peering", "acme.example.org")
        spec: PeeringSpec

    spec = minimal_spec(Peering, {})
    assert spec == {"size": 1, "peer": "vpc-1", "mode": "Active", "ports": [1]}


@pytest.mark.parametrize("config", CONFIGS)
def test_the_configuration_of_the_examples_is_accepted(config):
    served = actuator(Extension, config)
    [obj] = manifests(served)
    assert obj["spec"]["providerConfig"]["kind"] == config.__name__
    assert Configurations(config_class(served), decode(Extension, obj)).problems() == []


def test_a_worker_has_a_pool_with_its_configuration_and_user_data():
    worker, secret = manifests(actuator(Worker, NetworkConfig))
    [pool] = decode(Worker, worker).spec.pools
    assert (pool.provider_config or {})["kind"] == "NetworkConfig"
    assert pool.user_data_secret_ref.name == pool.node_agent_secret_name
    assert pool.user_data_secret_ref.name == secret["metadata"]["name"]
    assert secret["metadata"]["namespace"] == SHOOT.technical_id
    assert pool.user_data_secret_ref.key in secret["stringData"]


def test_a_backup_entry_is_named_after_its_shoot_and_is_in_the_bucket():
    bucket, entry = manifests(actuator(BackupBucket), actuator(BackupEntry))
    assert technical_id_and_uid(entry["metadata"]["name"])[0] == SHOOT.technical_id
    assert entry["spec"]["bucketName"] == bucket["metadata"]["name"]
    references = [obj["spec"]["secretRef"] for obj in (bucket, entry)]
    assert references == [{"name": CREDENTIALS, "namespace": BACKUPS}] * 2


@pytest.mark.parametrize("cls", KINDS)
def test_the_invalid_object_of_a_drill_is_refused_whatever_its_kind(cls):
    obj = manifests(actuator(cls, NetworkConfig))[0]
    assert Configurations(NetworkConfig, decode(cls, obj)).problems() == []
    CombinedRehearsal([CertificateRehearsal()]).spoil(obj)
    assert Configurations(NetworkConfig, decode(cls, obj)).problems() != []


def test_kinds_without_force_deletion_have_no_invalid_object():
    objects = manifests(actuator(BackupBucket), actuator(BackupEntry))
    secret = {"kind": "Secret"}
    kinds = [BackupBucket.KIND, BackupEntry.KIND]
    assert spoiled(
        [[secret, *objects]], kinds, CombinedRehearsal([CertificateRehearsal()]).spoil
    ) == [secret]


def test_a_list_with_an_example_has_an_entry():
    [obj] = manifests(actuator(Extension, CertificateConfig))
    [issuer] = obj["spec"]["providerConfig"]["issuers"]
    assert issuer["name"] == "letsencrypt"


def test_an_extension_without_configuration_gets_none():
    [obj] = manifests(actuator(Extension))
    assert "providerConfig" not in obj["spec"]


def test_a_required_field_without_example_is_named():
    @attrs.frozen(kw_only=True)
    class Bare(ProviderConfig):
        api_version: str = "a.example.org/v1"
        kind: str = "Bare"
        size: Annotated[int, Schema(minimum=1)]

    served = actuator(Extension, Bare)
    [obj] = manifests(served)
    [problem] = Configurations(Bare, decode(Extension, obj)).problems()
    assert str(problem).startswith("spec.providerConfig.size: expected an integer")


def test_actuators_of_one_kind_get_objects_of_their_own_types():
    first = actuator(Extension)
    second = actuator(Extension)
    found = manifests(first, second, suffixes={type(second): "-more"}.items())
    assert [obj["spec"]["type"] for obj in found] == ["drill-1", "drill-1-more"]
    assert len({obj["metadata"]["name"] for obj in found}) == 2


def test_a_rehearsal_of_shoots_has_managed_resources_and_the_kinds_of_others():
    kinds = [crd["spec"]["names"]["kind"] for crd in CertificateRehearsal().crds()]
    assert kinds == ["ManagedResource", "Issuer"]


def test_a_class_names_the_resource_of_seed_objects():
    assert SeedObjects(Issuer).resource == resource_of(Issuer.KIND)
    with pytest.raises(TypeError, match="expected a Resource"):
        SeedObjects(str)  # type: ignore[arg-type]  # what is refused
