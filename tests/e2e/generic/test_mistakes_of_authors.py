"""The mistakes of authors, each made as an author makes it: one sentence names the remedy.

Each row runs a command of the author: `actuator run`, `actuator drill` or `actuator dev`, or the
manager with an object of the extension. Variants of a mistake are in
`tests/unit/generic/test_mistakes.py`, wrong command lines in `test_wrong_inputs.py` beside it.
"""

from __future__ import annotations

import re
import runpy
import socket
from pathlib import Path

import pytest

from generic.serving.logs import TextFormatter
from tests.support.cluster.harness import eventually
from tests.support.objects import builders
from tests.support.programs.dev import Development

HEAD = """
from dataclasses import dataclass
from typing import ClassVar

import attrs

from actuator import *
from actuator.interface import C
from actuator.meta import Kind, Object, Raw, own_kind
from actuator.v1alpha1 import Infrastructure

class Base(Actuator[Infrastructure, C]):
    def reconcile(self, ctx, obj, cluster): ...
    def delete(self, ctx, obj, cluster): ...

@attrs.frozen(kw_only=True)
class Config(ProviderConfig):
    api_version: str = "mine.example.org/v1"
    kind: str = "MyConfig"

class Network(Base[Raw]):
"""
TAIL = """
def extension(manager):
    manager.add(Network(), type="mine")
"""
RECONCILE = "    def reconcile(self, ctx, obj, cluster):\n        "
HERE = r"\(/\S+/mine\.py:\d+\)"
"""The class or method, in a message of `Manager.add`."""
AT = r"\(mine\.py:\d+\)"
"""The line, in a message about a call."""
RUN = "run mine:extension --metrics-bind-address=0 --health-bind-address=0"


