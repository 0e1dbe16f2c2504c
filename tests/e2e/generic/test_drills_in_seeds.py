"""`actuator drill --contexts`: one seed after the other, resumed, with one index of all."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import yaml

from actuator.cluster import Cluster
from actuator.interface import CONFIG_MAPS
from actuator.meta import Raw
from actuator.v1alpha1 import Network
from generic.kube.client import connect
from generic.kube.seedidentity import NAME, NAMESPACE
from generic.reconciler.orphans import RECORD_KINDS
from generic.testing.drill.names import DRILL_LABEL
from generic.testing.envtest import Environment
from generic.testing.garden import NAMESPACES
from generic.testing.seed import install_crds
from generic.tools.cli import drill as drill_command
from tests.support.drills.affordable import OneScenario

Call = Callable[..., CompletedProcess[str]]
REHEARSAL = "tests.support.drills.affordable:OneScenario"
SEEDS = ("aws-eu1", "aws-us1")
GONE = "garden/gone"
"""A context whose server does not answer."""


@pytest.fixture
def kubeconfig(borrowed: None, tmp_path: Path) -> Iterator[Path]:
    """The contexts of two seeds, a second one of the first seed, and one that does not answer."""
    merged: Raw = {"clusters": [], "users": [], "contexts": []}

    def add(context: str, kubeconfig: Path, **cluster: str) -> None:
        found = yaml.safe_load(kubeconfig.read_text())
        found["clusters"][0]["cluster"] |= cluster
        refers = {"cluster": context, "user": context}
        merged["clusters"].append({**found["clusters"][0], "name": context})
        merged["users"].append({**found["users"][0], "name": context})
        merged["contexts"].append({"name": context, "context": refers})

    with Environment() as first, Environment() as second:
        for context, environment in zip(SEEDS, (first, second), strict=True):
            prepare(environment, context)
            add(context, environment.kubeconfig)
        add("again", first.kubeconfig)
        add(GONE, first.kubeconfig, server="https://127.0.0.1:1")
        path = tmp_path / "seeds.kubeconfig"
        path.write_text(yaml.safe_dump(merged))
        yield path


def prepare(environment: Environment, identity: str) -> None:
    """Install the CRDs of the drill, and name the cluster."""
    admin = connect(environment.kubeconfig)
    install_crds(admin, [Network, Cluster, *RECORD_KINDS, *OneScenario().crds()])
    metadata = {"name": NAME, "namespace": NAMESPACE}
    admin.apply(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    admin.patch(CONFIG_MAPS, NAME, NAMESPACE, {"data": {NAME: f"{identity}-identity"}})


@pytest.fixture
def drill_in(command: Call, kubeconfig: Path, tmp_path: Path) -> Call:
    """Runs the drill in the seeds of a list; its reports are in `reports`."""

    def hold(*contexts: str, flags: tuple[str, ...] = (), status: int = 0) -> CompletedProcess[str]:
        listed = tmp_path / "seeds.txt"
        listed.write_text("# the seeds\n\n" + "\n".join(contexts))
        where = ("--kubeconfig", kubeconfig, "--contexts", listed, "--output", tmp_path / "reports")
        return command("drill", REHEARSAL, "--shoots", "1", *where, *flags, status=status)

    return hold


def rounds(folder: Path) -> dict[str, Raw]:
    """The entries of the index, by seed."""
    index = json.loads((folder / "index.json").read_text())
    return {entry["seed"]: entry for entry in index["rounds"]}


def check_overviews(command: Call, reports: Path) -> None:
    """The list of drills and the page name each seed, and link the reports of both that exist."""
    listed = command("record", "drills", "--since", "2020-01-01", reports).stdout
    results = [(row.split()[1], row) for row in listed.splitlines()[1:]]
    assert sorted(name for name, _ in results) == sorted([*SEEDS, GONE])
    assert all(
        "could not check" in row if name == GONE else "holds" in row for name, row in results
    )
    page = (reports / "index.html").read_text()
    assert "Each drill holds in 2 of 3 seeds." in page
    links = re.findall(r'href="([^"]*)"', page)
    assert [link.partition("/")[0] for link in links] == [*SEEDS]
    assert all((reports / link).exists() for link in links)


def test_seeds_are_drilled_after_an_interruption_and_an_altered_index_is_found(
    drill_in: Call, command: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three runs: the first is interrupted, the second resumes, the third finds the change."""
    reports = tmp_path / "reports"
    first, second = SEEDS
    contexts = (first, GONE, second)
    begun: list[str | None] = []
    hold = drill_command._hold

    def interrupted(settings, *given):
        begun.append(settings.context)
        if len(begun) == 2:
            raise KeyboardInterrupt
        return hold(settings, *given)

    monkeypatch.setattr(drill_command, "_hold", interrupted)
    drill_in(*contexts, status=130)
    found = rounds(reports)
    verdicts = {seed: entry["verdict"] for seed, entry in found.items()}
    assert verdicts == {first: "holds", GONE: "could not check", second: "not run"}
    assert found[second]["problems"] == ["interrupted"]
    before = found[first]

    done = drill_in(*contexts, flags=("--resume",), status=3)
    assert begun == [first, second, second]
    assert f"1 of 3: {first}, deletion-denied\nfinished before\n" in done.stdout
    found = rounds(reports)
    assert found[first] == before
    assert {found[seed]["identity"] for seed in SEEDS} == {f"{seed}-identity" for seed in SEEDS}
    assert found[second]["verdict"] == "holds"
    (problem,) = found[GONE]["problems"]
    assert problem.startswith("cannot read the identity of the seed from 127.0.0.1:1: ")
    assert problem.endswith("; check that the server runs")
    command("record", "verify", reports / "index.json")

    check_overviews(command, reports)

    index = reports / "index.json"
    index.write_text(index.read_text().replace("could not check", "holds"))
    done = drill_in(*contexts, flags=("--resume",), status=3)
    assert f"Error: {index}: altered: its content and its hash differ" in done.stderr
    assert len(begun) == 3
    command("record", "verify", index, status=1)


def test_two_contexts_of_one_cluster_are_refused_and_no_drill_begins(
    drill_in: Call, kubeconfig: Path, tmp_path: Path
) -> None:
    before = {context: drilled(kubeconfig, context) for context in SEEDS}
    done = drill_in(*SEEDS, "again", status=3)
    words = "the contexts aws-eu1 and again are the same cluster (aws-eu1-identity); remove one"
    assert done.stderr.startswith(f"Error: {words}")
    assert not (tmp_path / "reports/index.json").exists()
    assert all(drilled(kubeconfig, context) <= before[context] for context in SEEDS)


def drilled(kubeconfig: Path, context: str) -> set[str]:
    """The namespaces of drills; those of an earlier one may still be ending."""
    found = connect(kubeconfig, context).list(NAMESPACES, label_selector=DRILL_LABEL)
    return {obj["metadata"]["name"] for obj in found}
