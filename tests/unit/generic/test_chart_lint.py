"""`helm lint --strict` accepts every chart that `actuator chart` writes, with its own values."""

import subprocess

import pytest

from generic.library.charts import find_helm
from tests.support.pages.documented import ROOT

SAMPLES = sorted(path.parent.name for path in ROOT.glob("extensions/*/__init__.py"))
AUTHOR = """
from actuator import Actuator
from actuator.v1alpha1 import Extension, Infrastructure, Network
from extensions.certificate.config import CertificateConfig
from extensions.networkfilter.config import FilterConfig
from generic.library.webhooks import validates
from generic.library.webhooks.admission import ConfigAdmission


class Mine(Actuator[Infrastructure]):
    def reconcile(self, ctx, obj, cluster): ...
    def delete(self, ctx, obj, cluster): ...


@validates(Network, failure_policy="Ignore", namespace_labels={"a": "b"})
def look(request): ...


def extension(manager):
    manager.add(Mine(), type="mine")
    manager.add_webhooks(look)


def admission(manager):
    for number, config in enumerate((CertificateConfig, FilterConfig)):
        manager.add_admission(ConfigAdmission(kind=Extension, type=f"a-{number}", config=config))
    manager.add_webhooks(look)
"""
VARIANTS = {
    **{name: [f"extensions.{name}:extension"] for name in SAMPLES},
    "a digest": ["extensions.networkfilter:extension", "--image", f"a.io/b@sha256:{'a' * 64}"],
    "operator": ["extensions.networkfilter:extension", "--operator", "--oci-repository", "a.io/b"],
    "an admission": ["extensions.certificate.admission:admission", "--admission"],
    "webhooks": ["author_of_charts:extension"],
    "an admission with webhooks": ["author_of_charts:admission", "--admission"],
}


@pytest.fixture(scope="session")
def helm():
    return find_helm(print)


@pytest.mark.parametrize("arguments", VARIANTS.values(), ids=VARIANTS)
def test_each_chart_passes_the_linter_of_helm(arguments, helm, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATABASES_POSTGRES_URL", "postgres://a:b@c:5432")
    (tmp_path / "author_of_charts.py").write_text(AUTHOR)
    command("chart", *arguments, "--output", "charts")
    charts = [path.parent for path in tmp_path.glob("charts/**/Chart.yaml")]
    assert len(charts) == (2 if "--admission" in arguments else 1)
    line = [helm, "lint", "--strict", *charts]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (done.returncode, "[ERROR]" in done.stdout, "[WARNING]" in done.stdout) == (
        0,
        False,
        False,
    ), done.stdout
    assert "file does not exist" not in done.stdout
