"""An outside that tells of each request, for `actuator explore`; rehearsals alone use it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import attrs

from extensions.local.outside import Outside, Thing


@attrs.frozen
class ObservedOutside(Outside):
    """`before` hears before a request, `after` when it took effect or failed."""

    before: Callable[[str], None]
    after: Callable[[str], None]

    def ensure(self, thing: Thing) -> None:
        """See Outside."""
        with self._heard("ensure"):
            super().ensure(thing)

    def delete(self, id: str, tags: Mapping[str, str]) -> None:
        """See Outside."""
        with self._heard("delete"):
            super().delete(id, tags)

    def find(self, tags: Mapping[str, str]) -> list[Thing]:
        """See Outside."""
        with self._heard("find"):
            return super().find(tags)

    @contextmanager
    def _heard(self, request: str) -> Iterator[None]:
        self.before(f"outside: {request}")
        try:
            yield
        finally:
            self.after(f"outside: {request}")
