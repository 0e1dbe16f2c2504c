"""Volumes of pods as folders: no path leaves them, and they follow their sources."""

import stat
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generic.testing.landscape.pods import Missing, PodRefused
from generic.testing.landscape.volumes import Volumes, rewriter, write_files

SECRET = {"name": "credentials", "secret": {"secretName": "cloud"}}


class World:
    """A pod's volumes, with Secrets, ConfigMaps and tokens that a test may change."""

    def __init__(self, folder: Path, *volumes, mounts=()) -> None:
        meta = {"name": "a-pod", "namespace": "garden", "uid": "u", "labels": {"app": "x"}}
        self.pod = {"metadata": meta, "spec": {"volumes": list(volumes)}}
        self.data = {("secrets", "cloud"): {"key": b"1", "other": b"2"}}
        self.token = b"token-1"
        self.asked: list[Any] = []
        self.folder = folder / "volumes"
        self.container = {"name": "main", "volumeMounts": list(mounts)}
        self.volumes = Volumes(self.pod, self.folder, self._read, self._token)

    def _read(self, kind, namespace, name):
        assert namespace == "garden"
        return self.data.get((kind, name))

    def _token(self, pod, audience, seconds):
        self.asked.append((pod["metadata"]["name"], audience, seconds))
        return self.token

    def files(self):
        self.volumes.refresh()
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in self.folder.rglob("*")
            if path.is_file()
        }


def test_a_secret_becomes_files_that_only_the_user_can_read(tmp_path):
    world = World(tmp_path, SECRET)
    assert world.files() == {"credentials/key": b"1", "credentials/other": b"2"}
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in world.folder.rglob("*")}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}


def test_files_follow_the_secret(tmp_path):
    world = World(tmp_path, SECRET)
    world.files()
    unchanged = (world.folder / "credentials" / "other").stat()
    world.data["secrets", "cloud"] = {"key": b"rotated", "other": b"2", "new": b"3"}
    assert world.files()["credentials/key"] == b"rotated"
    assert (world.folder / "credentials" / "other").stat().st_ino == unchanged.st_ino
    world.data["secrets", "cloud"] = {"new": b"3"}
    assert world.files() == {"credentials/new": b"3"}


def test_items_choose_keys_and_paths(tmp_path):
    items = [{"key": "key", "path": "deep/er/file"}]
    volume = {"name": "v", "secret": {"secretName": "cloud", "items": items}}
    world = World(tmp_path, volume)
    assert world.files() == {"v/deep/er/file": b"1"}
    items[0]["path"] = "deep"
    assert world.files() == {"v/deep": b"1"}


def test_a_projected_volume_has_all_its_sources(tmp_path):
    sources = [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 600, "audience": "a"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca", "path": "ca.crt"}]}},
        {"secret": {"name": "cloud", "items": [{"key": "key", "path": "key"}]}},
        {"downwardAPI": {"items": [
            {"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}},
            {"path": "app", "fieldRef": {"fieldPath": "metadata.labels['app']"}},
        ]}},
    ]  # fmt: skip
    world = World(tmp_path, {"name": "v", "projected": {"sources": sources}})
    world.data["configmaps", "kube-root-ca.crt"] = {"ca": b"pem"}
    expected = {"v/token": b"token-1", "v/ca.crt": b"pem", "v/key": b"1", "v/namespace": b"garden"}
    assert world.files() == expected | {"v/app": b"x"}
    assert world.asked == [("a-pod", "a", 600)]
    world.token = b"token-2"
    assert world.files()["v/token"] == b"token-2"


def test_an_empty_dir_keeps_its_content(tmp_path):
    world = World(tmp_path, {"name": "tmp", "emptyDir": {}}, {"name": "default"})
    world.files()
    (world.folder / "tmp" / "state").write_bytes(b"kept")
    assert world.files() == {"tmp/state": b"kept"}


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ({"secretName": "absent"}, "Secret 'absent' does not exist."),
        (
            {"secretName": "cloud", "items": [{"key": "no", "path": "no"}]},
            "Secret 'cloud' has no key 'no'.",
        ),
    ],
)
def test_a_pod_waits_for_a_missing_source_that_is_not_optional(tmp_path, source, sentence):
    world = World(tmp_path, {"name": "v", "secret": source})
    with pytest.raises(Missing) as missing:
        world.files()
    assert str(missing.value) == sentence
    source["optional"] = True
    assert world.files() == {}


def test_a_volume_without_its_source_does_not_keep_the_others_old(tmp_path):
    absent = {"name": "absent", "secret": {"secretName": "absent"}}
    world = World(tmp_path, absent, SECRET)
    with pytest.raises(Missing):
        world.files()
    assert (world.folder / "credentials" / "key").read_bytes() == b"1"


