"""The seeds of many drills: the contexts of a file, and the clusters that they select.

Not here: a drill in a seed (`foreign`), its rounds (`all`).
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

import attrs

from actuator.errors import ActuatorError, ApiError, ConfigurationError, NotFound
from actuator.interface import Client
from generic.kube.access import NoKubeconfig
from generic.kube.client import connect
from generic.kube.refusals import explained
from generic.kube.seedidentity import NAMESPACE, read_seed_identity
from generic.testing.garden import NAMESPACES

_AT_ONCE = 10


@attrs.frozen
class ListedSeed:
    """A context, and the identity of its cluster or why it cannot be asked."""

    context: str
    identity: str = ""
    problem: str = ""


def read_contexts(path: Path) -> list[str]:
    """Return the contexts in a file: one a line, without comments (`#`) and empty lines.

    Raises ConfigurationError and OSError.
    """
    try:
        lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except UnicodeDecodeError:
        raise ConfigurationError(f"--contexts {path}: not a text file in UTF-8") from None
    found = [line for line in lines if line and not line.startswith("#")]
    if not found:
        raise ConfigurationError(f"--contexts {path}: no context; write one on each line")
    return found


def survey(kubeconfig: Path, contexts: Sequence[str]) -> list[ListedSeed]:
    """Ask each seed for its identity.

    Raises ConfigurationError without a kubeconfig, or if two contexts are the same cluster.
    """
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        found = list(pool.map(partial(_ask, kubeconfig), contexts))
    known: dict[str, str] = {}
    for seed in found:
        for key in filter(None, (f"context {seed.context}", seed.identity)):
            if key in known:
                raise ConfigurationError(
                    f"the contexts {known[key]} and {seed.context} are the same cluster "
                    f"({seed.identity or 'not reached'}); remove one of them"
                )
            known[key] = seed.context
    return found


def identity_of(client: Client) -> str:
    """Return the identity of a seed; without one, the UID of kube-system. Raises ApiError."""
    with suppress(NotFound):
        if identity := read_seed_identity(client):
            return identity
    return str(client.get(NAMESPACES, NAMESPACE)["metadata"]["uid"])


def _ask(kubeconfig: Path, context: str) -> ListedSeed:
    try:
        client = connect(kubeconfig, context)
        return ListedSeed(context, identity_of(client))
    except NoKubeconfig:
        raise
    except ActuatorError as error:
        problem = str(error)
    except ApiError as error:
        why = explained(error, APIServerUnavailable="check that the server runs")
        problem = f"cannot read the identity of the seed from {client.host}: {why}"
    return ListedSeed(context, problem=problem)
