"""One input: objects to create, as JSON text. Pure: seed, family and number say all of it."""

from __future__ import annotations

import json
import random
from typing import ClassVar

import attrs

from actuator.cluster import FORCE_DELETION
from actuator.meta import (
    ClusterNeed,
    ConditionedStatus,
    DefaultSpec,
    ForceSource,
    Kind,
    Object,
    Raw,
    ReadyReasons,
)
from actuator.v1alpha1 import KINDS
from generic.controller.predicates import OPERATION, TIMESTAMP
from generic.kube.crds import crd
from generic.testing.drill.names import Names
from tests.adversary import texts
from tests.adversary.values import plan

__all__ = ["CLASSES", "MARK", "Global", "Input", "input_of", "plain", "rng_of"]

MARK = "Zq7/K+x9%Wv=Lb3Tn5?Rj8"
"""Stands in every Secret; no part of it may leave."""
_UNREADABLE = 215
_READABLE = 185
"""Levels from which an object has to count as unreadable, and up to which it must not."""
_PLACES = (
    *("cloudProfile", "seed", "shoot", "shoot/metadata", "shoot/metadata/annotations"),
    *("shoot/metadata/name", "shoot/spec", "shoot/spec/region", "shoot/spec/hibernation"),
    *("shoot/spec/hibernation/enabled", "shoot/spec/kubernetes", "shoot/spec/dns"),
    *("shoot/spec/dns/providers", "shoot/spec/networking", "shoot/spec/networking/pods"),
    *("shoot/status", "shoot/status/lastOperation", "shoot/status/technicalID"),
    *("shoot/status/networking", "shoot/status/networking/pods", "shoot/status/hibernated"),
)


@attrs.define(kw_only=True)
class Global(Object):
    """Of no namespace, forced by its own annotation, reporting by a condition Ready."""

    KIND: ClassVar[Kind] = Kind(
        name="Global",
        plural="globals",
        group="adversary.actuator.extensions.gardener.cloud",
        finalizer="adversary.actuator.extensions.gardener.cloud/global",
        namespaced=False,
        cluster=ClusterNeed.NEVER,
        force_from=ForceSource.OBJECT,
        has_operation_annotation=False,
        ready=ReadyReasons(),
    )
    spec: DefaultSpec = attrs.field(factory=DefaultSpec)
    status: ConditionedStatus = attrs.field(factory=ConditionedStatus)


CLASSES: tuple[type[Object], ...] = (*KINDS, Global)
_SCHEMAS = {cls: crd(cls)["spec"]["versions"][0]["schema"]["openAPIV3Schema"] for cls in CLASSES}
_FORCED = [cls for cls in CLASSES if cls.KIND.force_from is not ForceSource.NONE]


@attrs.frozen(kw_only=True, str=False)
class Input:
    """An object to create, and its life; texts are JSON."""

    number: int
    kind: Kind
    namespace: str
    name: str
    manifest: str
    healthy: str
    """The manifest as it should have been."""
    cluster: str
    secret: str
    status: str = ""
    place: str = ""
    """The place of the misbehaviour: "delete returns"; empty: none."""
    served: bool = True
    rush: bool = False
    """Whether it is deleted before the first reconciliation."""
    forced: bool = False
    """Whether its deletion is forced from the beginning."""
    held: bool = False
    """Whether it has our finalizer from the beginning."""

    def __str__(self) -> str:
        return f"--only {self.number} ({self.kind.name}{self.place and f', {self.place}'})"

    @property
    def deep(self) -> bool | None:
        """Whether it has to count as unreadable; None where it may: a status can be replaced."""
        if texts.depth(self.status) > _READABLE:
            return None
        return _is_deep(self.manifest)

    @property
    def unreadable(self) -> bool | None:
        """The same of the object with its Cluster."""
        needed = self.kind.cluster is not ClusterNeed.NEVER
        both = (self.deep, _is_deep(self.cluster) if needed else False)
        return True if True in both else None if None in both else False


def _is_deep(text: str) -> bool | None:
    levels = texts.depth(text)
    return None if _READABLE < levels < _UNREADABLE else levels >= _UNREADABLE


def rng_of(seed: int, family: str, number: int) -> random.Random:
    """The random numbers of one input."""
    return random.Random(f"{seed}-{family}-{number}")