CLASSES = {
    "misspelt override": (
        "    def extrnal_resources(self, obj): ...",
        rf"Network\.extrnal_resources .* did you mean 'external_resources'\? {HERE}",
    ),
    "wrong arity": (
        "    def delete(self, ctx, obj): ...",
        rf"Network\.delete cannot be called with \(ctx, obj, cluster\): .*; correct its .* {HERE}",
    ),
    "async method": (
        "    async def delete(self, ctx, obj, cluster): ...",
        rf"Network\.delete is async, .*; remove async {HERE}",
    ),
    "yield instead of return": (
        f"{RECONCILE}yield",
        rf"Network\.reconcile yields, .*; return instead {HERE}",
    ),
    "permission as text": (
        '    permissions = ["get configmaps"]',
        rf"permissions has 'get configmaps'; expected a list of Permission, such as .* {HERE}",
    ),
    "exception in __init__": (
        "    def __init__(self): self.region = {}['region']",
        rf"mine:extension: KeyError: 'region' {AT}",
    ),
    "dataclass configuration": (
        (
            "    pass\n@dataclass\nclass X(ProviderConfig):\n    size: int = 1\n"
            "class Network(Base[X]): ..."
        ),
        rf"X: it is a dataclass; declare it with @attrs\.frozen\(kw_only=True\) instead {HERE}",
    ),
    "undecorated configuration": (
        "    pass\nclass X(Config):\n    size: int = 1\nclass Network(Base[X]): ...",
        rf"X: it is no attrs class, .*; decorate it with @attrs\.frozen\(kw_only=True\) {HERE}",
    ),
    "mutable default": (
        (
            "    pass\n@attrs.frozen(kw_only=True)\nclass X(Config):\n    zones: list[str] = []\n"
            "class Network(Base[X]): ..."
        ),
        rf"X: zones: all objects share the default .*; use attrs\.field\(factory=list\) {HERE}",
    ),
    "syntax error": ("    def", rf"importing mine failed: SyntaxError: .* {AT}"),
}
MODULES = {
    "misspelt abstract method": (
        (
            "class Network(Actuator[Infrastructure]):\n"
            "    def reconcile(self, ctx, obj, cluster): ...\n"
            "    def delte(self, ctx, obj, cluster): ...\n"
        ),
        rf"Network has no method delete; rename delte to delete {HERE}",
    ),
    "Actuator without kind": (
        (
            "class Network(Actuator):\n"
            "    def reconcile(self, ctx, obj, cluster): ...\n"
            "    def delete(self, ctx, obj, cluster): ...\n"
        ),
        rf"Network does not declare its kind; derive it from Actuator\[KIND\], .* {HERE}",
    ),
}
"""Both are code of the module mine, whose `extension` adds a Network."""
LINES = {
    "class instead of instance": (
        "run mine:add_class",
        rf"expected an Actuator, got <class 'mine\.Base'>; add an instance of it {HERE}",
    ),
    "missing type": (
        "run mine:Base",
        r"Infrastructure objects have a type; set type=…, or --type on the command line",
    ),
    "wrong module": ("run mien:extension", r"module 'mien' not found; install it, or run in its"),
    "wrong object": ("run mine:extensoin", r"has no 'extensoin'; did you mean 'extension'\?"),
    "extension instead of rehearsal": ("drill mine:extension", r"expected a rehearsal MODULE:CLA"),
    "error in a rehearsal": (
        "drill mine:Faulty --output out",
        r"^Error: Untitled\.manifests: KeyError: 'zone' \(mine\.py:\d+\)$",
    ),
    "rehearsal without a title": (
        "drill mine:Untitled --output out",
        r"^Error: mine:Untitled: AttributeError: 'Untitled' object has no attribute 'title'$",
    ),
    "misspelt attribute of a rehearsal": (
        "drill mine:Misspelt --output out",
        rf"^Error: mine:Misspelt: Misspelt\.secretdata .* mean 'secret_data'\? {HERE}$",
    ),
    "rehearsal that is not shared": (
        "explore mine:Faulty",
        r"^Error: the outside of Faulty cannot be shared .*the methods share and attach$",
    ),
    "program in place of an extension": (
        "run started:extension",
        r"importing started ended the process with 2; start a program with python \(star",
    ),
    "missing kubeconfig": (f"{RUN} --kubeconfig missing", r"missing does not exist; set --kubecon"),
    "broken kubeconfig": (f"{RUN} --kubeconfig broken", r"kubeconfig broken: .*; correct the file"),
    "empty kubeconfig": (
        f"{RUN} --kubeconfig empty",
        r"file is empty; correct the file",
    ),
    "port of metrics in use": (
        f"{RUN} --metrics-bind-address 127.0.0.1:TAKEN --kubeconfig KUBECONFIG",
        r"127\.0\.0\.1:\d+: Address already in use; set another --metrics-bind-address",
    ),
    "port of health in use before the cluster": (
        "dev mine:extension --metrics-bind-address=0 --health-bind-address=127.0.0.1:TAKEN",
        r"127\.0\.0\.1:\d+: Address already in use; set another --health-bind-address",
    ),
    "port of webhooks in use before the cluster": (
        (
            "dev mine:hooked --metrics-bind-address=0 --health-bind-address=0 "
            "--webhook-config-server-port=TAKEN"
        ),
        r"127\.0\.0\.1:\d+: Address already in use; set another --webhook-config-server-port",
    ),
}
"""Command lines, with an extension that has no other mistake."""
OTHERS = """
from generic.testing import Rehearsal

class Untitled(Rehearsal):
    def start(self, directory): ...
    def inject_failure(self, scenario): ...
    def remaining_resources(self):
        return []
    def actuators(self):
        return [Network()]
    def manifests(self, shoot):
        return [{"kind": "Infrastructure", "zone": shoot.labels["zone"]}]

class Faulty(Untitled):
    title = "Faulty"

class Misspelt(Faulty):
    secretdata = {}

def add_class(manager):
    manager.add(Base, type="mine")

def hooked(manager):
    from generic.library.webhooks import mutates
    declare = mutates(
        Infrastructure, failure_policy="Fail", name="zone", namespace_labels={"a": "b"}
    )
    manager.add_webhooks(declare(lambda request: None))
"""
CALLS = {
    "returned dict": (
        f"{RECONCILE}return {{'id': 1}}",
        r"Network\.reconcile returned dict; it must return None or a Result .*again",
    ),
    "wrong status field": (
        f"{RECONCILE}obj.status.node_cidr = '10.0.0.0/16'",
        rf"InfrastructureStatus has no field node_cidr; did you mean 'nodes_cidr'\? {AT}",
    ),
    "wrong field of the spec": (
        f"{RECONCILE}ctx.log.info(obj.spec.regoin)",
        rf"InfrastructureSpec has no field regoin; did you mean 'region'\? {AT}",
    ),
    "dict in place of an object": (
        f"{RECONCILE}obj.status.conditions.append({{'type': 'Ready'}})",
        r"cannot write status\.conditions: TypeError: expected Condition, got dict; the ext",
    ),
    "text in place of a list": (
        f"{RECONCILE}obj.status.egress_cidrs = '10.0.0.0/8'",
        r"cannot write status\.egressCIDRs: TypeError: expected a list, got a string; the ex",
    ),
    "number in place of a text": (
        f"{RECONCILE}obj.status.nodes_cidr = 10",
        r"cannot write status\.nodesCIDR: expected a string, got an integer; the extension must",
    ),
    "validate without a result": (
        "    def validate(self, ctx, obj, cluster): ...",
        r"Network\.validate returned NoneType; it must yield FieldProblems",
    ),
    "code as one text": (
        f"{RECONCILE}raise ActuatorError('no', codes='ERR_QUOTA_EXCEEDED')",
        r"no; unknown error code 'ERR_QUOTA_EXCEEDED' is ignored; did you mean 'ERR_INFRA_QUOTA_EX",
    ),
    "written spec": (
        f"{RECONCILE}obj.spec.region = 'eu-1'",
        rf"InfrastructureSpec\.region cannot be set; .* only the fields of obj\.status {AT}",
    ),
    "unknown error code": (
        f"{RECONCILE}raise ActuatorError('no', codes=[ErrorCode.ERR_QUOTA_EXCEEDED])",
        rf"no ErrorCode ERR_QUOTA_EXCEEDED; did you mean 'ERR_INFRA_QUOTA_EXCEEDED'\? {AT}",
    ),
    "unknown error code as text": (
        f"{RECONCILE}raise ActuatorError('no', codes=['ERR_QUOTA_EXCEEDED'])",
        r"no; unknown error code 'ERR_QUOTA_EXCEEDED' is ignored; did you mean 'ERR_INFRA_QUOTA_EX",
    ),
    "undeclared permission": (
        f"{RECONCILE}ctx.client.get(Resource('v1', 'configmaps'), 'x', obj.metadata.namespace)",
        r'add Resource\("v1", "configmaps"\)\.permission\("get"\) to the `permissions',
    ),
    "provider configuration of another kind": (
        "    pass\nclass Network(Base[Config]): ...",
        r"spec\.providerConfig: other\.\S+/v1 Other is not supported; set apiVersion mine\.\S+",
    ),
    "blocking call": (
        "    def reconcile(self, ctx, obj, cluster):\n        GATE.wait(300)",
        r"Network\.reconcile has not returned for \d+ s; its thread is at mine\.py:\d+",
    ),
}
BUGS = {
    "misspelt capability": (
        f"{RECONCILE}ctx.evnt('Created', 'made')",
        rf"AttributeError: .* no attribute 'evnt'; did you mean 'event'\? {AT}",
    ),
    "kind in place of a plural": (
        f"{RECONCILE}ctx.client.get(Resource('v1', 'ConfigMap'), 'x', 'y')",
        rf"'ConfigMap' is no plural in lower case, such as 'configmaps' {AT}",
    ),
}
"""Bugs of other kinds: the log has the traceback as well."""
OTHER = {"apiVersion": "other.example.org/v1", "kind": "Other"}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """The author's directory as the current one; a manager's exit ends no test process."""
    (tmp_path / "broken").write_text("{")
    (tmp_path / "started.py").write_text("from generic import Manager\nManager.from_args(['-x'])")
    (tmp_path / "empty").touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os._exit", lambda code: (_ for _ in ()).throw(SystemExit(code)))
    monkeypatch.setattr("gc.freeze", lambda: None)


