"""The public API: each name and its signature is pinned, and authors need no other name."""

import ast
import contextlib
import inspect
import operator
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from hack.public_api import PINNED, PLUGINS, modules, names, text
from tests.support.pages.commands import run_command

ROOT = Path(__file__).parents[2]
OURS = ("actuator", "generic")
EXAMPLE = re.compile(r"```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
GENERIC = ("Worker", "ControlPlane", "BackupEntry")
PROJECT = ("--own-kind", "Peering", *(part for kind in GENERIC for part in ("--kind", kind)))
FEATURES = ("--in-shoot", "--admission", "--webhooks")
NAMES_OF_AUTHORS = {"generic.mine", "generic.py"}
PAGES = ("*.md", "docs/**/*.md", "extensions/*/README.md")
NAMES = [(module, name) for module in modules() for name in names(module)]


def test_the_public_api_is_as_pinned():
    assert text() == PINNED.read_text(), "review it, then: python -m hack.public_api"


DEFINED = re.compile(r"^    (?:class )?(\w+)", re.MULTILINE)
LIBRARIES = (
    *("abc", "builtins", "collections.abc", "contextlib", "datetime", "enum", "importlib.abc"),
    *("ipaddress", "logging", "pathlib", "subprocess", "typing", "msgspec", "pytest"),
)
TYPES = {name for library in LIBRARIES for name in vars(import_module(library))}


def not_promised(api: str) -> Iterator[str]:
    """The types that signatures name and that neither the API nor a library defines."""
    known = TYPES | {*DEFINED.findall(api)}
    for line in api.splitlines():
        signature = re.sub(r"'[^']*'|^ *(class )?\w+", "", line)
        for type in re.findall(r"(?<![\w.])[A-Z]\w+", signature):
            if type not in known and not type.endswith("_co"):
                yield f"{type} in: {line.strip()}"


def test_each_type_in_the_public_api_is_promised_or_of_a_library():
    assert [*not_promised(PINNED.read_text())] == []


@pytest.mark.parametrize(
    "line",
    [
        "class Found(Base)(text: str)",
        "    one: Sequence[Base | None]",
        "found(client: Base, *, text: str = 'Other') -> None",
        "found() -> Mapping[str, Base]",
        "KINDS = (Base, Path)",
    ],
)
def test_a_type_that_is_not_promised_is_found(line):
    assert [*not_promised(f"generic\n    {line}\n")] == [f"Base in: {line.strip()}"]


def not_annotated(api: str) -> Iterator[str]:
    """The parameters and attributes without a type."""
    for line in api.partition("\ncommand line")[0].splitlines():
        left = re.sub(r"'[^']*'|class \w+\((str|tuple)\)|^ +\w+ = .*", "", line)
        left = re.sub(r" = [\w.]+\([^()]*\)", "", left)  # a default value
        while (inner := re.sub(r"\[[^\[\]]*\]", "", left)) != left:
            left = inner
        found = re.findall(r"[(,] ?\*{0,2}([a-z_]\w*)(?=[,)=])", left)
        found += re.findall(r"^        (\w+)$", line)
        yield from (f"{name} in: {line.strip()}" for name in found if name not in ("self", "cls"))


def test_each_parameter_and_attribute_of_the_public_api_has_a_type():
    assert [*not_annotated(PINNED.read_text())] == []


@pytest.mark.parametrize(
    "line",
    [
        "found(text, more: Callable[[str, str, str], None]) -> None",
        "    found(self, *, more: str = 'one, two', text) -> None",
        "    found(cls, text=..., /) -> None",
        "class Found(str)(*, more: Found = Found(first=1), text=1)",
        "found(**text) -> None",
        "    text",
    ],
)
def test_a_parameter_without_a_type_is_found(line):
    assert [*not_annotated(f"generic\n    {line}\n")] == [f"text in: {line.strip()}"]


def test_each_duration_of_the_public_api_but_a_validity_is_in_seconds():
    durations = re.findall(r"(\w+): [\w.]*timedelta", PINNED.read_text())
    assert {*durations} == {"validity"}


def name_follows_namespace(api: str) -> list[str]:
    """The lines in which a namespace that is no keyword precedes the name of an object."""
    keywords = re.compile(r"(\*, |\*\w+: ).*")
    wrong = re.compile(r"\bnamespace: .*[ *]names?: ")
    lines = [line.strip() for line in api.splitlines()]
    return [line for line in lines if wrong.search(keywords.sub(r"\1", line))]


def test_a_name_precedes_its_namespace_as_in_the_package_kubernetes():
    """But for Request, which is NamespacedName of Kubernetes."""
    assert name_follows_namespace(PINNED.read_text()) == [
        "class Request(tuple)(namespace: str, name: str)"
    ]


@pytest.mark.parametrize("names", ["name: str", "*names: str, origin: str = ''"])
def test_a_name_that_follows_its_namespace_is_found(names):
    wrong = f"find(client: Client, namespace: str, {names}) -> None"
    assert name_follows_namespace(wrong) == [wrong]
    assert name_follows_namespace(f"find(client: Client, {names}, namespace: str)") == []
    assert name_follows_namespace("find(client: Client, *, namespace: str, name: str)") == []


def test_each_class_and_function_has_a_docstring_of_its_own():
    """Not the signature that a decorator writes."""
    values = [(name, getattr(import_module(module), name)) for module, name in NAMES]
    callables = [(name, value) for name, value in values if callable(value) and not is_alias(value)]
    assert len(callables) > 300
    assert [name for name, value in callables if not (value.__doc__ or "").strip()] == []
    assert [name for name, value in callables if value.__doc__.startswith(f"{name}(")] == []


def is_alias(value: object) -> bool:
    return not inspect.isclass(value) and not inspect.isroutine(value)


def test_no_public_name_is_also_a_module_of_its_package():
    """An import of the module would replace the name."""
    lazy = [(module, name) for module, name in NAMES if is_lazy(module)]
    assert len(lazy) > 100
    assert [(module, name) for module, name in lazy if find_spec(f"{module}.{name}")] == []


def is_lazy(module: str) -> bool:
    return Path(str(import_module(module).__file__)).with_suffix(".pyi").exists()


@pytest.mark.parametrize("module", ["generic", "generic.library", "generic.testing"])
def test_a_name_that_is_not_public_is_an_attribute_error(module):
    with pytest.raises(AttributeError, match=f"'{module}' has no attribute 'no_such_name'"):
        operator.attrgetter("no_such_name")(import_module(module))


def not_public(code: str) -> Iterator[str]:
    """The names that a source takes from our packages and that are not public."""
    tree = ast.parse(code)
    known: dict[str, str] = {}  # local names of public modules
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            known |= {
                name.asname or name.name: name.name for name in node.names if is_ours(name.name)
            }
        elif isinstance(node, ast.ImportFrom) and is_ours(node.module or ""):
            for item in node.names:
                inner = f"{node.module}.{item.name}"
                if inner in modules():
                    known[item.asname or item.name] = inner
                elif node.module not in modules() or item.name not in names(node.module):
                    yield inner
    yield from (module for module in known.values() if module not in modules())
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=local), attr=name) if local in known:
                if known[local] in modules() and name not in names(known[local]):
                    yield f"{known[local]}.{name}"


