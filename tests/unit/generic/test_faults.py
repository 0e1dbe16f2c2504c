"""Faults as data: their targets, their number, and scripts of them. No cluster."""

import json
import sys
import threading
import time
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actuator.errors import ActuatorError, ConfigurationError, ErrorCode, Unavailable
from hack.faults import (
    ActuatorEffect,
    ActuatorFault,
    Effect,
    Fault,
    FaultStage,
    FaultStep,
    FaultyActuator,
    FaultyCall,
    KillableServer,
    Revoked,
    play,
)
from hack.faults.permission import _split
from hack.faults.rules import Injection, Injections, Rule
from tests.soak.script import from_json, random_script, to_json
from tests.support.cluster.harness import Script as Actions
from tests.support.cluster.harness import eventually

PATHS = [
    ("GET", "/api/v1/secrets?limit=1", FaultyCall("list", "secrets")),
    ("GET", "/api/v1/namespaces", FaultyCall("list", "namespaces")),
    ("GET", "/api/v1/namespaces/a", FaultyCall("get", "namespaces", name="a")),
    (
        "PUT",
        "/api/v1/namespaces/a/finalize",
        FaultyCall("update", "namespaces", "", "a", "finalize"),
    ),
    ("POST", "/api/v1/namespaces/a/events", FaultyCall("create", "events", "a")),
    ("GET", "/apis/g.io/v1/things?watch=true", FaultyCall("watch", "things.g.io")),
    ("GET", "/apis/g.io/v1/things?watch=false", FaultyCall("list", "things.g.io")),
    (
        "PATCH",
        "/apis/g.io/v1/namespaces/a/things/b/status",
        FaultyCall("patch", "things.g.io", "a", "b", "status"),
    ),
    (
        "DELETE",
        "/apis/g.io/v1/namespaces/a/things",
        FaultyCall("deletecollection", "things.g.io", "a"),
    ),
    (
        "DELETE",
        "/apis/g.io/v1/namespaces/a/things/a%3Ab",
        FaultyCall("delete", "things.g.io", "a", "a:b"),
    ),
    ("GET", "/readyz", FaultyCall("get", name="/readyz")),
    ("GET", "/apis/g.io/v1", FaultyCall("get", name="/apis/g.io/v1")),
]


@pytest.mark.parametrize(("method", "target", "call"), PATHS)
def test_a_request_is_read_as_rbac_reads_it(method, target, call):
    assert FaultyCall.parse(method, target) == call


def test_a_fault_hits_only_the_calls_that_it_names():
    call = FaultyCall("patch", "things.g.io", "a", "b", "status")
    cut = Effect.CUT
    assert Fault(effect=cut).hits(call)
    assert Fault(effect=cut, verbs=["get", "patch"], resource="things.*", name="b").hits(call)
    assert not Fault(effect=cut, subresource="").hits(call)
    assert not Fault(effect=cut, verbs=["get"]).hits(call)
    assert not Fault(effect=cut, namespace="b*").hits(call)
    assert not Fault(effect=cut).hits(call, line=True)
    assert Fault(effect=Effect.SILENCE).hits(call, line=True)


def strikes(rule, matches):
    injection = Injection(rule)
    return [injection.strikes() for _ in range(matches)]


def test_a_rule_passes_some_hits_some_and_is_done():
    assert strikes(Rule(after=1, times=2), 5) == [False, True, True, False, False]


def test_the_same_seed_hits_the_same_requests():
    rule = Rule(probability=0.5, seed=7)
    first = strikes(rule, 50)
    assert first == strikes(rule, 50)
    assert 10 < sum(first) < 40


def test_a_removed_rule_hits_nothing_and_the_next_one_is_asked():
    rules: Injections[Rule] = Injections()
    first = rules.add(Rule())
    second = rules.add(Rule(after=1))
    assert rules.pick(lambda _: True) is first
    first.remove()
    assert rules.pick(lambda _: True) is None
    assert rules.pick(lambda _: True) is second
    assert (first.hits, second.hits) == (1, 1)