def check(printed, words):
    """The last line is the sentence, and there is no traceback."""
    assert re.search(words, printed.splitlines()[-1]), printed
    assert "Traceback" not in printed


@pytest.mark.parametrize(("body", "words"), CLASSES.values(), ids=CLASSES)
def test_a_mistake_in_a_class(command, body, words):
    Path("mine.py").write_text(f"{HEAD}{body}\n{TAIL}")
    check(command(*RUN.split(), status=1).stderr, words)


@pytest.mark.parametrize(("code", "words"), MODULES.values(), ids=MODULES)
def test_a_mistake_in_a_module(command, code, words):
    Path("mine.py").write_text(f"{HEAD}    pass\n{code}{TAIL}")
    check(command(*RUN.split(), status=1).stderr, words)


@pytest.mark.parametrize(("line", "words"), LINES.values(), ids=LINES)
def test_a_mistake_on_the_command_line(command, environment, line, words):
    Path("mine.py").write_text(f"{HEAD}    pass\n{OTHERS}{TAIL}")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        line = line.replace("TAKEN", port).replace("KUBECONFIG", str(environment.kubeconfig))
        status = 3 if line.startswith(("drill", "explore")) else 1  # their 1 is a broken rule
        check(command(*line.split(), status=status).stderr, words)


