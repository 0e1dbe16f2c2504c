"""`actuator docs` and `actuator validate`: their output, and the exit status."""

import json
import os
from collections.abc import Callable
from subprocess import CompletedProcess
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV30SpecValidator

from actuator.codec import decode
from actuator.meta import Raw
from actuator.provider_config import load_config
from actuator.schema import json_schema
from actuator.v1alpha1 import Infrastructure
from extensions.azurecontrolplane.actuator import ControlPlaneConfig
from extensions.certificate.config import CertificateConfig
from extensions.local.config import NetworkConfig, ShareConfig
from extensions.networkfilter.config import FilterConfig
from generic.manager.manager import Manager
from generic.testing.minimal import example
from tests.support.objects.configured import problems_of_object
from tests.support.pages.documented import run_examples

CONFIGS = [CertificateConfig, ControlPlaneConfig, FilterConfig, NetworkConfig, ShareConfig]
EXTENSIONS = [
    "extensions.azurecontrolplane:extension",
    "extensions.certificate:extension",
    "extensions.networkfilter:extension",
]
Run = Callable[..., CompletedProcess[str]]


@pytest.fixture
def run(command, tmp_path, monkeypatch) -> Run:
    """Runs commands in an empty directory."""
    monkeypatch.chdir(tmp_path)
    return command


def test_the_printed_role_follows_the_flags_of_webhooks(run):
    """As an operator gives the flags of `actuator run` to `actuator rbac`."""
    flags = ["--webhook-config-namespace=ext", "--leader-election-id=aws-leader-election"]
    printed = run("rbac", "extensions.aws:extension", *flags).stdout
    rules = [rule for role in yaml.safe_load_all(printed) for rule in role.get("rules", ())]
    named = {name for rule in rules for name in rule.get("resourceNames", ())}
    assert {"gardener-extension-aws", "gardener-extension-aws-webhooks", "ext"} <= named


def test_the_charts_of_an_admission_have_the_names_under_which_helm_pushes_them(run, tmp_path):
    run("chart", "extensions.certificate.admission:admission", "--admission", "--output", "out")
    section = yaml.safe_load((tmp_path / "out" / "admission.yaml").read_text())["admission"]
    parts = {"runtimeCluster": "runtime", "virtualCluster": "application"}
    for cluster, part in parts.items():
        ref = section[cluster]["helm"]["ociRepository"]["ref"]
        file = tmp_path / "out" / "extension-certificate-admission" / part / "Chart.yaml"
        head = yaml.safe_load(file.read_text())
        assert ref.rpartition("/")[2] == f"{head['name']}:{head['version']}"


def test_an_admission_without_webhooks_has_policies_and_no_process(run, tmp_path):
    text = """
from actuator.v1alpha1 import Extension
from extensions.certificate.config import CertificateConfig
from generic.library.webhooks import ConfigAdmission

def admission(manager):
    manager.add_admission(ConfigAdmission(kind=Extension, type="a", config=CertificateConfig))
"""
    (tmp_path / "plain.py").write_text(text)
    run("chart", "plain:admission", "--admission", "--output", "out")
    section = yaml.safe_load((tmp_path / "out" / "admission.yaml").read_text())["admission"]
    assert [*section] == ["virtualCluster"]
    [chart] = (tmp_path / "out").glob("*/*/Chart.yaml")
    kinds = {path.name.partition("-")[0] for path in chart.parent.glob("templates/*")}
    assert {"validatingadmissionpolicy", "validatingadmissionpolicybinding"} <= kinds


@pytest.fixture
def validate(run, tmp_path) -> Callable[..., tuple[str, str]]:
    def validate(*documents: object, text: str = "", status: int = 0) -> tuple[str, str]:
        (tmp_path / "shoot.yaml").write_text(text or yaml.safe_dump_all(documents))
        done = run("validate", *EXTENSIONS, "-f", "shoot.yaml", status=status)
        return done.stdout, done.stderr

    return validate


def shoot(**spec: Any) -> dict[str, Any]:
    meta = {"name": "mine", "namespace": "garden-dev"}
    return {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "Shoot",
        "metadata": meta,
        "spec": spec,
    }


def extension(config: Any, type: str = "networking-filter", **more: Any) -> dict[str, Any]:
    meta = {"name": "x", "namespace": "shoot--a--b"}
    spec = {"type": type, "providerConfig": config}
    version = "extensions.gardener.cloud/v1alpha1"
    return {"apiVersion": version, "kind": "Extension", "metadata": meta, "spec": spec} | more


