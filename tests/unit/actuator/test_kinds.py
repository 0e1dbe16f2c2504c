"""Every kind's facts as Gardener's contract has them, and objects written as they were read."""

import copy
import importlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from actuator import v1alpha1
from actuator.codec import decode, encode
from actuator.v1alpha1 import KINDS
from tests.support.objects.wire import any_object

PREFIX = "extensions.gardener.cloud/"
PLAIN = "Type, Status, Age"
REGIONAL = "Type, Region, Status, Age"
# name: short name, finalizer, timeout in seconds, printer columns
FACTS = {
    "BackupBucket": ("bb", "backupbucket", 180, "Type, Region, State, Age"),
    "BackupEntry": ("be", "backupentry", 180, "Type, Region, Bucket, State, Age"),
    "Bastion": ("", "bastion", 1200, "IP, Hostname, Age"),
    "ContainerRuntime": ("cr", "containerruntime", 180, PLAIN),
    "ControlPlane": ("cp", "controlplane", 180, PLAIN),
    "DNSRecord": ("dns", "dnsrecord", 180, "Type, Domain Name, Record Type, Status, Age"),
    "Extension": ("ext", "extension", 180, PLAIN),
    "Infrastructure": ("infra", "infrastructure", 1200, REGIONAL),
    "Network": ("", "network", 180, "Type, Pod CIDR, Service CIDR, Status, Age"),
    "OperatingSystemConfig": ("osc", "operatingsystemconfigs", 180, "Type, Purpose, Status, Age"),
    "SelfHostedShootExposure": (
        "exp",
        "selfhostedshootexposure",
        180,
        "Type, IP, Hostname, Status, Age",
    ),
    "Worker": ("", "worker", 1200, REGIONAL),
}
OUTSIDE_SHOOTS = {"BackupBucket", "BackupEntry"}
MAYBE_OUTSIDE = {"DNSRecord", "Extension"}
NOT_MIGRATED = {"BackupBucket", "Bastion", "SelfHostedShootExposure"}
each = pytest.mark.parametrize("cls", KINDS, ids=lambda cls: cls.__name__)


def test_there_are_twelve():
    assert [cls.__name__ for cls in KINDS] == sorted(FACTS)


@each
def test_a_kind_has_the_facts_of_the_contract(cls):
    kind = cls.KIND
    short, finalizer, timeout, columns = FACTS[kind.name]
    assert kind.plural == kind.name.lower().removesuffix("y") + (
        "ies" if kind.name.endswith("y") else "s"
    )
    assert " ".join(kind.short_names) == short
    assert kind.finalizer == PREFIX + finalizer
    assert kind.timeout == timeout
    assert ", ".join(column.name for column in kind.columns) == columns


@each
def test_the_place_of_a_kind_decides_about_its_cluster_and_force(cls):
    kind = cls.KIND
    need = "in-shoot-namespace" if kind.name in MAYBE_OUTSIDE else "required"
    force = "object-literal" if kind.name == "Bastion" else "shoot"
    if kind.name in OUTSIDE_SHOOTS:
        need = "never"
        force = "none"
    assert (kind.cluster, kind.force_from) == (need, force)
    assert kind.namespaced == (kind.name not in OUTSIDE_SHOOTS)
    assert kind.migratable == (kind.name not in NOT_MIGRATED)
    assert kind.skips_failed_shoot == (kind.name not in NOT_MIGRATED | OUTSIDE_SHOOTS)


@each
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_an_object_is_written_as_it_was_read(cls, data):
    wire = data.draw(any_object(cls))
    before = copy.deepcopy(wire)
    assert encode(decode(cls, wire)) == before


def test_the_package_has_every_class_of_its_modules():
    folder = Path(v1alpha1.__file__).parent
    modules = {f"actuator.v1alpha1.{file.stem}" for file in folder.glob("[a-z]*.py")}
    for module in map(importlib.import_module, modules):
        for name, value in vars(module).items():
            is_own = isinstance(value, type) and value.__module__ == module.__name__
            if is_own and name != "RegionalSpec":  # a base class
                assert getattr(v1alpha1, name) is value
    public = vars(v1alpha1)["__all__"]
    assert {cls.__name__ for cls in v1alpha1.KINDS} < set(public)
    assert all(hasattr(v1alpha1, name) for name in public)
    with pytest.raises(AttributeError, match="no attribute 'Missing'"):
        _ = v1alpha1.Missing  # type: ignore[attr-defined]  # what is refused
