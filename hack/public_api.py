"""Write the public API, with all signatures, to tests/unit/public_api.txt: review its changes.

    python -m hack.public_api

A name that is in no public module may change at any time. The list of public modules is the import
contract "border" in pyproject.toml.
"""

import ast
import inspect
import re
import textwrap
import tomllib
from collections.abc import Iterator
from enum import Enum
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Unpack, get_args, get_origin, get_type_hints

import click
from _pytest.fixtures import FixtureFunctionDefinition

from generic.tools.cli.main import cli

ROOT = Path(__file__).parent.parent
PINNED = ROOT / "tests/unit/public_api.txt"
PLUGINS = (
    "generic.testing.envtest.pytest_plugin",
    "generic.testing.fixtures",
    "generic.tools.landscape_fixtures",
)
"""Modules for `pytest_plugins`; their fixtures are public."""
INTERNAL = {
    "Actuator": "__init__",
    "Certificate": "sign",
    "Cluster": "verdict",
    "ClusterAccess": "write_admin_kubeconfig",
    "ConfigAdmission": "label name place policy problems selected",
    "ControlPlaneMutator": "webhooks",
    "DeletionOrigin": "fields",
    "Environment": "kill restart stop_apiserver",
    "Event": "last late own relisted went_back",
    "ForceDeletionRecord": "__init__ spec",
    "GardenUnderTest": "__init__",
    "Header": "cause conditions is_untouched",
    "Issued": "__init__ kept trusted",
    "Kind": "behaviour triggers",
    "KnownObjects": "store",
    "LandscapeWorld": "__init__ installed landscape rehearsal",
    "MachineGroup": "deployment_spec is_manual machine_class secret status",
    "Manager": "admissions check_ready enabled has_seen health_checks intercept kinds listeners"
    " metrics registrations runnables shoot_origin verdict webhooks",
    "Options": "enabled enabled_webhooks extension is_named serves_webhooks webhook_owner"
    " workers_of",
    "RecordingContext": "cancelled end limit limited method operation permit progress",
    "Rotated": "generate",
    "Seed": "__init__",
    "ShootRehearsal": "shoots",
    "ShootUnderTest": "__init__ managers owns types",
    "Watch": "requests",
    "WorkloadIdentity": "__init__ ctx",
}
"""Members and parameters of public classes for the framework itself: neither promised nor in the
reference. `__init__`: users get objects of the class, and create none."""
_PLAIN = (
    (re.compile(r"= (NOTHING|Ellipsis)"), "= ..."),  # a new value for each object, or the callee's
    (re.compile(r"<class '([^']*)'>"), r"\1"),
    (re.compile(r"\b(?:(?!threading\.)[a-z_]\w*\.)+(?=[A-Z])|~|(?<= )at 0x[0-9a-f]+"), ""),
    (re.compile(r"<(\w+\.\w+): [^>]*>"), r"\1"),  # a member of an enumeration
    (re.compile(r"(?<=: |> )'([\w\[\], ]+)'"), r"\1"),  # an annotation as text
)