def test_the_documented_example_finds_the_documented_problems():
    defined = run_examples("## Provider configuration")
    good = example(json_schema(defined["InfrastructureConfig"]))
    assert good["mtu"] == 1450
    zone = good["zones"][0]
    actuator = defined["Network"]()
    spec = {"providerConfig": good | {"zones": [zone, zone]}}
    (problem,) = problems_of_object(actuator, decode(Infrastructure, {"spec": spec}))
    assert str(problem) == "spec.providerConfig.zones[1].name: eu-1 is used twice"
    spec = {"providerConfig": good | {"zones": [zone, {**zone, "worker": 1}]}}
    (problem,) = problems_of_object(actuator, decode(Infrastructure, {"spec": spec}))
    words = "spec.providerConfig.zones[1]: unknown field worker; did you mean workers?"
    assert str(problem) == words
    Manager().add(actuator, type="mine")


@pytest.mark.parametrize("cls", CONFIGS)
def test_the_example_of_each_sample_is_valid(cls):
    given = example(json_schema(cls))
    assert load_config(cls, given, "spec.providerConfig")[1] == []
    Draft202012Validator(json_schema(cls)).validate(given)


def test_the_page_has_an_example_and_all_fields(run):
    page = run("docs", "extensions.certificate:extension").stdout
    _, _, rest = page.partition("```yaml\n")
    given = yaml.safe_load(rest.partition("```")[0])
    assert load_config(CertificateConfig, given, "")[1] == []
    assert "- Shoot: `spec.extensions[].providerConfig` with type certificate-service" in page
    (row,) = [line for line in page.splitlines() if "`issuers[].server`" in line]
    words = "| string | required | pattern https://.+ | The directory of the certificate authority."
    assert words in row
    assert page.count("\n| `") == 6


def test_a_class_is_documented_with_defaults_and_bounds(run):
    page = run("docs", "extensions.local.config:NetworkConfig").stdout
    assert "| `mtu` | integer | `1450` | at least 1280, at most 9000 | The largest packet" in page


def test_the_json_schema_of_one_or_several_is_valid(run):
    for given in (EXTENSIONS[:1], EXTENSIONS):
        text = run("docs", "-o", "json-schema", *given).stdout
        Draft202012Validator.check_schema(json.loads(text))
        assert text.count('"$schema"') == 1, "valid only at the root"
    ours = [example(json_schema(cls)) for cls in (ControlPlaneConfig, CertificateConfig)]
    assert [Draft202012Validator(json.loads(text)).is_valid(our) for our in ours] == [True, True]
    assert not Draft202012Validator(json.loads(text)).is_valid({"kind": "Other"})


def test_the_openapi_fragment_is_a_part_of_a_valid_document(run):
    text = run("docs", "-o", "openapi", *EXTENSIONS).stdout
    head = {"openapi": "3.0.3", "info": {"title": "x", "version": "1"}, "paths": {}}
    OpenAPIV30SpecValidator(head | json.loads(text)).validate()
    assert set(json.loads(text)["components"]["schemas"]) == {
        "ControlPlaneConfig",
        "CertificateConfig",
        "FilterConfig",
    }


BAD = shoot(
    provider={
        "type": "azure",
        "infrastructureConfig": {"a": 1},
        "controlPlaneConfig": {"remedyControler": False},
        "workers": [{"name": "a", "providerConfig": {"a": 1}}],
    },
    networking={"type": "calico"},
    extensions=[
        {"type": "unknown", "providerConfig": {}},
        {
            "type": "certificate-service",
            "providerConfig": {"issuers": [{"name": "a", "server": "https://a"}, {"name": "B"}]},
        },
        {"type": "networking-filter"},
    ],
)


