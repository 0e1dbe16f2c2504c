"""The files of a release: the sdist, the wheel and its SBOM."""

from __future__ import annotations

import json
import os
import re
import shutil
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from hack.lock import SBOM, requirements
from hack.wheel import build, look_into, strangers_of_sdist
from tests.support.pages.installed_wheel import PROJECT, ROOT, closure, requirements_of


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> tuple[Path, Path]:
    return build(ROOT, tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def content(built) -> dict[str, str]:
    """The metadata of the wheel, by the path below its `.dist-info`."""
    with zipfile.ZipFile(built[1]) as wheel:
        names = [name for name in wheel.namelist() if ".dist-info/" in name]
        return {name.partition(".dist-info/")[2]: wheel.read(name).decode() for name in names}


def test_sdist_and_wheel_have_the_files_for_users_and_no_others(built):
    sdist, wheel = built
    assert (list(look_into(wheel)), strangers_of_sdist(sdist)) == ([], [])


def test_a_second_build_gives_the_same_bytes(built, tmp_path):
    """From another folder, with other times, permissions and settings of the machine."""
    copy = tmp_path / "elsewhere"
    copy.mkdir()
    for name in ("actuator", "extensions", "generic"):
        caches = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, copy / name, ignore=caches, copy_function=shutil.copyfile)
    for path in ROOT.glob("*.*"):
        if path.is_file():
            shutil.copyfile(path, copy / path.name)
    shutil.copyfile(ROOT / "LICENSE", copy / "LICENSE")
    (copy / "pyproject.toml").chmod(0o600)
    before = os.umask(0o077)
    try:
        again = build(copy, tmp_path / "dist")
    finally:
        os.umask(before)
    for first, second in zip(built, again, strict=True):
        assert first.name == second.name
        assert first.read_bytes() == second.read_bytes(), first.name


def test_a_build_is_not_reproducible_by_accident(built, tmp_path, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    (_, wheel) = build(ROOT, tmp_path)
    assert wheel.read_bytes() != built[1].read_bytes()


def test_the_sbom_lists_the_requirements_of_the_wheel(content):
    bom = json.loads(content["sboms/sbom.cdx.json"])
    listed = {component["name"]: component["version"] for component in bom["components"]}
    assert bom["metadata"]["component"]["version"] == PROJECT["version"]
    assert "serialNumber" not in bom
    assert "timestamp" not in bom["metadata"]
    assert listed.items() <= pins((ROOT / "constraints.txt").read_text()).items(), "run make lock"
    production = requirements_of("aws", "database", "secrets")
    assert closure(production) <= {name.lower() for name in listed}
    assert len(closure(production)) > 20


def pins(lock):
    return dict(re.findall(r"^(\S+)==(\S+)", lock, re.MULTILINE))


def test_the_requirements_of_an_image_are_the_components_of_the_sbom_with_hashes():
    listed = {
        component["name"]: component["version"]
        for component in json.loads(SBOM.read_text())["components"]
    }
    assert pins(requirements()) == listed
    entries = re.split(r"^(?=\S)", requirements(), flags=re.MULTILINE)[1:]
    assert all("--hash=sha256:" in entry for entry in entries)


def test_the_wheel_has_the_metadata_of_pyproject(content):
    said = Parser().parsestr(content["METADATA"])
    assert said["Version"] == PROJECT["version"]
    assert set(said.get_all("Provides-Extra", [])) == PROJECT["optional-dependencies"].keys()


def test_the_changelog_has_this_version():
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert re.search(rf"^## {PROJECT['version']} - \d{{4}}-\d\d-\d\d$", changelog, re.MULTILINE)