@cache
def modules() -> list[str]:
    """Return the public modules."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contracts = project["tool"]["importlinter"]["contracts"]
    [border] = [contract for contract in contracts if contract["id"] == "border"]
    return [allowed.partition(" -> ")[2] for allowed in border["ignore_imports"]]


def names(module: str) -> list[str]:
    """Return the public names of a public module."""
    return sorted(import_module(module).__all__)


def text() -> str:
    """Return the whole API, one line for each name and each member of a class."""
    lines: list[str] = []
    for module in modules():
        lines.append(f"\n{module}")
        for name in names(module):
            value = getattr(import_module(module), name)
            lines += [f"    {line}" for line in describe(name, value)]
    for plugin in PLUGINS:
        lines.append(f"\n{plugin}, as a plugin of pytest")
        for name, value in sorted(vars(import_module(plugin)).items()):
            if isinstance(value, FixtureFunctionDefinition) and not name.startswith("_"):
                lines.append(f"    {name}{plain(_signature(inspect.unwrap(value)))}")
    lines += ["\ncommand line", *(f"    {line}" for line in _commands(cli, "actuator"))]
    return "\n".join(lines).strip() + "\n"


def _commands(command: click.Command, path: str) -> Iterator[str]:
    """Yield each command with its arguments and options."""
    context = click.Context(command)
    if isinstance(command, click.Group):
        for name in sorted(command.list_commands(context)):
            found = command.get_command(context, name)
            assert found is not None
            yield from _commands(found, f"{path} {name}")
    else:
        options = ["/".join([*param.opts, *param.secondary_opts]) for param in command.params]
        yield " ".join([path, *options])


def describe(name: str, value: Any) -> Iterator[str]:
    """Yield the line of a name, and those of the members that no other public class defines."""
    if inspect.isclass(value) and value.__name__ == name:
        bases = ", ".join(base.__name__ for base in _public_bases(value))
        signature = constructor(value)
        yield f"class {name}{f'({bases})' if bases else ''}{plain(signature) if signature else ''}"
        yield from (f"    {line}" for line in members(value).values())
    elif inspect.isroutine(value):
        yield f"{name}{plain(_signature(value))}"
    elif isinstance(value, tuple) and any(inspect.isclass(each) for each in value):
        shown = plain(value) if all(map(_is_public, value)) else "tuple[type[Object], ...]"
        yield f"{name} = {shown}"
    else:
        yield f"{name} = {plain(value)}"


def constructor(cls: Any) -> inspect.Signature | None:
    """Return the promised constructor; without one if a public base has the same."""
    hidden = internal(cls)
    attributes = {name for base in _bases(cls) for name in vars(base)}
    if (
        "__init__" in hidden
        or not attributes & {"__init__", "__new__"}
        or issubclass(cls, Enum)
        or getattr(cls, "_is_protocol", False)
    ):
        return None
    found = _signature(cls, cls.__init__).replace(return_annotation=inspect.Signature.empty)
    found = found.replace(
        parameters=[each for each in found.parameters.values() if each.name not in hidden]
    )
    if "__attrs_attrs__" not in vars(cls):
        return found
    own = {name.lstrip("_") for base in _bases(cls) for name in inspect.get_annotations(base)}
    return found.replace(
        parameters=[parameter for parameter in found.parameters.values() if parameter.name in own]
    )


def members(cls: type) -> dict[str, str]:
    """Return the line of each promised member that no other public class defines."""
    found = {**assigned_attributes(cls), **dict(_of_class(cls))}
    kept = {name: found[name] for name in sorted(found) if name not in internal(cls)}
    if issubclass(cls, Enum):
        return {member.name: f"{member.name} = {member.value!r}" for member in cls} | kept
    return kept


def fields(cls: type) -> list[str]:
    """Return the promised attributes that are parameters of the constructor as well."""
    annotated = {name for base in _bases(cls) for name in inspect.get_annotations(base)}
    parameters = getattr(constructor(cls), "parameters", ())
    return [name for name in parameters if name in annotated]


def _of_class(cls: type) -> Iterator[tuple[str, str]]:
    bases = _bases(cls)[::-1]
    found = {name: value for base in bases for name, value in vars(base).items()}
    annotations = {name: it for base in bases for name, it in inspect.get_annotations(base).items()}
    parameters = getattr(constructor(cls), "parameters", ())
    for name in found | annotations:
        value = found.get(name)
        function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if name.startswith("_") or name in parameters:
            continue
        if inspect.isfunction(function):
            yield name, f"{name}{plain(_signature(function))}"
        elif isinstance(function, property) and function.fget:
            yield name, f"{name}: {plain(inspect.signature(function.fget).return_annotation)}"
        elif name in annotations:
            yield name, f"{name}: {plain(annotations[name])}"


def assigned_attributes(cls: type) -> dict[str, str]:
    """Return the lines of the attributes that methods assign, with the types that they state."""
    found: dict[str, str] = {}
    for base in _bases(cls)[::-1]:
        for method in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(base)))):
            if isinstance(method, ast.FunctionDef):
                found |= {name: type for name, type in _assigned(method) if name not in found}
    return {
        name: f"{name}: {plain(type)}" if type else name
        for name, type in found.items()
        if not name.startswith("_")
    }


def _assigned(method: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    parameters = [*method.args.args, *method.args.kwonlyargs]
    types = {each.arg: ast.unparse(each.annotation) for each in parameters if each.annotation}
    for node in ast.walk(method):
        match node:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name("self"), attr=name)]):
                yield name, types.get(getattr(node.value, "id", ""), "")
            case ast.AnnAssign(target=ast.Attribute(value=ast.Name("self"), attr=name)):
                yield name, ast.unparse(node.annotation)


def _bases(cls: type) -> list[type]:
    """Return the class and its bases of our own that are not public: their members are its own."""
    return [cls, *(base for base in cls.__mro__[1:] if _is_ours(base) and not _is_public(base))]


def _public_bases(cls: type) -> Iterator[type]:
    """Yield the bases of the class, in place of each internal one its own public bases."""
    for base in cls.__bases__:
        if _is_public(base) or not _is_ours(base):
            yield from () if base is object else (base,)
        else:
            yield from filter(_is_public, _public_bases(base))


def internal(cls: type) -> set[str]:
    """Return the members and parameters of the class for the framework itself."""
    return {name for base in _bases(cls) for name in INTERNAL.get(base.__name__, "").split()}


def _is_ours(cls: type) -> bool:
    return cls.__module__.startswith(("actuator.", "generic."))


def _is_public(value: object) -> bool:
    return id(value) in _public_values()


@cache
def _public_values() -> set[int]:
    return {
        id(getattr(import_module(module), name)) for module in modules() for name in names(module)
    }


def _signature(function: Any, hinted: Any = None) -> inspect.Signature:
    """Return the signature with the types alone, without the schemas of `Annotated`."""
    found = inspect.signature(function)
    try:
        hints = get_type_hints(hinted or function)
    except NameError:  # a type that is imported for type checkers only
        return found
    parameters = [
        each
        for parameter in found.parameters.values()
        for each in _each(parameter, hints.get(parameter.name, parameter.annotation))
    ]
    returned = hints.get("return", found.return_annotation)
    if returned is type(None):
        returned = None
    return found.replace(parameters=parameters, return_annotation=returned)


def _each(parameter: inspect.Parameter, hint: Any) -> Iterator[inspect.Parameter]:
    """Yield the parameter; of `**fields: Unpack[...]` each of the fields."""
    if get_origin(hint) is not Unpack:
        yield parameter.replace(annotation=hint)
        return
    [typed] = get_args(hint)
    for name, annotation in get_type_hints(typed).items():
        default = inspect.Parameter.empty if name in typed.__required_keys__ else ...
        kind = inspect.Parameter.KEYWORD_ONLY
        yield inspect.Parameter(name, kind, default=default, annotation=annotation)


def plain(value: Any) -> str:
    """Return a value or an annotation without the modules of its names, which are not public."""
    text = value if isinstance(value, str) else repr(value)
    if inspect.isclass(value):
        text = value.__name__
    elif isinstance(value, inspect.Signature):
        text = str(value)
    for pattern, plain in _PLAIN:
        text = pattern.sub(plain, text)
    return text


if __name__ == "__main__":
    PINNED.write_text(text(), encoding="utf-8")
