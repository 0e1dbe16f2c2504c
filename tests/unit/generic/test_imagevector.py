"""The image vector: version ranges, the best entry, the overwrite, and errors of a wrong file.

The cases follow Gardener's documentation, "Image Vector", and the behaviour of its
`pkg/utils/imagevector` and of Masterminds/semver.
"""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

import extensions
from actuator import Cluster
from actuator.codec import decode
from actuator.errors import ActuatorError, ConfigurationError, ErrorCode
from generic.library.charts import Chart, find_helm, render
from generic.library.imagevector import ImageSource, ImageVector, is_in_range, load_images

RANGES = [
    (">= 1.30", "1.30.0 1.30.4 1.31.0 2.0.0", "1.29.9"),
    ("=> 1.30", "1.30.0", "1.29.9"),
    ("> 1.30", "1.31.0 2.0.0", "1.30.0 1.30.9 1.29.9"),
    ("> 1.30.2", "1.30.3", "1.30.2"),
    ("< 1.31", "1.30.9", "1.31.0 1.31.4"),
    ("<= 1.28", "1.28.0 1.28.9 1.27.0", "1.29.0"),
    ("<= 1.28.3", "1.28.3", "1.28.4"),
    ("=< 1.28.3", "1.28.3", "1.28.4"),
    ("<= 1", "1.31.0", "2.0.0"),
    ("1.28.x", "1.28.0 1.28.9", "1.27.9 1.29.0"),
    ("1.28", "1.28.7", "1.29.0"),
    ("1.x", "1.0.0 1.99.0", "2.0.0"),
    ("1", "1.5.0", "2.0.0"),
    ("*", "0.0.1 7.0.0", ""),
    ("1.28.3", "1.28.3 v1.28.3 1.28.3-gke.1", "1.28.4"),
    ("= 1.28.3", "1.28.3", "1.28.4"),
    ("v1.28.3", "1.28.3", "1.28.4"),
    ("!= 1.28.3", "1.28.4", "1.28.3"),
    ("!= 1.28.x", "1.29.0", "1.28.3"),
    ("~1.28", "1.28.9", "1.29.0 1.27.0"),
    ("~1.28.3", "1.28.3 1.28.9", "1.28.2 1.29.0"),
    ("~> 1.28.3", "1.28.3 1.28.9", "1.28.2 1.29.0"),
    ("~1", "1.31.0", "2.0.0"),
    ("^1.28.3", "1.28.3 1.31.0", "1.28.2 2.0.0"),
    ("^0.2.3", "0.2.3 0.2.9", "0.3.0 0.2.2"),
    ("^0.0.3", "0.0.3", "0.0.4"),
    ("^0.0", "0.0.9", "0.1.0"),
    ("^0", "0.9.0", "1.0.0"),
    (">= 1.30, < 1.32", "1.30.0 1.31.9", "1.29.0 1.32.0"),
    (">= 1.30,< 1.32", "1.31.9", "1.32.0"),
    (">=1.30 <1.32", "1.31.9", "1.32.0"),
    (">= 1.30 < 1.32", "1.31.9", "1.32.0"),
    ("< 1.20 || >= 1.30", "1.19.0 1.30.0", "1.25.0"),
    ("1.28 - 1.30.2", "1.28.0 1.30.2", "1.27.9 1.30.3"),
    # Gardener writes "-0" to include pre-releases; it also cuts the suffix of the checked version.
    (">= 1.30-0", "1.30.0 1.30.0-alpha.1", "1.29.9"),
    ("< 1.31-0", "1.30.9", "1.31.0"),
    ("~ 1.28.x-0", "1.28.9", "1.29.0"),
    ("<= 1.28.3-0", "1.28.2", "1.28.3"),
    ("> 1.28.3-0", "1.28.3", "1.28.2"),
    ("1.30.1+build.7", "1.30.1", "1.30.2"),
]


@pytest.mark.parametrize(("constraint", "inside", "outside"), RANGES)
def test_a_range_has_the_versions_that_masterminds_semver_accepts(constraint, inside, outside):
    for versions, expected in ((inside, True), (outside, False)):
        found = {version: is_in_range(version, constraint) for version in versions.split()}
        assert found == dict.fromkeys(versions.split(), expected)
    assert inside + outside


