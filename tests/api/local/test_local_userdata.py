"""The script for new machines, run by a real shell."""

from __future__ import annotations

import os
import subprocess

import pytest

from actuator.codec import decode
from actuator.v1alpha1 import File, Unit
from extensions.local.userdata import script


@pytest.fixture
def run(tmp_path):
    """Runs a script where systemctl only notes its arguments, and returns those notes."""
    bin = tmp_path / "bin"
    bin.mkdir()
    notes = tmp_path / "notes"
    notes.touch()
    systemctl = bin / "systemctl"
    systemctl.write_text(f'#!/bin/sh\necho "$@" >> {notes}\n')
    systemctl.chmod(0o755)
    path = f"{bin}:{os.environ['PATH']}"

    def runner(text: bytes) -> list[str]:
        subprocess.run(["bash"], input=text, check=True, timeout=20, env={"PATH": path})
        return notes.read_text().splitlines()

    return runner


def file(path, **more) -> File:
    content = {"inline": {"data": ""}, **more.pop("content", {})}
    return decode(File, {"path": str(path), "content": content, **more})


def unit(name, **more) -> Unit:
    return decode(Unit, {"name": name, **more})


def test_files_are_written_as_they_are(run, tmp_path):
    binary = bytes(range(256))
    quoted = b'it\'s $HOME `date` \\ "x"\n'
    files = [
        (file(tmp_path / "a b" / "binary", permissions=0o700), binary),
        (file(tmp_path / "quoted"), quoted),
    ]
    run(script(files, []))
    assert (tmp_path / "a b" / "binary").read_bytes() == binary
    assert (tmp_path / "a b" / "binary").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "quoted").read_bytes() == quoted
    assert (tmp_path / "quoted").stat().st_mode & 0o777 == 0o644


def test_a_file_has_its_permissions_before_its_content(run, tmp_path):
    """The wrapper of base64 notes the mode of the file at the moment of decoding."""
    secret = tmp_path / "secret"
    wrapper = tmp_path / "bin" / "base64"
    modes = tmp_path / "modes"
    wrapper.write_text(f'#!/bin/sh\nstat -c %a {secret} >> {modes}\nexec /usr/bin/base64 "$@"\n')
    wrapper.chmod(0o755)
    run(script([(file(secret, permissions=0o600), b"password")], []))
    assert modes.read_text() == "600\n"
    assert secret.read_bytes() == b"password"


def test_a_placeholder_for_later_stays_readable_in_the_script(run, tmp_path):
    placeholder = b"token: '<<BOOTSTRAP_TOKEN>>' 100%\n"
    text = script([(file(tmp_path / "f", content={"transmitUnencoded": True}), placeholder)], [])
    assert b"<<BOOTSTRAP_TOKEN>>" in text
    run(text.replace(b"<<BOOTSTRAP_TOKEN>>", b"abc"))
    assert (tmp_path / "f").read_bytes() == b"token: 'abc' 100%\n"


def test_a_file_for_one_host_is_written_there_alone(run, tmp_path):
    here = subprocess.run(["hostname"], capture_output=True, check=True, text=True, timeout=5)
    files = [
        (file(tmp_path / "here", hostName=here.stdout.strip()), b"x"),
        (file(tmp_path / "there", hostName="elsewhere"), b"x"),
    ]
    run(script(files, []))
    assert (tmp_path / "here").exists()
    assert not (tmp_path / "there").exists()


def test_units_are_enabled_and_restarted_by_default(run):
    units = [
        unit("a.service"),
        unit("b.service", command="stop"),
        unit("c.service", enable=False),
    ]
    assert run(script([], units)) == [
        "daemon-reload",
        "enable a.service",
        "restart --no-block a.service",
        "enable b.service",
        "stop b.service",
        "disable c.service",
        "stop c.service",
    ]


def test_units_and_drop_ins_go_where_systemd_looks():
    written = unit(
        "a.service", content="[Unit]\n", dropIns=[{"name": "1.conf", "content": "[Service]\n"}]
    )
    text = script([], [written]).decode()
    assert "base64 -d > /etc/systemd/system/a.service\n" in text
    assert "base64 -d > /etc/systemd/system/a.service.d/1.conf\n" in text