def test_a_rule_counts_exactly_under_many_threads():
    injection = Injection(Rule(times=50))
    go = threading.Barrier(8)

    def strike():
        go.wait()
        for _ in range(100):
            injection.strikes()

    threads = [threading.Thread(target=strike) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert injection.hits == 50


# --- permissions


def rule(groups, resources, verbs):
    return {"apiGroups": groups, "resources": resources, "verbs": verbs}


def test_only_the_named_verbs_of_the_named_resource_are_taken():
    urls = {"nonResourceURLs": ["/metrics"], "verbs": ["patch"]}
    rules = [rule(["g"], ["a", "a/status"], ["get", "patch"]), rule([""], ["events"], ["create"])]
    rules.append(urls)
    kept, lost = _split(rules, Revoked(resource="*/status", verbs=["patch"]))
    assert lost == [rule(["g"], ["a/status"], ["patch"])]
    assert kept == [
        rule(["g"], ["a"], ["get"]),
        rule(["g"], ["a"], ["patch"]),
        rule(["g"], ["a/status"], ["get"]),
        rule([""], ["events"], ["create"]),
        urls,
    ]


# --- actuators


class Ctx:
    """The context of a call; check() raises `stopped`."""

    stopped: Exception | None = None

    def check(self):
        if self.stopped:
            raise self.stopped


def faulty():
    inner = Actions()
    return inner, FaultyActuator(inner)


def called(name="infra"):
    return SimpleNamespace(metadata=SimpleNamespace(name=name))


def in_thread(target):
    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    return thread


def test_a_call_fails_as_often_as_requested():
    inner, actuator = faulty()
    codes = [ErrorCode.ERR_INFRA_UNAUTHENTICATED]
    fault = ActuatorFault(
        effect=ActuatorEffect.FAIL, operations=["delete"], name="in*", times=1, codes=codes
    )
    injection = actuator.inject(fault)
    actuator.delete(Ctx(), called("other"), None)
    actuator.reconcile(Ctx(), called(), None)
    with pytest.raises(ActuatorError) as caught:
        actuator.delete(Ctx(), called(), None)
    assert caught.value.codes == tuple(codes)
    actuator.delete(Ctx(), called(), None)
    assert injection.hits == 1
    assert inner.calls == [("delete", "other"), ("reconcile", "infra"), ("delete", "infra")]


def test_a_call_raises_the_injected_error_after_its_work():
    inner, actuator = faulty()
    actuator.inject(ActuatorFault(effect=ActuatorEffect.FAIL_AFTERWARDS, message="no route"))
    with pytest.raises(ActuatorError, match="no route"):
        actuator.force_delete(Ctx(), called(), None)
    assert inner.operations() == ["force_delete"]


def test_a_call_that_hangs_hears_nothing_until_it_is_released():
    inner, actuator = faulty()
    injection = actuator.inject(ActuatorFault(effect=ActuatorEffect.HANG))
    ctx = Ctx()
    ctx.stopped = TimeoutError()
    thread = in_thread(lambda: actuator.migrate(ctx, called(), None))
    thread.join(0.2)
    assert thread.is_alive()
    assert not inner.calls
    injection.remove()
    thread.join(60)
    assert inner.operations() == ["migrate"]


def test_a_waiting_call_stops_when_its_check_raises():
    inner, actuator = faulty()
    actuator.inject(ActuatorFault(effect=ActuatorEffect.WAIT))
    ctx = Ctx()
    ctx.stopped = TimeoutError("stop")
    with pytest.raises(TimeoutError, match="stop"):
        actuator.restore(ctx, called(), None)
    assert not inner.calls


def test_a_slow_call_is_late():
    inner, actuator = faulty()
    actuator.inject(ActuatorFault(effect=ActuatorEffect.SLOW, seconds=0.2))
    start = time.monotonic()
    actuator.reconcile(Ctx(), called(), None)
    assert time.monotonic() - start >= 0.2
    assert inner.operations() == ["reconcile"]


# --- scripts


@given(
    seed=st.integers(0, 2**32),
    duration=st.floats(0, 600, allow_nan=False),
    words=st.lists(
        st.sampled_from(["request", "stream", "actuator", "permission", "kill", "refuse"]),
        min_size=1,
    ),
)
def test_a_random_script_is_the_same_for_its_seed_and_survives_json(seed, duration, words):
    script = random_script(seed, duration, words)
    assert script == random_script(seed, duration, words)
    assert from_json(to_json(script)) == script
    assert all(step.at + step.lasts <= duration + 0.05 for step in script)


texts = st.text(max_size=8)
counts = st.integers(0, 9)
seconds = st.floats(0, 1e6)
rules = {"after": counts, "times": counts, "probability": st.floats(0, 1), "seed": counts}
requests = st.builds(
    Fault,
    effect=st.sampled_from(Effect),
    verbs=st.lists(texts),
    subresource=texts,
    seconds=seconds,
    status=counts,
    **rules,
)
mischiefs = st.builds(
    ActuatorFault,
    effect=st.sampled_from(ActuatorEffect),
    message=texts,
    codes=st.lists(st.sampled_from(ErrorCode)),
    **rules,
)
things: list[dict[str, st.SearchStrategy[Any]]] = [
    {"fault": requests},
    {"actuator": mischiefs},
    {"revoke": st.builds(Revoked, group=texts, resource=texts, verbs=st.lists(texts))},
    {"kill": st.sampled_from(KillableServer)},
    {"refuse": st.just(True)},
]
steps = st.one_of(
    [st.builds(FaultStep, at=seconds, name=texts, lasts=seconds, **thing) for thing in things]
)


@given(st.lists(steps, max_size=4))
def test_every_script_survives_json(script):
    read = from_json(to_json(script))
    assert read == script
    assert repr(read) == repr(script)  # names that are read are of their enums again


def test_another_seed_gives_another_script_and_all_words_come_up():
    script = random_script(1, 600)
    assert script != random_script(2, 600)
    written = {field for step in json.loads(to_json(script)) for field in step}
    assert written >= {"at", "lasts", "name", "fault", "actuator", "revoke", "kill", "refuse"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "Expecting"),
        ('[{"at": 1}]', "exactly one of"),
        ('[{"refuse": true, "kill": "etcd"}]', "exactly one of"),
        ('[{"fault": {"effect": "melt"}}]', "expected one of cut, drop-answer"),
        ('[{"refuse": true, "until": 3}]', "until"),
    ],
)
def test_an_invalid_script_is_refused_with_the_reason(text, says):
    with pytest.raises(ConfigurationError, match=says):
        from_json(text)


