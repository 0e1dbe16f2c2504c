"""Hostile inputs that live and go, each watched and judged from its beginning to its end."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from actuator.cluster import FORCE_DELETION, parse_bool
from actuator.errors import ApiError, NotFound
from actuator.interface import Resource, resource_of
from actuator.meta import ForceSource, Object, Raw
from generic.kube.client import JSON_PATCH, MERGE_PATCH, HttpClient, path_of
from generic.kube.clusters import CLUSTERS
from generic.testing.drill.names import Names
from generic.testing.garden import NAMESPACES
from tests.adversary.inputs import CLASSES, Input, input_of
from tests.adversary.judge import (
    GRACE,
    KEEPS,
    PATIENCE,
    Report,
    is_blocked,
    is_configuration,
    is_shown,
    leaks,
    problems_of,
    read,
    said,
)
from tests.adversary.values import BUDGET

__all__ = ["Lives"]

_REFUSED = (400, 413, 422, 500)
_SECRETS = Resource("v1", "secrets")
_Key = tuple[str, str, str]


class Feed:
    """The latest state of every object of all kinds: one watch for each kind, however many live."""

    def __init__(self, client: HttpClient, classes: Iterable[type[Object]], report: Report) -> None:
        self._client = client
        self._report = report
        self._latest: dict[_Key, Raw | None] = {}
        self._changed = threading.Condition()
        self._over = threading.Event()
        for cls in classes:
            resource = resource_of(cls.KIND)
            threading.Thread(target=self._follow, args=(resource,), daemon=True).start()

    def created(self, key: _Key, obj: Raw) -> None:
        """Keep the answer of the API server; the watch may have been faster."""
        with self._changed:
            self._latest.setdefault(key, obj)

    def wait(self, key: _Key, reached: Callable[[Raw | None], Any], seconds: float) -> Raw | None:
        """Waits at most so long; returns the state then, None where the object is gone."""
        with self._changed:
            self._changed.wait_for(lambda: reached(self._latest[key]), seconds)
            return self._latest[key]

    def forget(self, key: _Key) -> None:
        """Drop the object; no life waits for it any more."""
        with self._changed:
            self._latest.pop(key, None)

    def close(self) -> None:
        """Watch no more: each thread ends with its stream."""
        self._over.set()

    def _follow(self, resource: Resource) -> None:
        while not self._over.is_set():
            with suppress(ApiError):
                query = {"watch": "true"}
                with self._client.stream(path_of(resource), query, read_timeout=3600) as lines:
                    for line in lines:
                        self._take(resource.plural, line)
            self._over.wait(0.2)

    def _take(self, plural: str, line: bytes) -> None:
        event = read(line)
        obj: Raw = event["object"]
        key = (plural, obj["metadata"].get("namespace", ""), obj["metadata"].get("name", ""))
        gone = event["type"] == "DELETED"
        if gone and leaks(line):
            self._report.complain("secret", key, "a part of a Secret is in the object")
        with self._changed:
            self._latest[key] = None if gone else obj
            self._changed.notify_all()


class Lives:
    """Inputs that are created, observed and deleted; each broken rule is reported."""

    def __init__(
        self,
        client: HttpClient,
        names: Names,
        seed: int,
        report: Report,
        only: type[Object] | None = None,
    ) -> None:
        self.uids: set[str] = set()
        self.owed: dict[str, str] = {}
        """By uid of an object that has to have an Orphan, the input."""
        self._client = client
        self._names = names
        self._seed = seed
        self._report = report
        self._only = only
        self._feed = Feed(client, [only] if only else CLASSES, report)

    def close(self) -> None:
        """Watch no more. To be called after the last input."""
        self._feed.close()

    def live(self, family: str, number: int) -> None:
        """One input from its beginning to its end."""
        one = input_of(self._seed, family, number, self._names, self._only)
        key = (one.kind.plural, one.namespace if one.kind.namespaced else "", one.name)
        try:
            self._create(one, key)
            self._judge(one, key)
            self._report.counts["lived"] += 1
        except ApiError as error:
            self._report.counts["refused" if error.status in _REFUSED else "no answer"] += 1
        finally:
            self._feed.forget(key)
            with suppress(ApiError):  # gardenlet's last step; namespaces may stay
                self._client.delete(CLUSTERS, one.namespace)

    def _create(self, one: Input, key: _Key) -> None:
        meta = {"name": one.namespace, "labels": {"gardener.cloud/role": "shoot"}}
        self._post(NAMESPACES, "", json.dumps({"metadata": meta}))
        self._post(CLUSTERS, "", one.cluster)
        self._post(_SECRETS, one.namespace, one.secret)
        created = self._post(resource_of(one.kind), key[1], one.manifest)
        self.uids.add(created["metadata"]["uid"])
        self._feed.created(key, created)
        if one.status:
            added = f'[{{"op":"add","path":"/status","value":{one.status}}}]'
            self._patch(resource_of(one.kind), key, added, JSON_PATCH, "status")

    def _judge(self, one: Input, key: _Key) -> None:
        served = one.served and not one.rush
        if served:
            shown = self._feed.wait(key, lambda obj: is_shown(one, obj), PATIENCE)
            for rule, problem in problems_of(one, shown):
                self._report.complain(rule, one, problem)
        if one.forced:
            self._force(one, key)
        held = self._delete(one, key)
        if one.served and not one.forced and not one.place.endswith("hangs"):
            obj = self._feed.wait(key, lambda obj: is_blocked(one, obj), PATIENCE)
            keeps = (one.deep or one.place in KEEPS) and not _forces_itself(one)
            if held and obj is None and keeps:
                self._report.complain("kept", one, "the object is gone after a normal deletion")
            elif not is_blocked(one, obj):
                self._report.complain(
                    "shown", one, f"nothing is shown of the deletion: {said(obj)}"
                )
            elif obj is not None and one.deep and not is_configuration(obj):
                self._report.complain(
                    "shown", one, f"ERR_CONFIGURATION_PROBLEM is missing: {said(obj)}"
                )
        if not one.forced:
            self._force(one, key)
        forced = one.kind.force_from is not ForceSource.NONE
        limit = BUDGET + GRACE if forced else PATIENCE
        if (obj := self._feed.wait(key, lambda obj: obj is None, limit)) is not None:
            self._report.complain("budget", one, f"still there after {limit:g} s: {said(obj)}")
        elif held and forced and (one.deep or one.place.startswith("external")):
            self.owed[held] = str(one)

    def _delete(self, one: Input, key: _Key) -> str:
        """Deletes; the uid where our finalizer holds the object from then on, else ""."""
        path = path_of(resource_of(one.kind), key[1], key[2])
        answer = read(self._client.send("DELETE", path))
        found = answer.get("metadata", {})
        return found["uid"] if one.kind.finalizer in found.get("finalizers", ()) else ""

    def _force(self, one: Input, key: _Key) -> None:
        """Forces the deletion as the kind requires; corrects objects that cannot be forced."""
        meta = {"annotations": {FORCE_DELETION: "true"}}
        resource = resource_of(one.kind)
        patch: Raw = {"metadata": meta}
        if one.kind.force_from is ForceSource.SHOOT:
            shoot = {"metadata": {**meta, "deletionTimestamp": "2020-01-01T00:00:00Z"}}
            resource = CLUSTERS
            key = ("", "", one.namespace)
            patch = {"spec": {"shoot": shoot}}
        elif one.kind.force_from is ForceSource.NONE:
            wanted = {**json.loads(one.healthy)["spec"], "class": "shoot", "providerConfig": None}
            odd = dict.fromkeys(read(one.manifest)["spec"])
            patch = {"metadata": {"annotations": None}, "spec": {**odd, **wanted}}
        with suppress(NotFound):
            self._patch(resource, key, json.dumps(patch))

    def _post(self, resource: Resource, namespace: str, text: str) -> Raw:
        path = path_of(resource, namespace)
        return read(self._client.send("POST", path, body=text.encode(errors="replace")))

    def _patch(
        self, at: Resource, key: _Key, text: str, type_: str = MERGE_PATCH, subresource: str = ""
    ) -> None:
        path = path_of(at, key[1], key[2], subresource)
        body = text.encode(errors="replace")
        self._client.send("PATCH", path, body=body, content_type=type_)


def _forces_itself(one: Input) -> bool:
    """Whether the generator happened to write the annotation that forces its deletion."""
    annotations = read(one.manifest)["metadata"].get("annotations") or {}
    value = annotations.get(FORCE_DELETION, "")
    return one.kind.force_from is ForceSource.OBJECT and parse_bool(value) is True