def test_each_problem_is_one_line_with_file_document_object_and_field(validate):
    given = None, {"kind": "ConfigMap"}, BAD, extension({"kind": "Filter"})
    out, err = validate(*given, status=1)
    subject = "shoot.yaml: document 3: Shoot garden-dev/mine: spec."
    field = f"{subject}extensions[1].providerConfig.issuers[B]"
    version = "networkfilter.extensions.gardener.cloud/v1alpha1"
    known = [line.replace(version, "VERSION") for line in out.splitlines()]
    unknown = "unknown field remedyControler; did you mean remedyController?"
    pattern = "(a DNS label of lower-case letters, digits and hyphens)"
    server = "a string like 'https://acme.example.org/dir' (pattern https://.+)"
    supported = "VERSION Filter is not supported; set apiVersion VERSION and kind FilterConfig"
    assert known == [
        f"{subject}provider.controlPlaneConfig: {unknown}",
        f"{field}.name: expected a string like 'letsencrypt' {pattern}, got 'B'",
        f"{field}.server: required field missing; set {server}",
        f"{subject}extensions[2].providerConfig: valid",
        f"shoot.yaml: document 4: Extension shoot--a--b/x: spec.providerConfig: {supported}",
    ]
    not_checked = [line.partition(": not checked: ") for line in err.splitlines()]
    assert [(place.rpartition("spec.")[2], rest) for place, _, rest in not_checked] == [
        ("provider.infrastructureConfig", "Infrastructure azure is not served"),
        ("provider.workers[0].providerConfig", "Worker azure is not served"),
        ("extensions[0].providerConfig", "Extension unknown is not served"),
        ("Error: 3 of 4 configurations are invalid; correct the fields", ""),
    ]


def test_valid_manifests_and_lists_have_status_0(validate):
    listed = {"kind": "List", "items": [extension({"blocked": ["10.0.0.0/8"]}), extension(None)]}
    out, err = validate(listed)
    assert err == ""
    assert (
        out.splitlines()
        == ["shoot.yaml: document 1: Extension shoot--a--b/x: spec.providerConfig: valid"] * 2
    )


MODULE = """
from typing import Literal

import attrs
from actuator import Actuator, ProviderConfig
from actuator.v1alpha1 import Infrastructure, Worker

@attrs.frozen(kw_only=True)
class Config(ProviderConfig):
    api_version: str = "a/v1"
    kind: str = "Config"
    zone: str

    def problems(self):
        return 1 / (self.zone != "raise") and ()

@attrs.frozen(kw_only=True)
class Odd(ProviderConfig):
    api_version: str = "a/v1"
    kind: str = "Odd"
    zones: set[str]

@attrs.frozen(kw_only=True)
class Late(ProviderConfig):
    zone: "Nowhere"

@attrs.frozen(kw_only=True)
class Number(ProviderConfig):
    size: Literal[1, 2]

class Other:
    class Config(Config):
        pass

class Base:
    def reconcile(self, ctx, obj, cluster): ...
    def delete(self, ctx, obj, cluster): ...

class Machines(Base, Actuator[Worker, Config]): ...
class Network(Base, Actuator[Infrastructure, Config]): ...
class Without(Base, Actuator[Infrastructure]): ...

def extension(manager):
    manager.add(Machines(), type="a")
    manager.add(Network(), type="a")
"""


@pytest.fixture
def mine(tmp_path) -> None:
    (tmp_path / "typedmine.py").write_text(MODULE)


def test_pools_and_required_configurations_are_checked(run, mine, tmp_path):
    workers = [{"providerConfig": {"zone": "a"}}, {"providerConfig": {"zone": 1}}, {}]
    shoots = [shoot(provider={"type": "a", "workers": workers}), shoot(provider={"type": "a"})]
    pools: Raw = {"apiVersion": "extensions.gardener.cloud/v1alpha1", "kind": "Worker"}
    pools["spec"] = {"type": "a", "pools": workers[1:]}
    (tmp_path / "a.json").write_text(json.dumps(shoots[0]))
    (tmp_path / "b.yaml").write_text(yaml.safe_dump_all([shoots[1], pools]))
    files = ("-f", "a.json", "-f", "b.yaml")
    out = run("validate", "typedmine:extension", *files, status=1).stdout
    wrong = "providerConfig.zone: expected a string, got an integer"
    missing = "zone: required field missing; set a string"
    subject = "a.json: document 1: Shoot garden-dev/mine: spec.provider"
    assert out.splitlines() == [
        f"{subject}.infrastructureConfig.{missing}",
        f"{subject}.workers[0].providerConfig: valid",
        f"{subject}.workers[1].{wrong}",
        f"{subject}.workers[2].providerConfig.{missing}",
        f"b.yaml: document 2: Worker: spec.pools[0].{wrong}",
        f"b.yaml: document 2: Worker: spec.pools[1].providerConfig.{missing}",
    ]


def test_a_class_that_raises_is_named(run, mine, tmp_path):
    given = shoot(provider={"type": "a", "infrastructureConfig": {"zone": "raise"}})
    (tmp_path / "a.json").write_text(json.dumps(given))
    done = run("validate", "typedmine:extension", "-f", "a.json", status=1)
    words = "infrastructureConfig: Config raised ZeroDivisionError: division by zero"
    assert words in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