def input_of(
    seed: int, family: str, number: int, names: Names, only: type[Object] | None = None
) -> Input:
    """The input of this number, in a namespace of its own, of one kind `only` if that is given."""
    rng = rng_of(seed, family, number)
    hostile = family == "objects"
    place = "" if hostile else plan(rng_of(seed, family, number))[0]
    classes = CLASSES if hostile else _FORCED
    cls = only or rng.choice(classes)
    shoot = names.shoot(f"{family}-{number}", "eu-1")
    served = not hostile or rng.random() < 0.85
    held = served and rng.random() < 0.4
    secret = {"mark": MARK, "other": texts.string(rng)}
    meta: Raw = {"name": shoot.technical_id, "finalizers": [cls.KIND.finalizer] if held else []}
    if cls.KIND.namespaced:
        meta["namespace"] = shoot.technical_id
    meta["annotations"] = _annotations(rng) if hostile else {}
    if place.startswith("migrate"):
        meta["annotations"] = {OPERATION: "migrate", TIMESTAMP: "2020-01-01T00:00:00Z"}
    fixed = {"type": json.dumps(names.type if served else "other"), "class": '"shoot"'}
    if hostile and rng.random() < 0.7:
        fixed["providerConfig"] = texts.document(rng)
    known = rng.random() < 0.7
    reference = {"name": "secret", "namespace": shoot.technical_id} if known else None
    manifest = _manifest(cls, meta, rng if hostile else _Plain(0), fixed, reference)
    quiet = meta["annotations"].get(OPERATION) == "wait-for-state"
    rush = rng.random() < 0.3
    odd_status = hostile and rush and cls in KINDS and cls in _FORCED
    return Input(
        number=number,
        kind=cls.KIND,
        namespace=shoot.technical_id,
        name=shoot.technical_id,
        manifest=manifest,
        healthy=plain(
            cls, names.type if served else "other", shoot.technical_id, shoot.technical_id
        ),
        cluster=_cluster(shoot.cluster(), rng, hostile=hostile),
        secret=json.dumps({"metadata": {"name": "secret"}, "stringData": secret}),
        status=_status(rng) if odd_status else "",
        place=place,
        served=served and not quiet,
        rush=rush,
        forced=rng.random() < 0.5,
        held=held,
    )


def plain(cls: type[Object], type_: str, name: str, namespace: str) -> str:
    """A healthy object, with the required fields of its kind."""
    meta = {"name": name} | ({"namespace": namespace} if cls.KIND.namespaced else {})
    secret = {"name": "secret", "namespace": namespace}
    fixed = {"type": json.dumps(type_), "providerConfig": "{}"}
    return _manifest(cls, meta, _Plain(0), fixed, secret)


def _manifest(
    cls: type[Object], meta: Raw, rng: random.Random, fixed: dict[str, str], secret: Raw | None
) -> str:
    spec = _SCHEMAS[cls]["properties"]["spec"]
    if secret and "secretRef" in spec["properties"]:
        fixed = {**fixed, "secretRef": json.dumps(secret)}
    head = {"apiVersion": cls.KIND.api_version, "kind": cls.KIND.name, "metadata": meta}
    return f'{json.dumps(head)[:-1]},"spec":{texts.conforming(spec, rng, **fixed)}}}'


class _Plain(random.Random):
    """Random numbers for inputs to accept: no field that is not required."""

    def random(self) -> float:
        return 0.99


def _annotations(rng: random.Random) -> dict[str, str]:
    odd = {json.loads(texts.string(rng))[:9000] for _ in "1234"}
    values = sorted(item.encode(errors="replace").decode() for item in odd)
    asked = rng.choice(("", "migrate", "restore", "reconcile", "wait-for-state", *values))
    keys = rng.sample((TIMESTAMP, FORCE_DELETION, "a/b"), rng.randrange(4))
    return {OPERATION: asked} | {key: rng.choice(values) for key in keys}


def _cluster(manifest: Raw, rng: random.Random, *, hostile: bool) -> str:
    """The Cluster, with anything in one place of its spec."""
    if not hostile or rng.random() < 0.6:
        return json.dumps(manifest)
    *way, last = rng.choice(_PLACES).split("/")
    at = manifest["spec"]
    for step in way:
        at = at.setdefault(step, {})
    at[last] = "@odd@"
    odd = rng.choice((texts.document, texts.value))(rng)
    return json.dumps(manifest).replace('"@odd@"', odd)


def _status(rng: random.Random) -> str:
    return f'{{"providerStatus":{texts.document(rng)},"state":{texts.document(rng)}}}'
