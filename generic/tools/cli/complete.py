"""Completion of names, namespaces and scenarios in a shell; nothing if the cluster is silent."""

from collections.abc import Callable, Iterable
from contextlib import redirect_stderr
from io import StringIO

import click

from actuator.interface import resource_of
from actuator.v1alpha1 import KINDS
from generic.kube.client import HttpClient
from generic.kube.clusters import NAMESPACES
from generic.library.lookup import find_all

_SECONDS = 3.0
Find = Callable[[click.Context, str], Iterable[str]]


def completed(find: Find) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Return a completion with the names that `find` returns for a context and a beginning."""

    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
        with redirect_stderr(StringIO()):  # it would be text at the prompt, as every error
            try:
                return [name for name in find(ctx, incomplete) if name.startswith(incomplete)]
            except Exception:
                return []

    return complete


def _client(ctx: click.Context) -> HttpClient:
    from generic.tools.cli.development import DevelopmentTarget, select

    target = DevelopmentTarget(
        kubeconfig=ctx.params.get("kubeconfig"), context=ctx.params.get("context")
    )
    return select(target).connect().within(_SECONDS)


@completed
def orphans(ctx: click.Context, _: str) -> Iterable[str]:
    """Return the names of all Orphans."""
    from generic.manager.orphans.ledger import read_orphans

    return [orphan.metadata.name for orphan in read_orphans(_client(ctx))]


@completed
def targets(ctx: click.Context, incomplete: str) -> Iterable[str]:
    """Return all namespaces; after one, the extension objects in it."""
    client = _client(ctx)
    namespace, slash, _ = incomplete.partition("/")
    if not slash:
        return [obj["metadata"]["name"] for obj in client.list(NAMESPACES)]
    kinds = [cls.KIND for cls in KINDS if cls.KIND.namespaced]
    return [
        f"{namespace}/{kind.name}/{item['metadata']['name']}"
        for kind in kinds
        for item in find_all(client.metadata_only(), resource_of(kind), namespace)
    ]


@completed
def scenarios(ctx: click.Context, _: str) -> Iterable[str]:
    """Return the scenarios of the rehearsals."""
    from generic.testing.drill.scenarios import supported
    from generic.tools.cli.load import load_rehearsals

    rehearsal = load_rehearsals(ctx.params.get("rehearsals") or ctx.args)  # not parsed yet
    return [*rehearsal.scenarios, *supported(rehearsal)]
