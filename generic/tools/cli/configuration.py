"""`actuator docs` and `actuator validate`: the provider configurations of extensions."""

import json
from collections.abc import Iterable, Sequence
from typing import BinaryIO

import attrs
import click

from actuator.errors import ConfigurationError
from actuator.interface import Actuator
from actuator.meta import Raw
from actuator.provider_config import accepted_versions
from actuator.schema import json_schema, structural
from generic.kube.printable import echo
from generic.manager.registry import Registration
from generic.tools.cli.load import load, load_manager, types_option
from generic.tools.cli.statuses import CheckCommand, No
from generic.tools.config_manifests import examine, places_of
from generic.tools.config_page import config_page

_FORMATS = click.Choice(["markdown", "json-schema", "openapi"])


@click.command()
@click.argument("references", nargs=-1, required=True, metavar="MODULE:OBJECT...")
@types_option
@click.option("--output", "-o", type=_FORMATS, default="markdown", show_default=True)
def docs(references: tuple[str, ...], types: tuple[str, ...], output: str) -> None:
    """Print the documentation of provider configurations.

    Each MODULE:OBJECT is a configuration class, or an extension whose actuators declare some.
    """
    found: dict[type, list[str]] = {}
    for reference in references:
        cls = load(reference)
        if isinstance(cls, type) and attrs.has(cls) and not issubclass(cls, Actuator):
            found.setdefault(cls, [])
            continue
        for registration in _registrations(reference, types):
            if declared := registration.config:
                for version in accepted_versions(declared):
                    found.setdefault(version, []).extend(
                        places_of(registration.kind, registration.types)
                    )
    try:
        schemas = [json_schema(cls) for cls in found]
    except TypeError as error:
        raise ConfigurationError(str(error)) from error
    if output == "markdown":
        echo("\n".join(config_page(cls, places) for cls, places in found.items()), lines=True)
        return
    printed = _openapi(found) if output == "openapi" else _one_schema(schemas)
    echo(json.dumps(printed, indent=2), lines=True)


def _one_schema(schemas: Sequence[Raw]) -> Raw:
    """Return a schema that accepts each of the configurations."""
    if len(schemas) == 1:
        return schemas[0]
    key = "$schema"  # only valid at the root
    parts = [{name: schema[name] for name in schema if name != key} for schema in schemas]
    return {key: schemas[0][key], "anyOf": parts}


def _openapi(classes: Iterable[type]) -> Raw:
    """Return the fragment with the schemas. Raises ConfigurationError for equal names."""
    found: Raw = {}
    for cls in classes:
        if cls.__name__ in found:
            raise ConfigurationError(
                f"{cls.__module__}:{cls.__name__}: another class has the same name in the "
                "fragment; print each extension's fragment separately"
            )
        found[cls.__name__] = structural(cls)
    return {"components": {"schemas": found}}


@click.command(cls=CheckCommand)
@click.argument("references", nargs=-1, required=True, metavar="MODULE:OBJECT...")
@types_option
@click.option(
    "--file",
    "-f",
    "files",
    type=click.File("rb"),
    multiple=True,
    required=True,
    help="Manifests in YAML or JSON; - is standard input.",
)
def validate(
    references: tuple[str, ...], types: tuple[str, ...], files: tuple[BinaryIO, ...]
) -> None:
    """Validate the provider configurations in manifests, without a cluster.

    The command reads Shoots and extension objects, and checks the configurations that the
    extensions MODULE:OBJECT declare. The exit status is 1 if a configuration is invalid, and 3 if
    there is none to check, or a file cannot be read.
    """
    configs = {
        (registration.kind.api_version, registration.kind.name, type): cls
        for reference in references
        for registration in _registrations(reference, types)
        if (cls := registration.config)
        for type in registration.types or ("",)
    }
    valid = invalid = 0
    for element in (item for file in files for item in examine(file, configs)):
        for problem in element.problems or ():
            echo(f"{element.place}: {problem}")
        if element.problems is None:
            echo(
                f"{element.place}: {element.field}: not checked: {element.of} is not served",
                err=True,
            )
        elif not element.problems:
            valid += 1
            echo(f"{element.place}: {element.field}: valid")
        invalid += bool(element.problems)
    if invalid:
        total = valid + invalid
        raise No(f"{invalid} of {total} configurations are invalid; correct the fields")
    if not valid:
        served = ", ".join(sorted(f"{kind} {type}".rstrip() for _, kind, type in configs))
        raise ConfigurationError(f"no configuration to check; these extensions serve {served}")


def _registrations(reference: str, types: tuple[str, ...]) -> Sequence[Registration]:
    """Return the registrations of an extension. Raises ConfigurationError if none has a class."""
    manager = load_manager(reference, types)
    if not any(registration.config for registration in manager.registrations):
        raise ConfigurationError(
            f"{reference}: no actuator declares a configuration; "
            "derive its class from Actuator[KIND, CONFIGURATION]"
        )
    return manager.registrations