def test_a_script_is_not_begun_where_something_is_missing():
    script = [FaultStep(name="first", kill=KillableServer.ETCD)]
    with pytest.raises(ConfigurationError, match="first needs an embedded cluster"):
        play(script, FaultStage(), threading.Event())


def fails(name):
    return ActuatorFault(effect=ActuatorEffect.FAIL, name=name)


def test_steps_begin_and_end_when_they_should():
    _, actuator = faulty()
    script = [
        FaultStep(name="a", actuator=fails("a"), lasts=2.0),
        FaultStep(name="late", actuator=fails("late"), at=1.0),
    ]

    def bad(name):
        try:
            actuator.reconcile(Ctx(), called(name), None)
        except ActuatorError:
            return True
        return False

    began = time.monotonic()
    thread = in_thread(lambda: play(script, FaultStage(actuators=[actuator]), threading.Event()))
    eventually(lambda: bad("a"))
    eventually(lambda: bad("late"))
    assert time.monotonic() - began >= 1.0
    eventually(lambda: not bad("a"))
    assert time.monotonic() - began >= 2.0
    thread.join(60)
    assert not thread.is_alive()
    assert not bad("late")


@pytest.mark.parametrize("answers", [True, False])
def test_a_step_waits_a_while_for_the_api_server(monkeypatch, answers):
    monkeypatch.setattr(sys.modules[play.__module__], "_PATIENCE", 0.5)
    _, actuator = faulty()
    refusals = iter([Unavailable(503, "down")] * (2 if answers else 1000))
    killed = []
    restarted: list[KillableServer] = []

    def kill(server):
        if error := next(refusals, None):
            raise error
        killed.append(server)

    environment: Any = SimpleNamespace(kill=kill, restart=restarted.append)
    script = [FaultStep(actuator=fails("*")), FaultStep(kill=KillableServer.ETCD, lasts=0.1)]
    stage = FaultStage(actuators=[actuator], environment=environment)
    with nullcontext() if answers else pytest.raises(Unavailable):
        play(script, stage, threading.Event())
    assert killed == restarted == [KillableServer.ETCD] * answers
    actuator.reconcile(Ctx(), called(), None)


def test_a_script_stops_on_request():
    _, actuator = faulty()
    stop = threading.Event()
    stop.set()
    play([FaultStep(actuator=fails("*"))], FaultStage(actuators=[actuator]), stop)
    actuator.reconcile(Ctx(), called(), None)
