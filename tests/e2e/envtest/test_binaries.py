"""The sources of the programs, and their order."""

import shutil
from pathlib import Path

import pytest

from generic.testing.envtest import Environment, EnvtestError, find_binaries
from generic.testing.envtest.binaries import etcd_module, kubernetes_module

NAMES = ("etcd", "kube-apiserver", "kube-controller-manager")


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that KUBEBUILDER_ASSETS names, and an empty cache."""
    folder = tmp_path / "given"
    folder.mkdir()
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(folder))
    monkeypatch.setenv("ACTUATOR_CACHE", str(tmp_path / "cache"))
    return folder


def put_programs(folder: Path, *names: str) -> None:
    """Make programs that do nothing."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)


def test_the_folder_of_envtest_comes_first(given: Path) -> None:
    put_programs(given, *NAMES)
    assert find_binaries(print) == {name: given / name for name in NAMES}
    assert not (given.parent / "cache").exists()


def test_programs_missing_in_the_folder_come_from_the_cache(given: Path) -> None:
    put_programs(given, "etcd", "kube-apiserver")
    cached = given.parent / "cache" / kubernetes_module().key
    put_programs(cached, *kubernetes_module().programs)
    binaries = find_binaries(print)
    assert binaries["kube-apiserver"] == given / "kube-apiserver"
    assert binaries["kube-controller-manager"] == cached / "kube-controller-manager"


def test_without_the_folder_the_cache_has_all(given: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBEBUILDER_ASSETS")
    for module in (etcd_module(), kubernetes_module()):
        put_programs(given.parent / "cache" / module.key, *module.programs)
    assert find_binaries(print)["etcd"] == given.parent / "cache" / etcd_module().key / "etcd"


def test_a_folder_that_is_not_there_is_an_error_that_names_it(given: Path) -> None:
    given.rmdir()
    with pytest.raises(EnvtestError, match=f"KUBEBUILDER_ASSETS={given}"):
        find_binaries(print)


def test_when_nothing_works_the_error_names_the_ways(
    given: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOPROXY", "off")
    with pytest.raises(EnvtestError) as caught:
        find_binaries(print)
    text = str(caught.value)
    assert "KUBEBUILDER_ASSETS" in text
    assert "install Go 1.26.0 or later" in text
    assert "pip install 'gardener-actuator[envtest]'" in text
    assert "module lookup disabled by GOPROXY=off" in text


def test_a_cache_that_cannot_be_made_is_one_clear_error(
    given: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (given / "file").touch()
    monkeypatch.setenv("ACTUATOR_CACHE", str(given / "file" / "cache"))
    with pytest.raises(Exception, match="set ACTUATOR_CACHE"):
        find_binaries(print)


def test_a_program_that_ends_early_is_an_error_with_the_end_of_its_log(
    given: Path, assets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = given.parent / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    put_programs(given, *NAMES)
    (given / "etcd").unlink()
    (given / "etcd").symlink_to(assets / "etcd")
    (given / "kube-apiserver").write_text("#!/bin/sh\necho no such flag\nexit 3\n")
    with pytest.raises(EnvtestError, match="kube-apiserver ended with status 3") as caught:
        Environment().start()
    (kept,) = temporary.iterdir()  # the logs, and nothing else
    assert str(kept) in str(caught.value)
    assert str(caught.value).endswith("no such flag")
    assert (kept / "kube-apiserver.log").read_text() == "no such flag\n"
    shutil.rmtree(kept)
