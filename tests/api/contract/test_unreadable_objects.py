"""An object of any kind that cannot be read is named, and stops no other."""

import json
import secrets

import pytest

from actuator import Resource
from actuator.v1alpha1 import KINDS
from generic.kube.client import path_of
from tests.support.cluster.harness import Script, eventually
from tests.support.objects.contract import manifest, secret

SECRETS = Resource("v1", "secrets")
DEEP = '[{"a":' * 1000 + "1" + "}]" * 1000


@pytest.mark.parametrize("cls", KINDS, ids=lambda cls: cls.KIND.name)
def test_an_unreadable_object_of_any_kind_is_named_and_stops_no_other(admin, of, seed, start, cls):
    script = Script(cls)
    admin.create(SECRETS, secret(seed.namespace))
    suffix = secrets.token_hex(3)  # some kinds have no namespace
    deep = of(cls, f"deep-{suffix}")
    good = of(cls, f"good-{suffix}")
    unreadable = manifest(cls, seed.namespace, deep.name, providerConfig={"deep": None})
    body = json.dumps(unreadable).replace("null", DEEP).encode()
    admin.send("POST", path_of(deep.resource, deep.where), body=body)
    start(script)
    good.create(manifest(cls, seed.namespace, good.name))
    eventually(good.is_ready)
    error = eventually(lambda: deep.status()["lastError"])
    assert "spec.providerConfig is nested deeper than" in error["description"]
    assert error["codes"] == ["ERR_CONFIGURATION_PROBLEM"]
    assert not deep.get()["metadata"].get("finalizers")
    for item in (deep, good):
        item.delete()
        eventually(item.is_gone)
    assert script.operations(deep.name) == []
    assert script.operations(good.name) == ["reconcile", "delete"]
