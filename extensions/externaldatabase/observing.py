"""Traffic that tells of each request, for `actuator explore`; rehearsals alone use it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from extensions.externaldatabase.server import Traffic


class ObservedTraffic(Traffic):
    """`before` hears before a request, `after` when it took effect or failed."""

    def __init__(
        self, per_second: float, before: Callable[[str], None], after: Callable[[str], None]
    ) -> None:
        super().__init__(per_second)
        self._before = before
        self._after = after

    @contextmanager
    def request(self, what: str) -> Iterator[None]:
        """See Traffic."""
        with super().request(what):
            self._before(what)
            try:
                yield
            finally:
                self._after(what)
