"""How long gardenlet waits for an object with an error before the Shoot shows the error. Pure.

gardenlet counts from the request, not from the first error (Gardener
`pkg/extensions/customresources.go`). A Shoot shows errors when its flow ends, which awaits the
tasks that already run: the time of a kind that fails beside others is an upper limit.
"""

import re
from collections.abc import Iterable, Mapping

from generic.controller.predicates import TIMESTAMP
from generic.testing.garden.readiness import error_of
from generic.testing.watching import DELETED
from hack.gardenlet.watching import ObjectVersion

_NAMED = re.compile(r"\bwaiting for ([A-Z][A-Za-z]+) (shoot--[a-z0-9-]+)/")
_Kind = tuple[str, str]


def shown_after(
    seed: Iterable[ObjectVersion], garden: Iterable[ObjectVersion]
) -> Mapping[str, float]:
    """Return, by kind, the shortest time in seconds from a request to the error of its Shoot."""
    began = _requested(seed)
    shown = _shown(garden)
    shortest: dict[str, float] = {}
    for kind, shoot in sorted(began.keys() & shown.keys()):
        lasted = shown[kind, shoot] - began[kind, shoot]
        shortest[kind] = round(min(lasted, shortest.get(kind, lasted)), 0)
    return shortest


def _requested(seed: Iterable[ObjectVersion]) -> Mapping[_Kind, float]:
    """Return the time of the request that led to the first error of each kind of a shoot."""
    requests: dict[tuple[str, ...], tuple[str, float]] = {}
    began: dict[_Kind, float] = {}
    for version in seed:
        obj = version.obj
        meta = version.obj["metadata"]
        if obj["kind"] in ("Cluster", "Namespace") or version.event == DELETED:
            continue
        key = obj["kind"], meta.get("namespace", "")
        stamp = (meta.get("annotations") or {}).get(TIMESTAMP, "")
        if requests.get((*key, meta["name"]), ("", 0.0))[0] != stamp:
            requests[*key, meta["name"]] = stamp, version.at
        if error_of(obj):
            began.setdefault(key, requests.get((*key, meta["name"]), ("", version.at))[1])
    return began


def _shown(garden: Iterable[ObjectVersion]) -> Mapping[_Kind, float]:
    """Return the time at which a Shoot first showed an error of each kind."""
    shown: dict[_Kind, float] = {}
    for version in garden:
        for error in (version.obj.get("status") or {}).get("lastErrors") or ():
            for kind, shoot in _NAMED.findall(error["description"]):
                shown.setdefault((kind, shoot), version.at)
    return shown
