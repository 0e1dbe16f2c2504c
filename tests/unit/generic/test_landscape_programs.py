"""The program of Gardener: its source, and the error before a build that cannot end."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from generic.library.programs.errors import EnvtestError
from generic.library.programs.golang import required_version
from generic.testing.landscape import programs

COMPONENTS = (
    "gardener-admission-controller",
    "gardener-apiserver",
    "gardener-controller-manager",
    "gardener-resource-manager",
    "gardener-scheduler",
    "gardenlet",
)
APIS = "github.com/gardener/gardener/pkg/apis"


def test_the_version_of_gardener_stands_in_go_mod_alone():
    folder = Path(programs.__file__).parent
    version = programs.gardener_version()
    assert required_version(programs.gardener_module().folder, APIS) == version
    assert not [path for path in folder.rglob("*.py") if version[1:] in path.read_text()]


def test_the_program_knows_each_component_by_its_name():
    source = (programs.gardener_module().folder / "main.go").read_text()
    assert tuple(re.findall(r'^\t"([a-z-]+)":', source, re.MULTILINE)) == COMPONENTS


def test_the_program_reports_its_version_as_gardener_does():
    version = programs.gardener_version()
    flags = programs.gardener_module().linker_flags
    assert f"-X k8s.io/component-base/version.gitVersion={version}" in flags


def test_a_build_is_refused_before_it_begins_if_the_disk_is_too_small(monkeypatch, tmp_path):
    monkeypatch.setenv("ACTUATOR_CACHE", str(tmp_path))
    usage = shutil.disk_usage(tmp_path)._replace(free=3 << 29)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage)
    with pytest.raises(EnvtestError, match=r"has 1\.5 GiB of free .* needs 5\. Free some, or set"):
        programs.find_gardener(print)
    assert list(tmp_path.iterdir()) == []
