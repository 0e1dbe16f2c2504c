"""Charts, rendered by the real helm."""

import os
import zipfile
from concurrent.futures import ThreadPoolExecutor

import pytest

from actuator.errors import ActuatorError
from generic.library.charts import Chart, find_helm, render
from generic.library.charts.cache import Rendered, Renderings
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
        (folder / "templates").mkdir(parents=True, exist_ok=True)
        head = f"apiVersion: v2\nname: {folder.name}\nversion: 0.1.0\n"
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


@pytest.fixture
def runs(chart, helm, tmp_path, monkeypatch):
    """Counts the runs of helm."""
    log = tmp_path / "runs"
    log.write_text("")
    counting = tmp_path / "counting-helm"
    counting.write_text(f'#!/bin/sh\necho run >> {log}\nexec {helm} "$@"\n')
    counting.chmod(0o755)
    monkeypatch.setenv("ACTUATOR_HELM", str(counting))
    return lambda: len(log.read_text().splitlines())


def test_helm_runs_once_for_each_chart_and_its_values(chart, runs):
    path = chart()
    first = rendered(path, value="1")
    first[0]["data"]["value"] = "changed by the caller"
    with ThreadPoolExecutor(8) as pool:
        others = list(pool.map(lambda _: rendered(path, value="1"), range(16)))
    assert {found["data"]["value"] for (found,) in others} == {"1"}
    assert runs() == 1
    inputs = [{"value": "2"}, {"value": "1", "version": "v1.34.0"}]
    versions = [rendered(path, **given)[0]["data"] for given in inputs]
    assert [(data["value"], data["kubernetes"]) for data in versions] == [
        ("2", "v1.33.2"),
        ("1", "v1.34.0"),
    ]
    assert runs() == 3
    chart(TEMPLATE.replace("value:", "other:"))
    assert rendered(path, value="1")[0]["data"]["other"] == "1"
    assert runs() == 4


def test_an_error_of_helm_is_not_kept(chart, runs):
    path = chart("{{ nonsense }}")
    for _ in range(2):
        with pytest.raises(ActuatorError):
            rendered(path, value="1")
    assert runs() == 2


def test_a_file_of_a_chart_that_cannot_be_read_is_named(chart):
    path = chart()
    (path / "templates" / "lost.yaml").symlink_to("elsewhere")
    with pytest.raises(ActuatorError, match=r"cannot render chart mine: cannot read .*lost\.yaml"):
        rendered(path)


def test_the_results_that_were_used_last_are_kept_up_to_a_size():
    made = []

    def ask(kept, key):
        def make():
            made.append(key)
            return Rendered([{"key": key}], 40)

        assert kept.get(key, make) == [{"key": key}]

    kept = Renderings(max_size=100)
    for key in ["a", "b", "a", "c", "a", "b"]:
        ask(kept, key)
    assert made == ["a", "b", "c", "b"]
    tiny = Renderings(max_size=10)
    for _ in range(2):
        ask(tiny, "x")
    assert made[4:] == ["x", "x"]


IMAGE = """
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Chart.Name }}
data:
  image: {{ .Values.images.driver | quote }}
  other: {{ .Values.images.other | quote }}
"""


def test_images_reach_sub_charts_at_any_depth(chart, tmp_path):
    path = chart(IMAGE)
    chart(IMAGE, path / "charts" / "csi")
    chart(IMAGE, path / "charts" / "csi" / "charts" / "snapshots")
    found = render(
        Chart(
            path=path,
            namespace="ns",
            images={"driver": "top:1", "other": "top:2"},
            sub_chart_images={
                "csi": {"driver": "csi:1", "other": "csi:2"},
                "csi/snapshots": {"driver": "snapshots:1", "other": ""},
            },
            values={"images": {"other": "given:1"}, "csi": {"images": {"driver": "given:2"}}},
        ),
        "",
    )
    assert {item["metadata"]["name"]: tuple(item["data"].values()) for item in found} == {
        "mine": ("top:1", "given:1"),
        "csi": ("given:2", "csi:2"),
        "snapshots": ("snapshots:1", ""),
    }


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

    named = put("named")
    on_path = put("path")
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
