"""docs/own-rules.md: its rules judge a Shoot in `actuator dev`; the rest is a unit test."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from actuator.errors import ApiError
from generic.kube.client import connect
from tests.support.cluster.harness import eventually
from tests.support.pages.documented import ROOT, files_of
from tests.support.pages.kubectl import Kubectl
from tests.support.programs.dev import Development

PAGE = (ROOT / "docs" / "own-rules.md").read_text()
MANIFESTS = dict(
    re.findall(r"^Create `(\S+\.yaml)`:\n\n```yaml\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
)
[COMMAND] = re.findall(r"^    actuator (dev .*)$", PAGE, re.MULTILINE)
SHOWN = re.findall(r"zones\[\d\]: '.*?(?=;?$)", PAGE, re.MULTILINE)


def test_the_api_server_refuses_the_shoot_of_the_page_as_printed(tmp_path, monkeypatch):
    assert len(SHOWN) == 2
    monkeypatch.chdir(tmp_path)
    for name, text in (files_of("tutorial.md") | files_of("own-rules.md")).items():
        Path(name).write_text(text)
    serves = "the manager serves Infrastructure acme"
    development = Development(tmp_path / "dev.log", serves, *COMMAND.split())
    try:
        [kubeconfig] = re.findall(r"KUBECONFIG=(\S+)", development.text())
        client = connect(Path(kubeconfig))
        kubectl = Kubectl(client)
        for obj in yaml.safe_load_all(MANIFESTS["garden.yaml"]):
            kubectl.apply(obj)
        wrong = yaml.safe_load(MANIFESTS["wrong.yaml"])
        refused = eventually(lambda: refusal(Kubectl(client), wrong))
        assert [text for text in SHOWN if text not in refused] == [], refused
    finally:
        development.kill()


def refusal(kubectl, shoot):
    """The reason of a refusal; a new webhook is called a moment later."""
    try:
        kubectl.apply(shoot)
    except ApiError as error:
        return str(error) if "'x'" in str(error) else ""
    kubectl.undo()
    return ""
