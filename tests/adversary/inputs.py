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

__all__ = ["CLASSES", "MARK", "Global", "Input", "dice_of", "input_of", "plain"]

MARK = "Zq7/K+x9%Wv=Lb3Tn5?Rj8"
"""Stands in every Secret; no part of it may leave."""
_UNREADABLE, _READABLE = 215, 185
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
    """What is created, and how it goes; texts are JSON."""

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
    """Where the actuator misbehaves: "delete returns"; empty: nowhere."""
    served: bool = True
    rush: bool = False
    """Whether it is deleted before anybody has looked at it."""
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


def dice_of(seed: int, family: str, number: int) -> random.Random:
    """The dice of one input."""
    return random.Random(f"{seed}-{family}-{number}")


def input_of(
    seed: int, family: str, number: int, names: Names, only: type[Object] | None = None
) -> Input:
    """The input of this number, in a namespace of its own, of one kind `only` if that is given."""
    dice = dice_of(seed, family, number)
    hostile = family == "objects"
    place = "" if hostile else plan(dice_of(seed, family, number))[0]
    classes = CLASSES if hostile else _FORCED
    cls = only or dice.choice(classes)
    shoot = names.shoot(f"{family}-{number}", "eu-1")
    served = not hostile or dice.random() < 0.85
    held = served and dice.random() < 0.4
    secret = {"mark": MARK, "other": texts.string(dice)}
    meta: Raw = {"name": shoot.technical_id, "finalizers": [cls.KIND.finalizer] if held else []}
    if cls.KIND.namespaced:
        meta["namespace"] = shoot.technical_id
    meta["annotations"] = _annotations(dice) if hostile else {}
    if place.startswith("migrate"):
        meta["annotations"] = {OPERATION: "migrate", TIMESTAMP: "2020-01-01T00:00:00Z"}
    fixed = {"type": json.dumps(names.type if served else "other"), "class": '"shoot"'}
    if hostile and dice.random() < 0.7:
        fixed["providerConfig"] = texts.document(dice)
    known = dice.random() < 0.7
    reference = {"name": "secret", "namespace": shoot.technical_id} if known else None
    manifest = _manifest(cls, meta, dice if hostile else _Plain(0), fixed, reference)
    quiet = meta["annotations"].get(OPERATION) == "wait-for-state"
    rush = dice.random() < 0.3
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
        cluster=_cluster(shoot.cluster(), dice, hostile=hostile),
        secret=json.dumps({"metadata": {"name": "secret"}, "stringData": secret}),
        status=_status(dice) if odd_status else "",
        place=place,
        served=served and not quiet,
        rush=rush,
        forced=dice.random() < 0.5,
        held=held,
    )


def plain(cls: type[Object], type_: str, name: str, namespace: str) -> str:
    """A healthy object, with what its kind requires."""
    meta = {"name": name} | ({"namespace": namespace} if cls.KIND.namespaced else {})
    secret = {"name": "secret", "namespace": namespace}
    fixed = {"type": json.dumps(type_), "providerConfig": "{}"}
    return _manifest(cls, meta, _Plain(0), fixed, secret)


def _manifest(
    cls: type[Object], meta: Raw, dice: random.Random, fixed: dict[str, str], secret: Raw | None
) -> str:
    spec = _SCHEMAS[cls]["properties"]["spec"]
    if secret and "secretRef" in spec["properties"]:
        fixed = {**fixed, "secretRef": json.dumps(secret)}
    head = {"apiVersion": cls.KIND.api_version, "kind": cls.KIND.name, "metadata": meta}
    return f'{json.dumps(head)[:-1]},"spec":{texts.conforming(spec, dice, **fixed)}}}'


class _Plain(random.Random):
    """Dice for what is only to be accepted: no field that is not required."""

    def random(self) -> float:
        return 0.99


def _annotations(dice: random.Random) -> dict[str, str]:
    odd = {json.loads(texts.string(dice))[:9000] for _ in "1234"}
    values = sorted(one.encode(errors="replace").decode() for one in odd)
    asked = dice.choice(("", "migrate", "restore", "reconcile", "wait-for-state", *values))
    keys = dice.sample((TIMESTAMP, FORCE_DELETION, "a/b"), dice.randrange(4))
    return {OPERATION: asked} | {key: dice.choice(values) for key in keys}


def _cluster(manifest: Raw, dice: random.Random, *, hostile: bool) -> str:
    """The Cluster, with anything in one place of its spec."""
    if not hostile or dice.random() < 0.6:
        return json.dumps(manifest)
    *way, last = dice.choice(_PLACES).split("/")
    at = manifest["spec"]
    for step in way:
        at = at.setdefault(step, {})
    at[last] = "@odd@"
    odd = dice.choice((texts.document, texts.value))(dice)
    return json.dumps(manifest).replace('"@odd@"', odd)


def _status(dice: random.Random) -> str:
    return f'{{"providerStatus":{texts.document(dice)},"state":{texts.document(dice)}}}'
