"""How long an error of an extension lasts before gardenlet shows it on the Shoot. Pure."""

import re
from collections.abc import Iterable, Mapping

from generic.testing.garden.readiness import error_of
from hack.gardenlet.watching import GONE, Version

_NAMED = re.compile(r"\b([A-Z][A-Za-z]+) (shoot--[a-z0-9-]+)/")


def shown_after(seed: Iterable[Version], garden: Iterable[Version]) -> Mapping[str, float]:
    """Return, by kind, the shortest time in seconds from an error of an object to its Shoot's.

    A Shoot shows its errors when its flow ends, which awaits the tasks that already run: the time
    of a kind that fails beside others is an upper limit.
    """
    began: dict[tuple[str, str], float] = {}
    for version in seed:
        meta, kind = version.obj["metadata"], version.obj["kind"]
        if kind not in ("Cluster", "Namespace") and version.event != GONE and error_of(version.obj):
            began.setdefault((kind, meta["namespace"]), version.at)
    shown: dict[tuple[str, str], float] = {}
    for version in garden:
        for error in (version.obj.get("status") or {}).get("lastErrors") or ():
            for key in _NAMED.findall(error["description"]):
                shown.setdefault(key, version.at)
    shortest: dict[str, float] = {}
    for kind, shoot in sorted(began.keys() & shown.keys()):
        lasted = shown[kind, shoot] - began[kind, shoot]
        shortest[kind] = round(min(lasted, shortest.get(kind, lasted)), 0)
    return shortest
