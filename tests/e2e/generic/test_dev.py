"""docs/development-shoot.md: its commands work in the order of the page."""

import re
import shlex
from pathlib import Path

import pytest

from actuator.interface import Resource
from generic.kube.client import connect
from tests.support.cluster.harness import eventually
from tests.support.programs.dev import Development

DOCS = Path(__file__).parents[3] / "docs"
FILE = re.compile(r"^Create `(\S+)`:\n\n```\w+\n(.*?)^```", re.DOTALL | re.MULTILINE)
STEP = re.compile(
    rf"{FILE.pattern}|^In `(\S+)`, replace `(.+?)` with `(.+?)`|^```sh\n(.*?)^```",
    re.DOTALL | re.MULTILINE,
)
SERVES = "the manager serves Infrastructure acme"
INFRASTRUCTURES = Resource("extensions.gardener.cloud/v1alpha1", "infrastructures")


@pytest.fixture
def development(tmp_path, monkeypatch):
    """The extension of the tutorial, under development."""
    monkeypatch.chdir(tmp_path)
    for name, text in FILE.findall((DOCS / "tutorial.md").read_text()):
        Path(name).write_text(text)
    started = Development(tmp_path / "dev.log", SERVES, "dev", "acme:extension")
    yield started
    started.kill()


@pytest.mark.long
def test_every_command_of_the_page_works(development, command):
    shown = development.text()
    named = re.search(r"KUBECONFIG=(\S+)", shown)
    assert named, shown
    kubeconfig = Path(named[1])
    client = connect(kubeconfig)
    for part in ("acme:extension", "Infrastructure acme", "Kubernetes v1", "shoot create local"):
        assert part in shown
    for file, text, edited, old, new, lines in STEP.findall(
        (DOCS / "development-shoot.md").read_text()
    ):
        if file:
            Path(file).write_text(text)
        elif edited:
            break_and_repair(development, Path(edited), old, new)
        for line in lines.splitlines():
            run(line, command)
        if "reconcile" in lines:
            found = client.get(INFRASTRUCTURES, "local-acme", "shoot--dev--local")
            assert found["status"]["providerStatus"]["region"] == "europe-1"
    serves_two_types_of_a_kind(development, client, command)
    assert development.stop() == 0
    eventually(lambda: development.processes() == [])
    assert not Path(".actuator-dev").exists()
    assert not kubeconfig.parent.exists()


TWO_TYPES = """
from actuator import Actuator
from actuator.v1alpha1 import Extension


class First(Actuator[Extension]):
    def __init__(self, name):
        self.finalizer = f"extensions.gardener.cloud/{name}"

    def reconcile(self, ctx, obj, cluster):
        obj.status.provider_status = {"by": self.finalizer}

    def delete(self, ctx, obj, cluster): ...


def extension(manager, of_the_page=extension):
    of_the_page(manager)
    for name in ("first", "second"):
        manager.add(First(name), type=name)
"""
EXTENSIONS = Resource("extensions.gardener.cloud/v1alpha1", "extensions")


def serves_two_types_of_a_kind(development, client, command):
    with Path("acme.py").open("a") as file:
        file.write(TWO_TYPES)
    development.until_served()
    Path("acme-networks/revoked").unlink()
    secret, *_ = Path("shoot.yaml").read_text().split("---")
    Path("shoot.yaml").write_text(secret)
    command("shoot", "create", "local")
    for name in ("first", "second"):
        found = client.get(EXTENSIONS, f"local-{name}", "shoot--dev--local")
        assert found["status"]["providerStatus"] == {"by": f"extensions.gardener.cloud/{name}"}
        assert found["metadata"]["finalizers"] == [f"extensions.gardener.cloud/{name}"]
    command("shoot", "delete", "local")


def break_and_repair(development, path, old, new):
    """Save a syntax error, which the cluster survives, then the new code."""
    text = path.read_text()
    assert old in text
    path.write_text(f"{text}\n(")
    eventually(lambda: "the manager does not run; waiting for a change" in development.text())
    assert f"importing {path.stem} failed: SyntaxError: '(' was never closed" in development.text()
    path.write_text(text.replace(old, new))
    development.until_served()


def run(line, command):
    """Run a line of the page; it fails where the page expects a failure."""
    program, *arguments = shlex.split(line)
    if program == "touch":
        Path(*arguments).touch()
        return
    assert program == "actuator"
    if arguments[0] == "dev":
        return
    done = command(*arguments, status=1 if "--timeout" in arguments else 0)
    if arguments[1] == "delete":
        assert "Acme refuses the credentials" in done.stderr
    if arguments[1] == "force-delete":
        assert "shoot local: deleted; open orphans: 1\n" in done.stdout
        assert "Acme::Network shoot--dev--local" in done.stdout
    if arguments[0] in ("explain", "orphans"):
        assert done.stderr.startswith("using the cluster of `actuator dev`")