@pytest.mark.parametrize("wrong", ["", ">> 1.30", "1.2.3.4", "latest", ">= 1.30 &&", "1.2y", "||"])
def test_an_invalid_range_is_named_with_an_example(wrong):
    with pytest.raises(ValueError, match=re.escape(repr(wrong)) + ".* write '>= 1.30, < 1.32'"):
        is_in_range("1.30.0", wrong)


def test_an_invalid_version_is_named():
    with pytest.raises(ValueError, match="'newest'"):
        is_in_range("newest", ">= 1.30")


@pytest.mark.parametrize("version", ["newest", "1.31.2.3", "9" * 5000])
def test_a_version_that_is_none_is_a_configuration_problem(version):
    vector = ImageVector([image("1", target_version=">= 1.30")], "images.yaml")
    with pytest.raises(ConfigurationError, match=r"image 'a': expected a Kubernetes version") as no:
        vector.find("a", target=version)
    assert len(no.value.message) < 200


def image(tag, **fields):
    return ImageSource(name="a", repository="r", tag=tag, **fields)


FIND = {
    "the only one": (["1"], [image("1")], {}),
    "the first of equal ones": (["1"], [image("1"), image("2")], {}),
    "a range before none": (
        ["2"],
        [image("1"), image("2", target_version=">= 1.30")],
        {"target": "1.31.0"},
    ),
    "an exact version before a range": (
        ["2"],
        [image("1", target_version=">= 1.30"), image("2", target_version="1.31.0")],
        {"target": "1.31.0"},
    ),
    "an equals sign counts as exact": (
        ["2"],
        [image("1", target_version=">= 1.30"), image("2", target_version="= 1.31.0")],
        {"target": "1.31.0"},
    ),
    "a minor version does not count as exact": (
        ["1"],
        [image("1", target_version=">= 1.30"), image("2", target_version="1.31.x")],
        {"target": "1.31.0"},
    ),
    "both versions before one": (
        ["2"],
        [
            image("1", target_version="1.31.x"),
            image("2", target_version="1.31.x", runtime_version=">= 1.29"),
        ],
        {"target": "1.31.0", "runtime": "1.30.0"},
    ),
    "the runtime version is that of the seed": (
        ["1"],
        [image("1", runtime_version="1.29.x"), image("2", runtime_version="1.31.x")],
        {"target": "1.31.0", "runtime": "1.29.4"},
    ),
    "without a runtime version the image runs in the shoot": (
        ["2"],
        [image("1", runtime_version="1.29.x"), image("2", runtime_version="1.31.x")],
        {"target": "1.31.0"},
    ),
    "a version that nobody knows is in every range": (
        ["1"],
        [image("1", target_version=">= 1.30"), image("2")],
        {},
    ),
    "one architecture before both": (
        ["2"],
        [image("1", architectures=["amd64", "arm64"]), image("2", architectures=["arm64"])],
        {"arch": "arm64"},
    ),
    "an image without architectures is for both": (["1"], [image("1")], {"arch": "arm64"}),
    "amd64 by default": (
        ["2"],
        [image("1", architectures=["arm64"]), image("2", architectures=["amd64"])],
        {},
    ),
    "no image for another version": ([], [image("1", target_version="< 1.30")], {"target": "1.30"}),
    "no image for another seed": ([], [image("1", runtime_version="< 1.30")], {"runtime": "1.30"}),
    "no image for another architecture": ([], [image("1", architectures=["arm64"])], {}),
    "no image of that name": ([], [ImageSource(name="b", ref="r:1")], {}),
    "no image at all": ([], [], {}),
}


@pytest.mark.parametrize("case", FIND)
def test_the_best_entry_is_found(case):
    tags, images, versions = FIND[case]
    vector = ImageVector(images, "mine/images.yaml")
    if tags:
        assert [vector.find("a", **versions).tag] == tags
        return
    with pytest.raises(ActuatorError, match=r"mine/images\.yaml: no image 'a'") as caught:
        vector.find("a", **versions)
    assert caught.value.codes == (ErrorCode.ERR_RETRYABLE_CONFIGURATION_PROBLEM,)
    assert "IMAGEVECTOR_OVERWRITE" in str(caught.value)