def is_ours(module: str) -> bool:
    return module.partition(".")[0] in OURS


def test_a_private_name_is_found():
    code = (
        "import generic.kube\nfrom actuator import NotFound, v1alpha1, meta\nimport generic as g\n"
    )
    code += "from generic.library import seedobjects as s\ns.GROUP, g.Manager, v1alpha1.Nothing"
    assert sorted(not_public(code)) == [
        "actuator.meta",
        "actuator.v1alpha1.Nothing",
        "generic.kube",
        "generic.library.seedobjects.GROUP",
    ]


GUIDES = [page for page in sorted(ROOT.glob("docs/*.md")) if page.stem != "architecture"]
SOURCES = sorted(ROOT.glob("extensions/**/*.py"))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_samples_use_public_names_only(path):
    assert [*not_public(path.read_text())] == []


def test_a_project_of_actuator_new_uses_public_names_only(tmp_path):
    run_command("new", "acme", *PROJECT, *FEATURES, "--output", tmp_path / "acme")
    sources = [*(tmp_path / "acme").rglob("*.py")]
    assert len(sources) > 5
    assert [name for source in sources for name in not_public(source.read_text())] == []


@pytest.mark.parametrize("page", sorted({path for pattern in PAGES for path in ROOT.glob(pattern)}))
def test_examples_of_the_documentation_use_public_names_only(page):
    examples = EXAMPLE.findall(page.read_text())
    assert examples or "```python" not in page.read_text()
    assert [name for example in examples for name in not_public(example)] == []


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_pages_for_authors_name_public_modules_only(page):
    named = {*re.findall(r"`((?:actuator|generic)(?:\.\w+)+)[`(:]", page.read_text())}
    assert {name for name in named - NAMES_OF_AUTHORS if not is_public(name)} == set()