@pytest.mark.parametrize(("body", "words"), [*CALLS.values(), *BUGS.values()], ids=[*CALLS, *BUGS])
def test_a_mistake_in_a_call(seed, start, gate, caplog, monkeypatch, body, words):
    """The status and the log have the sentence; only a bug of another kind has a traceback."""
    monkeypatch.setattr("generic.reconciler.invoker.BLOCKS_AFTER_SECONDS", 1.0)
    Path("mine.py").write_text(f"{HEAD}{body}\n")
    module = runpy.run_path("mine.py", {"GATE": gate})
    start(module["Network"]())
    manifest = builders.infrastructure(seed.namespace, seed.namespace, provider_config=OTHER)
    seed.create(manifest)

    def told():
        status = seed.status()
        text = (status.get("lastError") or status["lastOperation"])["description"]
        return re.search(words, text)

    eventually(told)
    formatter = TextFormatter(tracebacks=False, colour=False)

    def logged():
        found = [
            formatter.format(record) for record in caplog.records if record.levelname != "INFO"
        ]
        return [
            item
            for item in found
            if re.search(rf"{words}|call blocks .* at=mine", item.replace('\\"', '"'))
        ]

    lines = eventually(logged)
    assert any("Traceback" in line for line in lines) is ((body, words) in BUGS.values())
    assert not any("FrozenInstance" in line for line in lines)


def test_a_missing_crd(seed, start, caplog):
    text = (
        "@attrs.define(kw_only=True)\nclass Tenant(Object):\n"
        '    KIND: ClassVar[Kind] = own_kind("Tenant", "absent.example.org")\n'
        "class Tenants(Actuator[Tenant]):\n    reconcile = delete = lambda self, *_: None\n"
    )
    Path("mine.py").write_text(f"{HEAD}    pass\n{text}")
    start(runpy.run_path("mine.py")["Tenants"]())
    [line] = eventually(
        lambda: [record for record in caplog.records if "not served" in record.message]
    )
    assert line.fields["resources"] == ["tenants.absent.example.org"]
    assert "install the CRD" in line.fields["remedy"]
    assert "`actuator crds MODULE:CLASS`" in line.fields["remedy"]
    assert line.exc_info is None


@pytest.mark.long
def test_mistakes_while_the_extension_is_developed(command, tmp_path):
    """A syntax error on reload, a bug, and the output of an author, as the terminal shows them."""
    lines = "print('PRINTED')", "import logging", "logging.warning('LOGGED')", "{}['vpc']"
    speaking = RECONCILE + "\n        ".join(lines)
    Path("mine.py").write_text(f"{HEAD}{speaking}{TAIL}")
    development = Development(
        tmp_path / "dev.log", "the manager serves Infrastructure mine", "dev", "mine:extension"
    )
    try:
        Path("mine.py").write_text(f"{HEAD}{speaking}{TAIL}\n(")
        sentence = rf"importing mine failed: SyntaxError: '\(' was never closed {AT}"
        eventually(lambda: re.search(sentence, development.text()))
        assert "Traceback" not in development.text()
        Path("mine.py").write_text(f"{HEAD}{speaking}{TAIL}")
        development.until_served()
        command("shoot", "create", "local", "--timeout", "1", status=1)
        eventually(lambda: "Traceback (most recent call last)" in development.text())
        for words in (
            "PRINTED",
            "LOGGED",
            "KeyError: 'vpc' (mine.py:",
            '{}["vpc"]'.replace('"', "'"),
        ):
            assert words in development.text()
    finally:
        development.kill()