@pytest.mark.parametrize("path", ["../x", "a/../../x", "/etc/x", "..", "a\0b"])
def test_a_path_that_leaves_its_volume_is_refused(tmp_path, path):
    items = [{"key": "key", "path": path}]
    world = World(tmp_path, {"name": "v", "secret": {"secretName": "cloud", "items": items}})
    with pytest.raises(PodRefused, match="leaves its volume"):
        world.files()
    mount = {"name": "v", "mountPath": "/v", "subPath": path}
    world = World(tmp_path, {"name": "v", "emptyDir": {}}, mounts=[mount])
    world.files()
    with pytest.raises(PodRefused, match="leaves its volume"):
        world.volumes.paths(world.container)


def test_a_symbolic_link_leads_a_sub_path_nowhere(tmp_path):
    """A container that ran before may have made it, in a volume that it can write."""
    outside = tmp_path / "outside"
    outside.mkdir()
    mount = {"name": "v", "mountPath": "/v", "subPath": "link/folder"}
    world = World(tmp_path, {"name": "v", "emptyDir": {}}, mounts=[mount])
    world.files()
    (world.folder / "v" / "link").symlink_to(outside)
    with pytest.raises(PodRefused, match="subPath 'link/folder' leaves its volume"):
        world.volumes.paths(world.container)
    assert list(outside.iterdir()) == []


def test_a_symbolic_link_leads_no_write_and_no_removal_outside(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(b"1")
    volume = tmp_path / "volume"
    volume.mkdir()
    for name in ("link", "removed"):
        (volume / name).symlink_to(outside)
    (volume / "file").symlink_to(outside / "file")
    write_files(volume, {"link/written": b"1", "file": b"1"})
    assert [path.name for path in outside.iterdir()] == ["file"]
    found = {str(p.relative_to(volume)) for p in volume.rglob("*") if not p.is_symlink()}
    assert found == {"link", "link/written", "file"}
    assert not (volume / "removed").is_symlink()


def test_mounts_are_local_paths(tmp_path):
    mounts = [
        {"name": "v", "mountPath": "/etc/config/"},
        {"name": "v", "mountPath": "/etc/config/extra", "subPath": "a/b"},
    ]
    world = World(tmp_path, {"name": "v", "emptyDir": {}}, mounts=mounts)
    world.files()
    paths = world.volumes.paths(world.container)
    assert paths == {
        "/etc/config": world.folder / "v",
        "/etc/config/extra": world.folder / "v" / "a" / "b",
    }
    assert (world.folder / "v" / "a" / "b").is_dir()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("--config=/etc/config/a.yaml", "--config=L/a.yaml"),
        ("--cert-key=/etc/config/a,/etc/config/b", "--cert-key=L/a,L/b"),
        ("/etc/config", "L"),
        ("/etc/config/", "L/"),
        ("/etc/config/extra/x", "E/x"),
        ("tokenFile: '/etc/config/token'", "tokenFile: 'L/token'"),
        ("/etc/configuration", "/etc/configuration"),
        ("/host/etc/config/x", "/host/etc/config/x"),
        ("https://host/etc/config/x", "https://host/etc/config/x"),
        ("registry.example/etc/config", "registry.example/etc/config"),
    ],
)
def test_complete_paths_are_rewritten(text, expected):
    local = rewriter({"/etc/config": Path("L"), "/etc/config/extra": Path("E")})
    assert local(text) == expected


def test_without_mounts_nothing_is_rewritten():
    assert rewriter({})("/etc/x") == "/etc/x"


PART = st.sampled_from(["a", "b", "..", ".", "", "link", "c\\d", "~", "%2e%2e"])


@given(paths=st.lists(st.lists(PART, min_size=1, max_size=4).map("/".join), max_size=4))
def test_law_whatever_the_paths_are_nothing_outside_changes(paths, tmp_path_factory):
    world = tmp_path_factory.mktemp("world")
    outside = world / "outside"
    folder = world / "volume"
    outside.mkdir()
    folder.mkdir()
    (folder / "link").symlink_to(outside)
    try:
        write_files(folder, dict.fromkeys(paths, b"x"))
    except (PodRefused, OSError):
        pass
    assert sorted(path.name for path in world.iterdir()) == ["outside", "volume"]
    assert list(outside.iterdir()) == []
    for path in paths:
        if ".." in PurePosixPath(path).parts or path.startswith("/"):
            with pytest.raises(PodRefused):
                write_files(folder, {path: b"x"})
