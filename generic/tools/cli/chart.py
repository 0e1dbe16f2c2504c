"""`actuator chart` and `actuator image`: write the files that install an extension.

A Helm chart and a registration, and a Dockerfile from the templates in `packaging/image`.
"""

import re
from collections.abc import Mapping
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any, BinaryIO

import click

from actuator.errors import ConfigurationError
from actuator.meta import Raw
from generic.kube.printable import echo
from generic.tools.cli.load import load_manager, types_option
from generic.tools.config_manifests import documents
from generic.tools.packaging.admission import admission_files, admission_options, registration
from generic.tools.packaging.chart import (
    OPTIONS,
    ExtensionChart,
    chart_files,
    chart_name,
    filled,
    options_for,
    packed,
    yaml_text,
)
from generic.tools.packaging.registration import (
    controller_registration,
    controller_resources,
    operator_extension,
)

_FOLDER = click.Path(path_type=Path, file_okay=False)
_LATE = click.Choice(["BeforeKubeAPIServer", "AfterKubeAPIServer"])
_LATEST = click.Choice(["BeforeKubeAPIServer", "AfterKubeAPIServer", "AfterWorker"])
_CLUSTERS = ("shoot", "seed", "garden")
_BASE = re.compile(r"^FROM (.+) AS (base|go)$", re.MULTILINE)
_CHARTS = "registry.example.org/charts"


def _pair(_ctx: click.Context, _option: click.Parameter, values: tuple[str, ...]) -> list[Any]:
    pairs = [value.partition("/")[::2] for value in values]
    if any(not kind or not type for kind, type in pairs):
        raise click.BadParameter("expected KIND/TYPE, for example Worker/aws")
    return pairs


def _mapping(_ctx: click.Context, _option: click.Parameter, file: BinaryIO | None) -> Any:
    if file is None:
        return {}
    with file:  # click does not close it after an error
        found = [*documents(file)]
    if len(found) != 1 or not isinstance(found[0], dict):
        raise ConfigurationError(f"{file.name}: expected a YAML mapping")
    return found[0]


@click.command()
@click.argument("extension")
@click.option(
    "--output",
    type=_FOLDER,
    required=True,
    help="Folder to write into; existing files are replaced.",
)
@click.option("--name", default="", help="Name of the extension; default: from the module.")
@types_option
@click.option("--version", default="0.1.0", show_default=True, help="Version of chart and image.")
@click.option("--image", default="", help="Image: REPOSITORY[:TAG] or REPOSITORY@DIGEST.")
@click.option(
    "--oci-repository",
    "oci_reference",
    default="",
    help="OCI reference to the pushed chart; default: the chart is embedded.",
)
@click.option(
    "--admission",
    is_flag=True,
    help="Write the charts of an admission, which runs against the garden.",
)
@click.option("--operator", is_flag=True, help="Write an Extension for gardener-operator.")
@click.option("--secondary", multiple=True, callback=_pair, help="KIND/TYPE that is not primary.")
@click.option("--reconcile-timeout", type=click.FloatRange(min=1), help="Seconds for Extensions.")
@click.option("--lifecycle-reconcile", type=_LATEST, help="When Extensions are reconciled.")
@click.option("--lifecycle-delete", type=_LATE, help="When Extensions are deleted.")
@click.option("--lifecycle-migrate", type=_LATE, help="When Extensions are migrated.")
@click.option(
    "--workerless",
    "workerless_supported",
    is_flag=True,
    help="Extensions also support workerless shoots.",
)
@click.option("--auto-enable", multiple=True, type=click.Choice(["shoot", "seed"]))
@click.option("--cluster-compatibility", multiple=True, type=click.Choice(_CLUSTERS))
@click.option(
    "--continuous-endpoint-update/--no-continuous-endpoint-update",
    default=None,
    help="Whether gardenlet updates the endpoints of SelfHostedShootExposures.",
)
@click.option(
    "--deployment",
    "settings",
    type=click.File("rb"),
    callback=_mapping,
    help="YAML file: policy, seedSelector, values, injectGardenKubeconfig, resources, "
    "runtimeClusterValues, admission.",
)
def chart(extension: str, output: Path, name: str, types: tuple[str, ...], **given: Any) -> None:
    """Write the Helm chart and the registration of EXTENSION (MODULE:OBJECT).

    The chart has the minimum RBAC of the extension. The registration is
    controllerregistration.yaml for the garden, or extension.yaml for gardener-operator. With
    --admission, admission.yaml is a section for --deployment.
    """
    chosen = name or chart_name(extension, "-admission" if given["admission"] else "")
    options = admission_options(chosen) if given["admission"] else options_for(chosen)
    manager = load_manager(extension, types, options)
    image = given["image"] or f"registry.example.org/{chosen}"
    if not given["image"]:
        click.echo(
            f"--image is not set: the chart uses {image}; set image in values.yaml", err=True
        )
    description = ExtensionChart(
        name=chosen,
        extension=extension,
        image=image,
        version=given["version"],
        types=types,
        extension_classes=("seed", "shoot") if "seed" in given["cluster_compatibility"] else (),
    )
    if given["admission"]:
        files = admission_files(manager, description)
        section = registration(manager, description, given["oci_reference"] or _CHARTS)
        registered = {"admission.yaml": yaml_text(section)}
    else:
        files = chart_files(manager, description)
        oci_reference = given["oci_reference"]
        in_registry = {"ociRepository": {"ref": oci_reference}}
        helm = in_registry if oci_reference else {"rawChart": packed(chosen, files)}
        resources = controller_resources(manager, given["secondary"], _fields(given))
        wanted = chosen, resources, helm, given["settings"]
        registered = _registered(*wanted, operator=given["operator"])
    written = {f"{chosen}/{file}": text for file, text in files.items()}
    for file, text in {**written, **registered}.items():
        _write(output / file, text)
        click.echo(output / file)


