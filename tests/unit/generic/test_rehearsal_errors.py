"""Errors of an author's rehearsal: one sentence with the method and the place, and no traceback."""

import inspect
from pathlib import Path
from typing import Any

import pytest

from actuator import Actuator
from actuator.errors import ActuatorError, ConfigurationError
from actuator.v1alpha1 import Infrastructure
from generic.kube.errorinfo import authors_code
from generic.library.programs.errors import EnvtestError
from generic.testing.rehearsal import CombinedRehearsal, Rehearsal, RehearsedShoot

SHOOT = RehearsedShoot(technical_id="shoot--a--b", type="drill-1", labels={})
MANIFEST: dict[str, Any] = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}}


class Idle(Actuator[Infrastructure]):
    def reconcile(self, ctx, obj, cluster): ...
    def delete(self, ctx, obj, cluster): ...


class Faultless(Rehearsal):
    title = "faultless"

    def start(self, directory): ...
    def inject_failure(self, scenario): ...

    def remaining_resources(self):
        return []

    def actuators(self):
        return []

    def manifests(self, shoot):
        return []


CALLS: dict[str, Any] = {
    "join": lambda combined: CombinedRehearsal([*combined.parts, *combined.parts]),
    "start": lambda combined: combined.start(Path()),
    "stop": lambda combined: combined.stop(),
    "crds": lambda combined: combined.crds(),
    "actuators": lambda combined: combined.actuators(),
    "webhooks": lambda combined: combined.webhooks(),
    "manifests": lambda combined: combined.manifests(SHOOT),
    "cluster": lambda combined: combined.cluster(SHOOT),
    "inject_failure": lambda combined: combined.inject_failure("everything-fails"),
    "remaining_resources": lambda combined: combined.remaining_resources(),
    "repair_failure": lambda combined: combined.repair_failure(),
    "share": lambda combined: combined.share(),
    "attach": lambda combined: combined.attach([{}]),
    "observe": lambda combined: combined.observe(None),
    "other_controllers": lambda combined: combined.other_controllers(None),
    "shoot_part": lambda combined: combined.shoot_parts("image"),
    "spoil": lambda combined: combined.spoil({"spec": {}}),
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_each_method_of_a_rehearsal_is_here():
    methods = inspect.getmembers(Rehearsal, inspect.isfunction)
    assert {name for name, _ in methods if not name.startswith("_")} == CALLS.keys()


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("error", [KeyError("zone"), SystemExit(4), OSError(28, "disk full")])
def test_an_error_names_the_method_and_the_line(name, error):
    def faulty(self, *given):
        raise error

    faulty.__qualname__ = f"Mine.{name}"
    combined = CombinedRehearsal([type("Mine", (Faultless,), {name: faulty})()])
    place = rf"^Mine\.{name}: {type(error).__name__}: .*\(test_rehearsal_errors\.py:\d+\)$"
    with pytest.raises(ConfigurationError, match=place):
        CALLS[name](combined)


@pytest.mark.parametrize("error", [ActuatorError("why"), EnvtestError("why")])
def test_errors_that_are_raised_on_purpose_pass(error):
    with pytest.raises(type(error), match=r"^why$"), authors_code("Mine", EnvtestError):
        raise error


RESULTS: dict[str, tuple[Any, str]] = {
    "nothing": (None, "Mine.manifests: expected a list, got None"),
    "one object": (MANIFEST, "Mine.manifests: expected a list, got {'apiVersion"),
    "names": (["secret"], "Mine.manifests: .* kind or metadata.name: 'secret'"),
    "no name": ([{**MANIFEST, "metadata": {}}], "Mine.manifests: .* or metadata.name: {'apiVer"),
    "no kind": ([{"metadata": {"name": "x"}}], "Mine.manifests: .* or metadata.name: {'metadata"),
    "huge": ([{"kind": "x" * 10_000}], r"Mine\.manifests: .{100,300}…$"),
}


def returning(given: object) -> CombinedRehearsal:
    def manifests(self, shoot):
        return given

    manifests.__qualname__ = "Mine.manifests"
    return CombinedRehearsal([type("Mine", (Faultless,), {"manifests": manifests})()])


@pytest.mark.parametrize(("given", "words"), RESULTS.values(), ids=RESULTS)
def test_manifests_that_cannot_be_created(given, words):
    with pytest.raises(ConfigurationError, match=words):
        returning(given).manifests(SHOOT)


def test_manifests_may_be_yielded():
    assert returning(iter([MANIFEST])).manifests(SHOOT) == [MANIFEST]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (None, "actuators: expected a list, got None"),
        ([Idle], "actuators: expected an Actuator, got <class .*; add an instance of it"),
        (Idle(), "actuators: expected a list, got <"),
    ],
)
def test_actuators_of_a_rehearsal_are_a_list_of_objects(given, words):
    class Mine(Faultless):
        def actuators(self):
            return given

    with pytest.raises(ConfigurationError, match=words):
        CombinedRehearsal([Mine()]).actuators()


def test_a_name_that_almost_overrides_one_is_refused():
    class Mine(Faultless):
        secretdata = {"key": "value"}

    place = r"\(/.*test_rehearsal_errors\.py:\d+\)$"
    with pytest.raises(
        TypeError, match=rf"^Mine.secretdata .* did you mean 'secret_data'\? {place}"
    ):
        CombinedRehearsal([Mine()])