DIGEST = "sha256:0123"


@pytest.mark.parametrize(
    ("fields", "target", "reference", "version"),
    [
        ({"repository": "h:5000/r", "tag": "1"}, "1.31.0", "h:5000/r:1", "1"),
        ({"repository": "r", "tag": "1", "version": "9"}, "", "r:1", "9"),
        ({"repository": "r", "tag": DIGEST}, "", f"r@{DIGEST}", DIGEST),
        ({"repository": "r", "tag": f"1@{DIGEST}"}, "", f"r:1@{DIGEST}", f"1@{DIGEST}"),
        ({"repository": "r"}, "1.31.0", "r:v1.31.0", "v1.31.0"),
        ({"repository": "r"}, "v1.31.0", "r:v1.31.0", "v1.31.0"),
        ({"repository": "r"}, "", "r", None),
        ({"ref": "r:7"}, "1.31.0", "r:7", None),
    ],
)
def test_a_reference_consists_of_the_fields_of_the_entry(fields, target, reference, version):
    found = ImageVector([ImageSource(name="a", **fields)]).find("a", target=target)
    assert (found.reference, found.version) == (reference, version)


@pytest.fixture
def vector(tmp_path, monkeypatch):
    """Reads the image vector of an extension whose entries are these, with an overwrite."""

    def load(own, overwrite=None):
        (tmp_path / "images.yaml").write_text(own if isinstance(own, str) else yaml.dump(own))
        monkeypatch.delenv("IMAGEVECTOR_OVERWRITE", raising=False)
        if overwrite is not None:
            file = tmp_path / "overwrite.yaml"
            file.write_text(overwrite if isinstance(overwrite, str) else yaml.dump(overwrite))
            monkeypatch.setenv("IMAGEVECTOR_OVERWRITE", str(file))
        return load_images(str(tmp_path / "actuator.py"))

    return load


A = {"name": "a", "repository": "own", "tag": "1", "sourceRepository": "x/y"}
OVERWRITES = {
    "repository and tag": (A, {"name": "a", "repository": "new", "tag": "2"}, ["new:2"]),
    "a tag that is missing stays": (A, {"name": "a", "repository": "new"}, ["new:1"]),
    "a whole reference": (A, {"name": "a", "ref": "new:3"}, ["new:3"]),
    "a repository instead of a whole reference": (
        {"name": "a", "ref": "own:1"},
        {"name": "a", "repository": "new", "tag": "2"},
        ["new:2"],
    ),
    "a repository alone instead of a whole reference": (
        {"name": "a", "ref": "own:1"},
        {"name": "a", "repository": "new"},
        ["new"],
    ),
    "another name": (A, {"name": "b", "ref": "new:1"}, ["own:1", "new:1"]),
    "another target version": (
        A,
        {"name": "a", "ref": "new:1", "targetVersion": ">= 1.30"},
        ["own:1", "new:1"],
    ),
    "the same target version": (
        {**A, "targetVersion": ">= 1.30"},
        {"name": "a", "ref": "new:1", "targetVersion": ">= 1.30"},
        ["new:1"],
    ),
    "another runtime version": (
        {**A, "runtimeVersion": ">= 1.30"},
        {"name": "a", "ref": "new:1"},
        ["own:1", "new:1"],
    ),
    "other architectures": (
        {**A, "architectures": ["amd64"]},
        {"name": "a", "ref": "new:1", "architectures": ["arm64"]},
        ["own:1", "new:1"],
    ),
    "the same architectures": (
        {**A, "architectures": ["arm64"]},
        {"name": "a", "ref": "new:1", "architectures": ["arm64"]},
        ["new:1"],
    ),
}


@pytest.mark.parametrize("case", OVERWRITES)
def test_an_overwrite_replaces_the_entry_with_the_same_name_versions_and_architectures(
    case, vector
):
    own, new, expected = OVERWRITES[case]
    merged = vector({"images": [own]}, {"images": [new]})
    assert [item.reference for item in merged.images] == expected


