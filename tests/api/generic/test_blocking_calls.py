"""A call that does not return is named: its method, its seconds, and the line where it blocks."""

from __future__ import annotations

import inspect
import re
from datetime import UTC, datetime

import pytest

from actuator.v1alpha1 import Infrastructure
from generic.tools.explain import explain
from tests.support.cluster.harness import FINALIZER, Script, eventually
from tests.support.objects import builders


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Half a second in place of 30."""
    monkeypatch.setattr("generic.reconciler.invoker.BLOCKS_AFTER_SECONDS", 1.5)


def blocking(gate, *operations):
    """An actuator whose operations wait; and the pattern of the text about each."""

    def wait(_ctx, _obj, _cluster):
        helper(gate)

    script = Script(**dict.fromkeys(operations, wait))
    place = re.escape(f"test_blocking_calls.py:{inspect.getsourcelines(helper)[1] + 1}")
    return script, rf"Script\.{{}} has not returned for [12] s; its thread is at {place}$"


def helper(gate):
    gate.wait(60)


def begin(seed, operation):
    """Let the manager call an operation."""
    finalizers = [] if operation == "reconcile" else [FINALIZER]
    seed.create(builders.infrastructure(seed.namespace, seed.namespace, finalizers=finalizers))
    if operation == "force_delete":
        seed.update_cluster(builders.cluster(seed.namespace, force="true"))
    if operation in ("migrate", "restore"):
        seed.ask(operation)
    elif operation != "reconcile":
        seed.delete()


def blockers(admin, seed):
    found = explain(admin, Infrastructure.KIND, seed.namespace, "infra", datetime.now(UTC))
    return [*found.standing.blockers, *(warning.message for warning in found.warnings)]


@pytest.mark.parametrize("operation", ["reconcile", "delete", "migrate", "restore", "force_delete"])
def test_a_call_that_blocks_is_named(admin, seed, start, gate, caplog, operation):
    script, pattern = blocking(gate, operation)
    start(script)
    begin(seed, operation)
    text = pattern.format(operation)
    eventually(lambda: any(re.search(text, blocker) for blocker in blockers(admin, seed)))
    if operation != "force_delete":  # which writes no status
        eventually(lambda: re.match(text, seed.status()["lastOperation"]["description"]))
    [line] = [record for record in caplog.records if record.message == "call blocks"]
    assert line.fields["method"] == f"Script.{operation}"
    assert line.fields["object"] == f"{seed.namespace}/infra"
    assert line.fields["seconds"] in (1, 2)
    assert text.endswith(re.escape(line.fields["at"]) + "$")
    gate.set()
    if operation in ("delete", "migrate", "force_delete"):
        eventually(lambda: seed.is_gone() or "finalizers" not in seed.get()["metadata"])
    else:
        eventually(seed.is_ready)


def test_the_text_does_not_replace_a_result(seed, start, gate):
    script, pattern = blocking(gate, "reconcile")
    start(script)
    begin(seed, "reconcile")
    text = pattern.format("reconcile")
    eventually(lambda: re.match(text, seed.status()["lastOperation"]["description"]))
    gate.set()
    eventually(seed.is_ready)
    assert seed.status()["lastOperation"]["description"].startswith("Successfully")


def test_a_call_that_returns_in_time_is_not_reported(seed, start, caplog):
    start(Script())
    begin(seed, "reconcile")
    eventually(seed.is_ready)
    assert not [record for record in caplog.records if record.message == "call blocks"]
    assert not seed.events("CallBlocks")


def test_an_abandoned_call_is_named_in_the_log_and_in_the_error(
    seed, start, gate, caplog, monkeypatch
):
    monkeypatch.setattr("generic.reconciler.calls.ABANDONED_AFTER_SECONDS", 0.1)

    def hang(ctx, _obj, _cluster):
        ctx.limit = ctx.clock.monotonic()
        gate.wait(60)

    start(Script(reconcile=hang))
    begin(seed, "reconcile")
    error = eventually(lambda: seed.status()["lastError"]["description"])
    line = inspect.getsourcelines(hang)[1] + 2
    assert f"its thread is at test_blocking_calls.py:{line}; the next call starts when" in error
    assert "Script.reconcile has not returned for" in error
    [logged] = [record for record in caplog.records if record.message == "call abandoned"]
    assert logged.fields["at"] == f"test_blocking_calls.py:{line}"
    assert logged.fields["method"] == "Script.reconcile"