LAUGHS = "".join(
    f"{name}: &{name} [{','.join([f'*{of}'] * 10)}]\n"
    for of, name in zip("abcdef", "bcdefg", strict=True)
)


MERGES = "a: &a {0: x, 1: x, 2: x, 3: x, 4: x, 5: x, 6: x, 7: x, 8: x, 9: x}\n" + "".join(
    f"{name}: &{name} {{<<: [{','.join([f'*{of}'] * 10)}]}}\n"
    for of, name in zip("abcdefghi", "bcdefghij", strict=True)
)


def test_merge_keys_are_read_as_in_go(validate):
    text = "x: &x {kind: FilterConfig}\nitems:\n"
    config = "{<<: *x, kind: FilterConfig, blocked: [10.0.0.0/8]}"
    for item in (config, "*x"):
        text += f"- {json.dumps(extension('CONFIG'))}\n".replace('"CONFIG"', item)
    out, err = validate(text=text)
    assert err == ""
    assert out.count(": valid\n") == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [1\n", "line 2, column 1"),
        ("a: &a {b: *a}\n", "Circular reference"),
        (f"a: &a [{'x,' * 99}x]\n{LAUGHS}", "it has more than"),
        ("[" * 3_000, "recursion depth"),
        ("a: .nan\n", "not JSON compliant"),
        ("a: 0x" + "f" * 20_000 + "\n", "4300 digits"),
        ("a: !!python/object:os.system x\n", "could not determine a constructor"),
        ("a: 'x\0y'\n", "unacceptable character"),
        ("? [a]\n: b\n", "unhashable key"),
        ("a: 1\nb: 2\na: 3\n", "key 'a' is a duplicate"),
        (MERGES, "merge keys add more than 10000 fields"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_sentence(validate, text, words):
    out, err = validate(text=text, status=3)
    assert out == ""
    assert err.startswith("Error: shoot.yaml cannot be read: ")
    assert words in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "document",
    [
        [],
        5,
        {"kind": "Shoot", "apiVersion": "core.gardener.cloud/v1beta1", "spec": 5, "metadata": []},
        shoot(provider=[], extensions={}, networking="x"),
        shoot(extensions=[5, {"type": []}, {"type": {"a": 1}, "providerConfig": None}]),
        {"items": [{"items": 5}, None]},
        extension(None, kind=["Extension"]),
    ],
)
def test_a_manifest_of_any_shape_is_read(validate, document):
    out, err = validate(document, status=3)
    assert out == ""
    serve = "ControlPlane azure, Extension certificate-service, Extension networking-filter"
    assert err == f"Error: no configuration to check; these extensions serve {serve}\n"


@pytest.mark.parametrize("config", [5, "x", [1], True])
def test_a_configuration_that_is_no_object_is_a_problem(validate, config):
    out, _ = validate(extension(config), status=1)
    assert "spec.providerConfig: expected an object, got a" in out


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["validate", *EXTENSIONS], 2, "Missing option '--file' / '-f'"),
        (["validate", *EXTENSIONS, "-f", "absent.yaml"], 2, "'absent.yaml': No such file"),
        (["validate", "nowhere:x", "-f", "typedmine.py"], 3, "module 'nowhere' not found"),
        (
            ["validate", "typedmine:Without", "--type", "a", "-f", "typedmine.py"],
            3,
            "typedmine:Without: no actuator declares a configuration; derive its",
        ),
        (["docs"], 2, "Missing argument"),
        (["docs", "-o", "html", *EXTENSIONS], 2, "'html' is not one of"),
        (["docs", "typedmine:Odd"], 1, "Odd.zones: set[str] has no schema; use a scalar"),
        (["docs", "typedmine:Missing"], 1, "typedmine has no 'Missing'"),
        (["docs", "typedmine:Late"], 1, "Late: name 'Nowhere' is not defined; import it at run"),
        (["docs", "typedmine:Number"], 1, "Number.size: typing.Literal[1, 2] has no schema; use"),
        (["validate", "typedmine:Odd", "-f", os.devnull], 3, "got a configuration; name its Act"),
        (["validate"], 2, "Missing argument 'MODULE:OBJECT"),
        (
            ["docs", "-o", "openapi", "typedmine:Config", "typedmine:Other.Config"],
            1,
            "typedmine:Config: another class has the same name in the fragment; print each",
        ),
    ],
)
def test_wrong_input_gets_one_sentence_and_its_status(run, mine, arguments, status, words):
    done = run(*arguments, status=status)
    assert done.stdout == ""
    assert words in done.stderr
    assert "Traceback" not in done.stderr