def test_an_overwrite_that_replaces_no_entry_is_logged(vector, caplog, tmp_path):
    vector({"images": [A]}, {"images": [{"name": "a", "ref": "x"}, {"name": "b", "ref": "x"}]})
    [text] = caplog.messages
    overwrite = tmp_path / "overwrite.yaml"
    assert text == f"image 'b' in {overwrite} has no entry in images.yaml; adding it"


def test_the_version_of_the_program_stays_unless_the_overwrite_has_one(vector):
    new = {"name": "a", "repository": "new", "tag": "mirrored"}
    merged = vector({"images": [A]}, {"images": [new]})
    assert merged.find("a").version == "1"
    merged = vector({"images": [A]}, {"images": [{**new, "version": "2"}]})
    assert merged.find("a").version == "2"


@pytest.mark.parametrize("nothing", ["", "images: []", "{}"])
def test_an_empty_overwrite_changes_nothing(nothing, vector):
    assert vector({"images": [A]}, nothing).find("a").reference == "own:1"


def test_without_the_variable_the_extensions_own_images_count(vector):
    assert vector({"images": [A]}).find("a").reference == "own:1"


def test_a_failed_search_names_both_files(vector, tmp_path):
    merged = vector({"images": [A]}, {"images": []})
    with pytest.raises(ActuatorError, match=r"images\.yaml and .*overwrite\.yaml: no image 'b'"):
        merged.find("b")