def is_public(name: str) -> bool:
    module, _, last = name.rpartition(".")
    return name in modules() or (module in modules() and last in names(module))


def test_plugins_in_the_documentation_are_public():
    named = re.findall(r"pytest_plugins = \[(.*?)\]", "".join(map(Path.read_text, pages())))
    assert {name.strip('"') for name in named} <= {*PLUGINS}
    assert len(named) > 1


def pages() -> list[Path]:
    return [*ROOT.glob("docs/**/*.md")]


def test_the_reference_shows_the_public_modules_and_no_others():
    shown = re.findall(r"\{generated\} api (\S+)", "".join(map(Path.read_text, pages())))
    assert sorted(shown) == sorted(modules())


LOADED = """
import sys
before = set(sys.modules)
from generic import Manager
print(*(set(sys.modules) - before))
"""


def test_importing_a_manager_loads_only_modules_that_every_manager_needs():
    done = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, check=True
    )
    loaded = done.stdout.split()
    assert "generic.kube.informer" in loaded
    rooms = ("generic.testing", "generic.tools", "generic.library", "actuator.v1alpha1")
    on_demand = (*rooms, "click", "kubernetes", "yaml")
    assert [name for name in loaded if name.startswith(on_demand)] == []
    assert len(loaded) <= 350


UNREACHABLE = """
apiVersion: v1
kind: Config
clusters: [{name: seed, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: me, user: {}}]
contexts: [{name: seed, context: {cluster: seed, user: me}}]
current-context: seed
"""
MAIN = "from generic.tools.cli.main import main; main()"


@contextlib.contextmanager
def imports_of_a_run(tmp_path: Path) -> Iterator[Iterator[str]]:
    """Yield the output of `actuator run`, with a line for each import, while it runs."""
    (tmp_path / "kubeconfig").write_text(UNREACHABLE)
    flags = ("--kubeconfig", "kubeconfig", "--metrics-bind-address=0", "--health-bind-address=0")
    command = [sys.executable, "-X", "importtime", "-c", MAIN, "run", "extensions.local:extension"]
    with subprocess.Popen(
        [*command, *flags], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        yield process.stderr
        process.kill()


def test_a_running_manager_has_imported_nothing_of_the_tests(tmp_path):
    imported = []
    with imports_of_a_run(tmp_path) as lines:
        for line in lines:
            if "watch ended" in line:  # it has composed everything, and tries to read its objects
                break
            if line.startswith("import time:"):
                imported.append(line.rpartition("|")[2].strip())
    assert "generic.manager.manager" in imported
    assert [name for name in imported if name.startswith("generic.testing")] == []
