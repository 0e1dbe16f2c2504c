"""Objects that do not become ready: their errors are shown, and a drill without hope ends."""

from collections.abc import Callable, Collection, Iterable, Sequence

from generic.testing.drill.evidence import Life, by_error

SHOWN_AFTER_SECONDS = 5.0
HOPELESS_AFTER_SECONDS = 15.0
"""Seconds since the first error of an object that is not ready."""
HOPELESS_WITH_SERVERS_AFTER_SECONDS = 90.0
"""The same where each shoot has an API server, which starts beside its objects."""


def hopeless_after(with_shoot_api: bool) -> float:
    """Return the seconds after which an object with an error will not become ready."""
    return HOPELESS_WITH_SERVERS_AFTER_SECONDS if with_shoot_api else HOPELESS_AFTER_SECONDS


class Stopped(Exception):
    """The drill cannot go on: none of its valid shoots can become ready."""


class Readiness:
    """Decides whether a drill can still expect its shoots to become ready."""

    def __init__(
        self, show: Callable[[Sequence[Life]], None], hopeless: float = HOPELESS_AFTER_SECONDS
    ) -> None:
        """`show` receives objects with errors, each once; `hopeless` is in seconds."""
        self._show = show
        self._hopeless = hopeless
        self._shown: set[str] = set()

    def check(self, lives: Iterable[Life], shoots: Collection[str], now: float) -> None:
        """Show errors, and raise Stopped if each of these shoots has had one for long enough."""
        failing = [
            life
            for life in lives
            if life.shoot in shoots and life.ready is None and life.failed is not None
        ]
        late = [life for life in failing if now - (life.failed or now) >= SHOWN_AFTER_SECONDS]
        if fresh := [life for life in late if life.uid not in self._shown]:
            self._shown.update(life.uid for life in fresh)
            self._show(fresh)
        hopeless = [life for life in late if now - (life.failed or now) >= self._hopeless]
        if {life.shoot for life in hopeless} >= set(shoots):
            raise Stopped(f"No valid shoot can become ready: {'; '.join(_texts(hopeless))}")


def _texts(lives: Iterable[Life]) -> list[str]:
    return [
        f"{len(alike)} {kind}: {alike[0].error}" for (kind, _, _), alike in by_error(lives).items()
    ]