B = "images:\n- name: a\n  repository: r\n- "
WRONG = {
    "no name": (B + "repository: r", r"\[1\]: image '': empty field"),
    "no reference": (B + "name: b", r"\[1\]: image 'b': set either ref, or repository and tag"),
    "two references": (B + "{name: b, ref: r, repository: r}", "image 'b': set either ref"),
    "ref and tag": (B + "{name: b, ref: r, tag: '1'}", "image 'b': set either ref"),
    "empty tag": (B + "{name: b, repository: r, tag: ''}", "image 'b': empty field"),
    "a number as tag": (
        B + "{name: b, repository: r, tag: 3.10}",
        r"images\[1\]\.tag: expected a string, got a nu",
    ),
    "a wrong range": (B + "{name: b, ref: r, targetVersion: new}", "'new'; write '>= 1.30, < 1"),
    "a wrong range of seeds": (B + "{name: b, ref: r, runtimeVersion: '>'}", "'>'; write"),
    "another architecture": (
        B + "{name: b, ref: r, architectures: [amd65]}",
        "image 'b': architectures: expected amd64 or arm64",
    ),
    "no images": ("image: []", "images: required field missing"),
    "no list": ("images: 3", "images: expected a list, got an integer"),
    "no object": ("- a", "expected an object, got a list"),
    "no YAML": ("images: [", "while parsing"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_file_is_named_with_the_entry_and_the_remedy(case, vector):
    text, words = WRONG[case]
    for files, name in (((text,), "images.yaml"), (("images: []", text), "overwrite.yaml")):
        with pytest.raises(ConfigurationError, match=words) as caught:
            vector(*files)
        assert f"/{name} is not a valid image vector: " in str(caught.value)
        assert "\n" not in str(caught.value)


def test_an_overwrite_that_does_not_exist_is_an_error(vector, monkeypatch, tmp_path):
    vector({"images": []})
    monkeypatch.setenv("IMAGEVECTOR_OVERWRITE", "/no/such/file.yaml")
    with pytest.raises(ConfigurationError, match=r"/no/such/file\.yaml"):
        load_images(str(tmp_path / "actuator.py"))


def test_a_chart_sees_the_references_as_gardeners_charts_do(tmp_path, monkeypatch):
    monkeypatch.setenv("ACTUATOR_HELM", str(find_helm(print)))
    (tmp_path / "templates").mkdir()
    (tmp_path / "Chart.yaml").write_text("apiVersion: v2\nname: mine\nversion: 0.1.0\n")
    (tmp_path / "values.yaml").write_text("images: {default: kept}\n")
    (tmp_path / "templates" / "one.yaml").write_text("{{ toJson .Values }}")
    vector = ImageVector([image("1"), ImageSource(name="b-c", ref="r:2")])
    images = vector.references(Cluster(), "a", "b-c")

    def values(**arguments):
        chart = Chart(path=tmp_path, namespace="ns", images=images, **arguments)
        return render(chart, "v1.33.2")[0]

    assert values() == {"images": {"a": "r:1", "b-c": "r:2", "default": "kept"}}
    assert values(values={"x": 1})["x"] == 1
    given = {"images": {"a": "mine"}}
    assert values(values=given)["images"] == {"a": "mine", "b-c": "r:2", "default": "kept"}


SHOOT_32 = {"targetVersion": "1.32.x"}


def versions_of(shoot, seed):
    spec = {
        "shoot": {"spec": {"kubernetes": {"version": shoot}}},
        "seed": {"status": {"kubernetesVersion": seed}},
    }
    return decode(Cluster, {"spec": spec})


def test_references_follow_the_versions_of_the_shoot_and_of_the_cluster_that_runs_the_images(
    vector,
):
    entries = [
        {"name": "a", "repository": "r", "tag": "old-seed", "runtimeVersion": "< 1.32"},
        {"name": "a", "repository": "r", "tag": "new-seed", "runtimeVersion": ">= 1.32"},
        {"name": "b", "repository": "r", "tag": "shoot-31", "targetVersion": "1.31.x"},
        {"name": "b", "repository": "r", "tag": "shoot-32", "targetVersion": "1.32.x"},
        {"name": "c", "repository": "r", "architectures": ["arm64"], "tag": DIGEST},
    ]
    images = vector({"images": entries}, {"images": [{"name": "b", "ref": "x", **SHOOT_32}]})
    cluster = versions_of("1.32.4", "1.31.9")
    assert images.references(cluster, "a", "b") == {"a": "r:old-seed", "b": "x"}
    assert images.references(cluster, "a", in_shoot=True) == {"a": "r:new-seed"}
    assert images.references(versions_of("1.31.0", "1.32.0"), "b", "a") == {
        "b": "r:shoot-31",
        "a": "r:new-seed",
    }
    assert images.references(cluster, "c", arch="arm64") == {"c": f"r@{DIGEST}"}
    with pytest.raises(ActuatorError, match="no image 'c' for target and runtime version"):
        images.references(cluster, "a", "c")


def test_the_example_in_the_documentation_runs(tmp_path):
    text = (Path(__file__).parents[3] / "docs/extensions.md").read_text()
    blocks = text.partition("## Container images that you deploy")[2].split("```")
    (tmp_path / "images.yaml").write_text(blocks[1].removeprefix("yaml"))
    names: dict[str, Any] = {"__file__": str(tmp_path / "mine.py")}
    exec(blocks[3].removeprefix("python"), names)
    cluster = versions_of("1.31.4", "1.30.0")
    at = SimpleNamespace(cluster=cluster, namespace="shoot--a--b")
    control_plane = names["MyControlPlane"]()
    assert control_plane.seed(at).images == {
        "cloud-controller-manager": "registry.example.org/cloud-controller-manager:v1.31.2"
    }
    (shown,) = control_plane.shoot(at)
    (container,) = shown["spec"]["template"]["spec"]["containers"]
    assert container["image"].startswith("registry.example.org/csi-driver@sha256:")


SAMPLES = Path(extensions.__file__).parent


def test_no_sample_names_a_container_image_in_its_code():
    named = re.compile(r"[\"'][\w.-]+\.[a-z]+(?::\d+)?/[\w./-]+:[\w.-]+[\"']")
    code = {path: path.read_text() for path in SAMPLES.rglob("*.py")}
    found = [f"{path.name}: {hit}" for path, text in code.items() for hit in named.findall(text)]
    assert found == []


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*/images.yaml")), ids=lambda p: p.parent.name)
def test_the_image_vector_of_each_sample_is_valid_and_used(path):
    vector = load_images(str(path.with_name("__init__.py")))
    code = "".join(module.read_text() for module in path.parent.glob("*.py"))
    assert vector.images
    assert [item.name for item in vector.images if f'"{item.name}"' not in code] == []
