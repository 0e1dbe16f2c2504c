"""Charts, rendered by the real helm."""

import os
import zipfile

import pytest

from actuator.errors import ActuatorError
from generic.library.charts import Chart, find_helm, render
from generic.library.programs.errors import EnvtestError

TEMPLATE = """
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
  namespace: {{ .Release.Namespace }}
data:
  value: {{ .Values.value | quote }}
  kubernetes: {{ .Capabilities.KubeVersion.Version | quote }}
  date: 2026-01-01
  digest: 12:30:45
"""


@pytest.fixture(scope="session")
def helm():
    return find_helm(print)


@pytest.fixture
def chart(helm, tmp_path, monkeypatch):
    """Writes a chart with one template."""
    monkeypatch.setenv("ACTUATOR_HELM", str(helm))

    def write(template=TEMPLATE, folder=tmp_path / "mine", **files):
        (folder / "templates").mkdir(parents=True)
        head = "apiVersion: v2\nname: mine\nversion: 0.1.0\n"
        (folder / "Chart.yaml").write_text(files.get("chart", head))
        (folder / "templates" / "one.yaml").write_text(template)
        return folder

    return write


def rendered(path, version="v1.33.2", **values):
    return render(Chart(path=path, namespace="ns", values=values), version)


def test_values_namespace_and_kubernetes_version_reach_the_templates(chart):
    (found,) = rendered(chart(), value='any: "text"\n{{ }}')
    assert found["metadata"] == {"name": "extension", "namespace": "ns"}
    assert found["data"] == {
        "value": 'any: "text"\n{{ }}',
        "kubernetes": "v1.33.2",
        "date": "2026-01-01",
        "digest": "12:30:45",
    }


def test_a_chart_inside_a_packed_package_is_rendered(chart, tmp_path):
    folder = chart()
    with zipfile.ZipFile(tmp_path / "package.zip", "w") as packed:
        for name in ("Chart.yaml", "templates/one.yaml"):
            packed.write(folder / name, f"charts/mine/{name}")
    (found,) = rendered(zipfile.Path(tmp_path / "package.zip", "charts/mine/"), value="1")
    assert found["data"]["value"] == "1"


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ('{{ fail (printf "bad %s" .Values.value) }}', "one.yaml:1:3"),
        ("{{ .Values.lost.deeper }}", "nil pointer evaluating"),
        ("{{ nonsense }}", 'function "nonsense" not defined'),
        ("a: [{{ .Values.value }}", "YAML parse error on mine/templates/one.yaml"),
    ],
)
def test_an_error_says_where_and_never_a_value(chart, template, words):
    with pytest.raises(ActuatorError) as caught:
        rendered(chart(template), value="s3cr3t")
    assert words in str(caught.value)
    assert "s3cr3t" not in str(caught.value)
    assert str(caught.value).startswith("cannot render chart mine: ")
    assert "\n" not in str(caught.value)


def test_a_chart_for_another_kubernetes_is_refused(chart):
    head = "apiVersion: v2\nname: mine\nversion: 0.1.0\nkubeVersion: '>= 1.40'\n"
    with pytest.raises(ActuatorError, match=r"requires kubeVersion: >= 1\.40"):
        rendered(chart(chart=head))


def test_a_chart_that_is_not_there_is_named(tmp_path, helm):
    with pytest.raises(ActuatorError, match=r"lost not found"):
        rendered(tmp_path / "lost")


def test_nothing_of_the_user_or_the_values_is_left_behind(chart, tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    rendered(chart(), value="1")
    assert not list(home.iterdir())
    assert not list(temporary.iterdir())


def test_helm_is_the_named_one_then_that_on_path_then_the_cached(helm, tmp_path, monkeypatch):
    def put(folder):
        (tmp_path / folder).mkdir()
        program = tmp_path / folder / "helm"
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        return program

    named, on_path = put("named"), put("path")
    monkeypatch.setenv("PATH", f"{on_path.parent}:{os.environ['PATH']}")
    assert find_helm(print) == on_path
    monkeypatch.setenv("ACTUATOR_HELM", str(named))
    assert find_helm(print) == named
    named.unlink()
    with pytest.raises(EnvtestError, match=f"ACTUATOR_HELM={named}"):
        find_helm(print)


def test_when_helm_cannot_be_built_the_error_names_the_ways(tmp_path, monkeypatch):
    monkeypatch.setenv("ACTUATOR_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("GOPROXY", "off")
    monkeypatch.delenv("ACTUATOR_HELM", raising=False)
    monkeypatch.setattr("generic.library.charts.helm.shutil.which", lambda _name: None)
    with pytest.raises(EnvtestError, match=r"ACTUATOR_HELM(.|\n)*gardener-actuator\[envtest\]"):
        find_helm(print)
