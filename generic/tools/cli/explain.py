"""`actuator explain`: why an object, or the objects in a namespace, are stuck."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import click

from actuator.errors import ActuatorError, ConfigurationError
from actuator.meta import Kind
from actuator.v1alpha1 import KINDS
from generic.kube.access import NoKubeconfig
from generic.kube.client import connect
from generic.kube.clock import SystemClock
from generic.kube.plain import plain
from generic.tools.cli import complete
from generic.tools.cli.development import DevelopmentTarget, select
from generic.tools.cli.load import load_kind, output_option, print_as, with_flags
from generic.tools.explain import Explanation, Overview, overview
from generic.tools.explain import explain as explain_object
from generic.tools.explain.garden import LandscapeClients, explain_shoot
from generic.tools.explain.shoot import SHOOT, ShootExplanation

_VERSION = 2
"""Version of the JSON format: increased when a field is removed or changes its meaning."""
Found = Explanation | Overview | ShootExplanation
_GARDEN = "GARDEN_KUBECONFIG"
"""The variable that Gardener sets in pods with access to the garden."""


@click.command()
@click.argument(
    "targets",
    nargs=-1,
    required=True,
    metavar="NAMESPACE[/KIND/NAME]...",
    shell_complete=complete.targets,
)
@with_flags("kubeconfig", "context")
@click.option("--kind", "own", multiple=True, metavar="MODULE:CLASS", help="Additional kind.")
@click.option("--extension", metavar="MODULE:OBJECT", help="Show the objects that it would strip.")
@click.option("--type", "types", multiple=True, help="Type, if --extension is an Actuator.")
@click.option(
    "--garden-kubeconfig",
    type=click.Path(path_type=Path, dir_okay=False),
    envvar=_GARDEN,
    help=f"Path of the garden's kubeconfig, for a Shoot. Default: {_GARDEN}.",
)
@output_option
def explain(
    targets: tuple[str, ...],
    own: tuple[str, ...],
    extension: str | None,
    types: tuple[str, ...],
    garden_kubeconfig: Path | None,
    output: str,
    **seed: Any,
) -> None:
    """Explain why an object is stuck: next operation, blockers, and effects of a force deletion.

    The command only reads from the API server. The target of a cluster-scoped kind is KIND/NAME.
    That of a Shoot is NAMESPACE/shoot/NAME in the garden; --kubeconfig selects its seed. With
    several targets, JSON and YAML have a list of items. `actuator stuck` finds targets.
    """
    given = select(DevelopmentTarget(extension=extension, types=types, **seed))
    registrations = given.manager().registrations if given.extension else None
    classes = [
        *KINDS,
        *map(load_kind, own),
        *(registration.cls for registration in registrations or ()),
    ]
    kinds = [cls.KIND for cls in dict.fromkeys(classes)]
    parsed = [_parse(target, [*kinds, SHOOT]) for target in dict.fromkeys(targets)]
    client = cache(given.connect)
    now = SystemClock().now()

    def explained(namespace: str, kind: Kind | None, name: str) -> Found:
        if kind is SHOOT:
            landscape = _landscape(garden_kubeconfig, given)
            return explain_shoot(landscape, namespace, name, now, kinds, registrations)
        if kind is None:
            return overview(client(), kinds, namespace, now, registrations or ())
        return explain_object(client(), kind, namespace, name, now, registrations)

    found = []
    problems = []
    for item in parsed:
        try:
            found.append(explained(*item))
        except ActuatorError as error:  # the others are explained
            where = "" if item[1] is SHOOT else f"cluster {client().host}: "
            problems.append(f"{where}{error}")
    _show(found, output, several=len(parsed) > 1)
    if problems:
        raise ActuatorError("; ".join(problems))


def _parse(target: str, kinds: Sequence[Kind]) -> tuple[str, Kind | None, str]:
    """Return namespace, kind (None for all) and name. Raises UsageError."""
    match target.split("/"):
        case [namespace] if namespace:
            return namespace, None, ""
        case [word, name] if word and name:
            kind = _kind(word, kinds)
            if not kind.namespaced:
                return "", kind, name
            raise click.UsageError(f"{kind.name} is a namespaced kind: use NAMESPACE/{word}/{name}")
        case [namespace, word, name] if namespace and word and name:
            kind = _kind(word, kinds)
            return namespace if kind.namespaced else "", kind, name
    raise click.UsageError(f"{target!r}: expected NAMESPACE or NAMESPACE/KIND/NAME")


def _kind(word: str, kinds: Sequence[Kind]) -> Kind:
    """Return the kind by name, plural or short name, as in kubectl. Raises UsageError."""
    for kind in kinds:
        if word.lower() in (kind.name.lower(), kind.plural, *kind.short_names):
            return kind
    known = ", ".join(kind.name for kind in kinds)
    raise click.UsageError(f"unknown kind {word!r}; use one of {known}, or add yours with --kind")


def _landscape(garden_kubeconfig: Path | None, seed: DevelopmentTarget) -> LandscapeClients:
    """Return clients of garden and seed. Raises ConfigurationError without a garden."""
    if garden_kubeconfig is None:
        raise click.UsageError(f"a Shoot is in the garden: set --garden-kubeconfig or {_GARDEN}")
    try:
        garden = connect(garden_kubeconfig)
    except NoKubeconfig as error:
        why = error.message.partition("; ")[0]
        raise ConfigurationError(f"{why}; set --garden-kubeconfig or {_GARDEN}") from None
    try:
        return LandscapeClients(garden, seed.connect())
    except ConfigurationError as error:
        return LandscapeClients(garden, None, error.message.partition("; ")[0])


def _show(found: Sequence[Found], output: str, *, several: bool) -> None:
    if output != "table":
        for data in [{"items": found}] if several else map(plain, found):
            print_as(output, {"version": _VERSION, **data})
        return
    from generic.tools.cli.explain_page import page, summary
    from generic.tools.cli.screen import Screen
    from generic.tools.cli.shoot_page import shoot_page

    for item in found:
        if isinstance(item, ShootExplanation):
            Screen().print(shoot_page(item))
        else:
            Screen().print(page(item) if isinstance(item, Explanation) else summary(item))
