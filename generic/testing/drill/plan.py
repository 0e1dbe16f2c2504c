"""What a drill creates for each shoot, in gardenlet's stages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from actuator.errors import ConfigurationError
from actuator.meta import Kind, Raw
from generic.testing.garden.order import AFTERWARDS, CREATION, in_stages

__all__ = ["plan", "spoiled"]


def plan(manifests: Sequence[Raw], kinds: Iterable[Kind]) -> list[list[Raw]]:
    """Secrets and the like first, then the extension objects, stage by stage."""
    served = list(kinds)
    names = {kind.name for kind in served}
    stages = [
        [manifest for manifest in manifests if manifest["kind"] in {kind.name for kind in stage}]
        for stage in in_stages(CREATION, served)
    ]
    others = [manifest for manifest in manifests if manifest["kind"] not in names]
    found = [stage for stage in stages if stage]
    if not found:
        raise ConfigurationError("a shoot of this rehearsal has no extension object")
    return [others + found[0], *found[1:]]


def spoiled(
    stages: Sequence[Sequence[Raw]], kinds: Iterable[Kind], spoil: Callable[[Raw], None]
) -> list[Raw]:
    """One object that `spoil` made one that no extension can accept, and what it needs."""
    names = {kind.name for kind in kinds}
    late = frozenset().union(*AFTERWARDS)
    everything = [manifest for stage in stages for manifest in stage]
    bad = next(m for m in everything if m["kind"] in names - late)
    spoil(bad)
    return [*(m for m in everything if m["kind"] not in names), bad]
