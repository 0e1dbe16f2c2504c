"""docs/development-shoot.md: its commands work in the order of the page."""

import re
import shlex
from pathlib import Path

import pytest
from developing import Development
from harness import eventually

from generic.kube.client import connect
from generic.testing.garden.gardenlet import Resource

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
    kubeconfig = Path(re.search(r"KUBECONFIG=(\S+)", shown)[1])
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
            region = "europe-1" if Path("shoot.yaml").exists() else "local"
            assert found["status"]["providerStatus"]["region"] == region
    assert development.stop() == 0
    eventually(lambda: development.processes() == [])
    assert not Path(".actuator-dev").exists()
    assert not kubeconfig.parent.exists()


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
    """Run a line of the page; it fails if the page says so."""
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
