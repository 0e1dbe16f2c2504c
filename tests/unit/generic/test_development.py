"""`actuator dev` and `actuator shoot`, without a cluster: their decisions."""

import errno
import json
import os
from pathlib import Path

import attrs
import pytest
from msgspec import structs

from actuator import Actuator
from actuator.errors import ConfigurationError
from actuator.v1alpha1 import BackupBucket, BackupEntry, DNSRecord, Infrastructure, Worker
from generic.library.backupentry import technical_id_and_uid
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.testing.garden import ShootState
from generic.testing.garden.gardenlet import namespace_labels
from generic.testing.minimal import POOL
from generic.tools.cli.dev import sources, with_webhooks
from generic.tools.cli.development import DevelopmentTarget, announced, select
from generic.tools.cli.shoot import _Acts, shoot_named
from tests.support.objects.stand_ins import UNUSED

FOUND = DevelopmentTarget(
    extension="acme:extension", types=("acme",), kubeconfig=Path("kubeconfig")
)
NONE = DevelopmentTarget()


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_running_development_is_found_until_it_ends():
    assert select(NONE) == NONE
    with announced() as announce:
        with pytest.raises(ConfigurationError, match=r"still starting .* wait for its addresses"):
            select(NONE)
        with pytest.raises(ConfigurationError, match="still starting"):
            select(NONE, required=True)
        assert select(DevelopmentTarget(context="x")) == DevelopmentTarget(context="x")
        announce(FOUND)
        assert select(NONE) == FOUND
    assert select(NONE) == NONE
    assert list(Path.cwd().iterdir()) == []


@pytest.mark.parametrize("flags", [{"kubeconfig": Path("x")}, {"context": "x"}, {"master": "x"}])
def test_a_flag_selects_another_cluster(flags):
    with announced() as announce:
        announce(FOUND)
        assert select(DevelopmentTarget(**flags)) == DevelopmentTarget(**flags)


def test_a_flag_selects_another_extension_of_the_same_cluster():
    with announced() as announce:
        announce(FOUND)
        found = select(DevelopmentTarget(extension="own:extension", types=("own",)))
    assert found == structs.replace(FOUND, extension="own:extension", types=("own",))


def test_a_killed_development_is_not_found():
    Path(".actuator-dev").write_text(json.dumps({"extension": "killed:extension"}))
    assert select(NONE) == NONE
    with announced() as announce:  # and does not prevent the next one
        announce(FOUND)
        assert select(NONE) == FOUND


def test_a_second_development_in_the_directory_is_refused():
    refused = pytest.raises(ConfigurationError, match="already runs in this directory")
    with announced(), refused, announced():
        pass
    assert list(Path.cwd().iterdir()) == []


