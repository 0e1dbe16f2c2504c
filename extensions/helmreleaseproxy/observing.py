"""A helm that tells of each run, for `actuator explore`; rehearsals alone use it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from actuator import Context
from extensions.helmreleaseproxy.helm import Answer, Helm
from generic.kube.inline_kubeconfig import InlineKubeconfig


@attrs.frozen
class ObservedHelm(Helm):
    """`before` hears before a helm runs, `after` when it took effect or failed."""

    before: Callable[[str], None]
    after: Callable[[str], None]

    def run(
        self, ctx: Context, target: InlineKubeconfig, arguments: Sequence[str], values: str = ""
    ) -> Answer:
        """See Helm."""
        self.before(f"helm: {arguments[0]}")
        try:
            return super().run(ctx, target, arguments, values)
        finally:
            self.after(f"helm: {arguments[0]}")
