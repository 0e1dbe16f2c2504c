"""Finalizers of ours: refused before they are sent where a core object would refuse them."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from actuator.meta import Raw
from actuator.qualified import require_qualified
from actuator.v1alpha1 import Extension
from generic import Manager, finalizer
from generic.kube.finalizers import patch_adding
from tests.support.cluster.answers import CONFIG_MAPS, INFRASTRUCTURES, Server
from tests.support.cluster.harness import Script

LONGEST = st.integers(62, 64).map("x".__mul__)
PARTS = st.text("aZ0.-_", max_size=6) | LONGEST
NAMES = st.lists(PARTS, min_size=1, max_size=3).map("/".join)


@given(NAMES)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_we_accept_each_name_that_a_core_object_accepts(environment, namespace, name):
    """But for Kubernetes' own names, which are not ours to use."""
    server = Server(environment, CONFIG_MAPS, namespace)
    manifest = {"metadata": {"name": "any", "finalizers": [name]}}
    status = server.ask("POST", "", manifest, dryRun="All").status
    try:
        require_qualified(name)
    except ValueError:
        assert status == 422
    else:
        assert status == 201


def test_an_actuator_with_an_unqualified_finalizer_is_not_added():
    script = Script(Extension)
    script.finalizer = "mine"
    with pytest.raises(TypeError, match=r"^add\(Script\(\)\): finalizer 'mine' is not quali"):
        Manager().add(script, type="any")


def fail(obj: Raw) -> None:
    raise AssertionError(obj)


def test_a_controller_without_a_manager_is_refused_too(admin, environment, namespace):
    server = Server(environment, INFRASTRUCTURES, namespace)
    made = server.create("by-hand").body
    with pytest.raises(ValueError, match="finalizer 'mine' is not qualified; use"):
        finalizer(admin, INFRASTRUCTURES, made, "mine", apply=fail, cleanup=fail)
    assert server.get("by-hand").finalizers == []
    with pytest.raises(ValueError, match="is not qualified"):
        patch_adding("mine", "uid", [])