def test_a_folder_without_space_is_named(monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    with announced() as announce, pytest.raises(ConfigurationError) as refused:
        announce(FOUND)
    file = Path(".actuator-dev").absolute()
    assert str(refused.value).startswith(f"cannot write {file}: No space left on device; free")


def test_the_embedded_api_server_reaches_webhooks_without_flags():
    options = with_webhooks(Options(webhook_config_server_port=7443))
    assert (options.webhook_config_mode, options.webhook_config_url) == ("url", "127.0.0.1:7443")
    given = Options(webhook_config_namespace="garden")
    assert with_webhooks(given) is given


def test_the_namespace_of_a_shoot_has_the_labels_that_webhooks_select():
    types = [("Infrastructure", "acme"), ("Network", "calico"), ("Extension", "filter")]
    manifests = [{"kind": kind, "spec": {"type": type}} for kind, type in types]
    assert namespace_labels([*manifests, {"kind": "Secret"}]) == {
        "shoot.gardener.cloud/provider": "acme",
        "networking.shoot.gardener.cloud/provider": "calico",
        "extensions.gardener.cloud/filter": "true",
    }


SAVED = [
    ("acme.py", True),
    ("acme/cloud.py", True),
    ("acme/chart.yaml", False),
    (".git/hook.py", False),
    ("acme/__pycache__/cloud.py", False),
    ("node_modules/x.py", False),
    ("env/lib/x.py", False),
]


@pytest.mark.parametrize(("name", "restarts"), SAVED)
def test_saving_a_source_file_restarts_the_manager(name, restarts):
    Path("env").mkdir()
    Path("env/pyvenv.cfg").touch()
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    seen = sources(Path.cwd())
    path.write_text("1")
    created = sources(Path.cwd())
    path.write_text("12")
    changed = sources(Path.cwd())
    path.unlink()
    assert (created != seen, changed != created, sources(Path.cwd()) == seen) == (
        restarts,
        restarts,
        True,
    )


class Anything(Actuator):
    def __init_subclass__(cls):
        """Each subclass serves a kind."""

    def reconcile(self, ctx, obj, cluster): ...
    def delete(self, ctx, obj, cluster): ...


class Networks(Anything, Actuator[Infrastructure]): ...


class Names(Anything, Actuator[DNSRecord]): ...


class Machines(Anything, Actuator[Worker]): ...


class Buckets(Anything, Actuator[BackupBucket]): ...


class Entries(Anything, Actuator[BackupEntry]): ...


def play(*actuators, types=("acme",)):
    manager = Manager()
    for actuator in actuators:
        manager.add(actuator, type=types)
    kinds = [registration.kind for registration in manager.registrations]
    return _Acts(
        client=UNUSED,
        shoot=shoot_named("local"),
        cluster=None,
        served=manager.registrations,
        kinds=kinds,
        flow=UNUSED,
        given=(),
        file="",
    )


SECRET = {"name": "cloudprovider"}
MINIMAL = [
    (Networks(), {"type": "acme", "region": "local", "secretRef": SECRET}),
    (Machines(), {"type": "acme", "region": "local", "secretRef": SECRET, "pools": [POOL]}),
    (
        Names(),
        {
            "type": "acme",
            "region": "local",
            "secretRef": SECRET,
            "name": "api.shoot--dev--local-acme.example.org",
            "recordType": "A",
            "values": ["192.0.2.1"],
        },
    ),
]


@pytest.mark.parametrize(("actuator", "spec"), MINIMAL)
def test_a_minimal_object_has_the_required_fields(actuator, spec):
    found, *secrets = play(actuator)._minimal()
    assert found["spec"] == spec
    named = {pool["userDataSecretRef"]["name"] for pool in spec.get("pools", ())}
    assert {secret["metadata"]["name"] for secret in secrets} == named
    assert found["metadata"]["name"] == "local-acme"


def test_each_type_gets_an_object_of_its_own():
    found = play(Networks(), types=("one", "two"))._minimal()
    assert [obj["metadata"]["name"] for obj in found] == ["local-one", "local-two"]


def test_an_object_without_namespace_is_named_after_the_shoot():
    bucket, entry = play(Buckets(), Entries())._minimal()
    assert bucket["metadata"]["name"] == "shoot--dev--local-acme"
    assert technical_id_and_uid(entry["metadata"]["name"]) == ("shoot--dev--local", "acme")
    assert entry["spec"]["bucketName"] == bucket["metadata"]["name"]


NAMED = {"kind": "Infrastructure", "metadata": {"name": "x"}}
WHOLE = {"apiVersion": "extensions.gardener.cloud/v1alpha1", **NAMED}


def test_every_object_gets_the_namespace_and_the_labels_of_the_shoot():
    given = {
        **WHOLE,
        "metadata": {"name": "x", "namespace": "kube-system", "labels": {"a": "b"}},
        "spec": {"type": "acme", "secretRef": {"name": "own"}},
    }
    found = play(Networks())._placed(given)
    assert found["metadata"] == {
        "name": "x",
        "namespace": "shoot--dev--local",
        "labels": {"a": "b", **shoot_named("local").labels},
    }
    assert found["spec"]["secretRef"] == {"name": "own", "namespace": "shoot--dev--local"}


@pytest.mark.parametrize(
    "given",
    [5, ["x"], {"metadata": 5}, {"metadata": {"labels": 5}}, NAMED, {**WHOLE, "spec": 5}],
)
def test_a_value_that_is_no_manifest_is_refused(given):
    with pytest.raises(ConfigurationError):
        play(Networks())._placed(given)


class Migrated:
    """A flow and a client for a shoot without objects."""

    def begin_migration(self):
        return ShootState()

    def end_migration(self): ...

    def list(self, *_, **__):
        return []


def test_the_state_of_a_shoot_is_written_to_a_new_file_of_its_owner():
    other = Path("other")
    new = Path("local.shootstate.new")
    other.write_text("mine")
    shoot = attrs.evolve(play(Networks()), client=Migrated(), flow=Migrated())
    for left in (lambda: new.symlink_to(other), lambda: new.touch(mode=0o644)):
        left()
        file = Path("local.shootstate.json")
        assert shoot.migrate() == f"migrated; its state is in {file}"
        assert file.stat().st_mode & 0o777 == 0o600
        assert not file.is_symlink()
        file.unlink()
    assert other.read_text() == "mine"
