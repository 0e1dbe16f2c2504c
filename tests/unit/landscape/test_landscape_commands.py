"""`actuator landscape` without a landscape: each mistake is one sentence with a remedy."""

import os
import re
import subprocess
import sys

import pytest

from actuator.errors import ConfigurationError
from generic.library.programs import daemons
from generic.library.programs.daemons import DaemonFiles
from generic.library.programs.errors import EnvtestError
from generic.testing.landscape import memory
from generic.tools.cli.landscape_daemon import _answered, socket_path
from generic.tools.cli.landscape_extensions import DEFAULTS, rehearsal_of
from tests.support.pages.commands import run_command

AZURE = "extensions.azurecontrolplane.rehearsal:AzureRehearsal"


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ACTUATOR_CACHE", str(tmp_path))


@pytest.mark.parametrize(
    "words",
    [
        ["status"],
        ["kubeconfig"],
        ["kubeconfig", "seed-1"],
        ["logs"],
        ["outside", "list"],
        ["outside", "break", "credentials-revoked"],
        ["outside", "repair"],
        ["shoot", "list"],
        *(["shoot", act, "mine"] for act in ("yaml", "create", "delete", "force-delete")),
        *(["shoot", act, "mine"] for act in ("hibernate", "wake", "reconcile", "retry")),
    ],
    ids=" ".join,
)
def test_each_command_names_the_one_that_starts_a_landscape(words):
    done = run_command("landscape", *words, status=1)
    said = "Error: landscape 'default' is not running; run `actuator landscape up`\n"
    assert done.stderr == said


def test_down_without_a_landscape_is_no_error():
    assert run_command("landscape", "down").stdout == "landscape 'default' is not running\n"


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["up", "nowhere:extension"], 1, "module 'nowhere' not found"),
        (["up", "extensions.aws"], 1, "expected MODULE:OBJECT"),
        (["up", "--seeds", "3"], 2, "--seeds"),
        (["up", "--name", "../x"], 2, "lower-case letters"),
        (["shoot", "create", "Mine"], 2, "lower-case letters"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_is_reported_before_anything_is_built(words, status, said):
    assert said in run_command("landscape", *words, status=status).stderr


def test_the_needed_memory_is_named_before_anything_is_built(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 2.0)
    with pytest.raises(EnvtestError, match=r"needs 4\.5 GiB of free memory, this machine has 2\.0"):
        memory.require_memory(1)
    monkeypatch.setattr(memory, "available", lambda: None)
    memory.require_memory(1)


def test_the_memory_of_descendants_counts():
    child = "import time; x = bytearray(64 << 20); print(flush=True); time.sleep(60)"
    before = memory.resident(os.getpid())
    with subprocess.Popen([sys.executable, "-c", child], stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        assert memory.resident(os.getpid()) - before > 60 << 20
        process.kill()
    assert re.fullmatch(r"\d+\.\d", memory.gib(before))


def test_an_unknown_scenario_is_reported_before_anything_is_built():
    done = run_command("drill", "--landscape", "--scenario", "typo", status=2)
    assert "no scenario 'typo'; the rehearsals have credentials-revoked, " in done.stderr


def test_a_folder_of_another_user_is_refused(tmp_path):
    folder = tmp_path / "shared"
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    with pytest.raises(EnvtestError, match="must be a folder that only you can use"):
        daemons.up(DaemonFiles(folder), ["nothing"], 1, print, "it")


def test_a_daemon_that_cannot_start_gives_its_reason(tmp_path):
    """It fails only where the outside world runs: in the daemon."""
    state = DaemonFiles(tmp_path / "state")
    command = ["generic.tools.cli.landscape_daemon", str(state.directory), str(tmp_path), "1"]
    with pytest.raises(EnvtestError, match="cannot run in a landscape; give its rehearsal"):
        daemons.up(state, [*command, AZURE], 60, print, "it")
    assert not state.is_held()


def test_errors_of_a_rehearsal_are_answers_and_end_no_daemon(tmp_path):
    def breaks():
        raise KeyError("a bug of the author")

    answer = _answered({"repair": breaks}, "repair", [])
    assert answer == {"error": "repair: KeyError: 'a bug of the author'"}
    assert "unknown" in _answered({}, "unknown", [])["error"]


def test_a_socket_path_that_is_too_long_is_named(tmp_path):
    with pytest.raises(ConfigurationError, match="set ACTUATOR_CACHE to a shorter folder"):
        socket_path(DaemonFiles(tmp_path / ("x" * 100)))


@pytest.mark.parametrize(
    "words", [["--all"], ["--path", "delete"], ["--break", "I1"], ["--context", "c"]]
)
def test_a_drill_in_a_landscape_takes_no_options_of_the_simulation(words):
    done = run_command("drill", "--landscape", *words, status=2)
    assert "--landscape takes --scenario, --shoots and --output only" in done.stderr


def test_an_extension_without_a_rehearsal_has_no_outside_world():
    assert rehearsal_of(["extensions.aws:extension"]) is None
    combined = rehearsal_of(DEFAULTS)
    assert combined is not None
    assert len(combined.parts) == len(DEFAULTS)