def _fields(given: Mapping[str, Any]) -> dict[str, Raw]:
    """Return the fields of registered kinds that options set, by Gardener's names."""
    seconds = given["reconcile_timeout"]
    update = given["continuous_endpoint_update"]
    lifecycle = {item: given[f"lifecycle_{item}"] for item in ("reconcile", "delete", "migrate")}
    extension = {
        "reconcileTimeout": seconds and f"{seconds:g}s",
        "lifecycle": {item: moment for item, moment in lifecycle.items() if moment},
        "workerlessSupported": given["workerless_supported"],
        "autoEnable": list(given["auto_enable"]),
        "clusterCompatibility": list(given["cluster_compatibility"]),
    }
    return {
        "Extension": {name: value for name, value in extension.items() if value},
        "SelfHostedShootExposure": {} if update is None else {"continuousEndpointUpdate": update},
    }


def _registered(
    name: str, resources: list[Raw], helm: Raw, settings: Raw, *, operator: bool
) -> dict[str, str]:
    if operator:
        return {"extension.yaml": yaml_text(operator_extension(name, resources, helm, settings))}
    if resources:
        documents = controller_registration(name, resources, helm, settings)
        return {"controllerregistration.yaml": yaml_text(*documents)}
    click.echo("the extension serves no Gardener kind: no registration is written", err=True)
    return {}


@click.command()
@click.argument("extension")
@click.option("--output", type=_FOLDER, required=True, help="Project folder; replaces its files.")
@click.option("--extra", "extras", multiple=True, help="Package extra to install, such as aws.")
@click.option("--helm", is_flag=True, help="Include helm, for an extension that renders charts.")
@click.option("--require-digests", is_flag=True, help="Fail if a base image has no digest.")
def image(
    extension: str, output: Path, extras: tuple[str, ...], helm: bool, require_digests: bool
) -> None:
    """Write a Dockerfile for EXTENSION (MODULE:OBJECT) into the folder of its project."""
    load_manager(extension, ("any",), OPTIONS)
    if not all(re.fullmatch(r"[\w.-]+", extra, re.ASCII) for extra in extras):
        raise click.BadParameter("expected an extra, such as aws", param_hint="--extra")
    values = {"EXTENSION": extension, "HELM": "yes" if helm else "no"}
    values["EXTRAS"] = f"[{','.join(extras)}]" if extras else ""
    for template in package_files("generic.tools.packaging").joinpath("image").iterdir():
        path = output / template.name
        text = _with_bases(filled(template.read_text(encoding="utf-8"), values), path)
        if require_digests:
            _check_digests(text, path, helm=helm)
        _write(path, text)
        echo(path)


def _with_bases(text: str, path: Path) -> str:
    """Return the Dockerfile with the base images of the one that it replaces."""
    former = path.read_text(encoding="utf-8") if path.is_file() else ""
    bases = {stage: base for base, stage in _BASE.findall(former)}
    return _BASE.sub(lambda base: f"FROM {bases.get(base[2], base[1])} AS {base[2]}", text)


def _check_digests(text: str, path: Path, *, helm: bool) -> None:
    """Raise ConfigurationError for a base image that is used and has no digest."""
    for base, stage in _BASE.findall(text):
        if (helm or stage == "base") and not re.search(r"@sha256:[0-9a-f]{64}$", base):
            raise ConfigurationError(
                f"{path}: FROM {base} AS {stage}: no digest; append @sha256:DIGEST, which "
                f"`docker buildx imagetools inspect {base}` prints"
            )


def _write(path: Path, text: str) -> None:
    """Write a file and its folders. Raises ConfigurationError if that fails."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"cannot write {path}: {error.strerror}") from error
