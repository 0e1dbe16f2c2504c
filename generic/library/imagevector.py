"""The image vector: the container images of an extension, and how an operator overrides them.

Sources: Gardener documentation, "Image Vector"; Gardener's `pkg/utils/imagevector`. Version ranges
are those of Masterminds/semver 3: commas or spaces mean "and", "||" means "or", `x` any number.
"""

import logging
import os
import re
from itertools import takewhile
from math import inf
from pathlib import Path

import attrs
import yaml

from actuator.cluster import Cluster
from actuator.codec import decode
from actuator.errors import ActuatorError, ConfigurationError, DecodeError, ErrorCode

__all__ = ["ImageSource", "ImageVector", "is_in_range", "load_images"]

_OVERWRITE = "IMAGEVECTOR_OVERWRITE"
_EXACT = re.compile(r"v?\d+\.\d+\.\d+|=")
_PART = r"(?:\d+|[xX*])"
_VERSION = rf"v?{_PART}(?:\.{_PART}){{0,2}}(?:-[\w.-]+)?(?:\+[\w.-]+)?"
_COMPARISON = rf"(!=|>=|=>|<=|=<|~>|[=<>~^]?)\s*({_VERSION})"
_COMPARISONS = re.compile(rf"\s*{_COMPARISON}(?:(?:\s+|\s*,\s*){_COMPARISON})*\s*")
_HYPHEN = re.compile(rf"({_VERSION})\s+-\s+({_VERSION})")
_CHECKED = re.compile(r"v?(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?(?:[-+].*)?")


@attrs.frozen(kw_only=True)
class ImageSource:
    """An image: `ref`, or `repository` and `tag`. `version` is the program's, `target_version` and
    `runtime_version` are ranges of the Kubernetes versions that it acts on and runs in.
    """

    name: str = ""
    repository: str | None = None
    tag: str | None = None
    ref: str | None = None
    version: str | None = None
    runtime_version: str | None = None
    target_version: str | None = None
    architectures: list[str] | None = None

    def __attrs_post_init__(self) -> None:
        if not self.name or "" in (self.ref, self.repository, self.tag):
            raise ValueError(f"image {self.name!r}: empty field; set name and the reference")
        if (self.ref is None) is (self.repository is None) or None not in (self.ref, self.tag):
            raise ValueError(f"image {self.name!r}: set either ref, or repository and tag")
        if not set(self.architectures or ()) <= {"amd64", "arm64"}:
            raise ValueError(f"image {self.name!r}: architectures: expected amd64 or arm64")
        _score(self, "0.0.0", "0.0.0", "")

    @property
    def reference(self) -> str:
        """The image as a container names it."""
        if self.ref is not None or self.tag is None:
            return self.ref or self.repository or ""
        return f"{self.repository}{'@' if self.tag.startswith('sha256:') else ':'}{self.tag}"


@attrs.frozen
class ImageVector:
    """The entries of one or two files, which `origin` names for error messages."""

    images: list[ImageSource]
    origin: str = ""

    def find(
        self, name: str, *, target: str = "", runtime: str | None = None, arch: str = "amd64"
    ) -> ImageSource:
        """Return the best entry for these Kubernetes versions, with its tag and version filled in.

        `runtime` is by default `target`; "" is in every range. An exact version is better than a
        range, a range better than none, one architecture better than several, the first of equal
        entries better than others. Raises ActuatorError if no entry fits, which Gardener retries,
        and ConfigurationError for an invalid version.
        """
        versions = target, target if runtime is None else runtime
        named = (image for image in self.images if image.name == name)
        try:
            scored = [(_score(image, *versions, arch), image) for image in named]
        except ValueError as error:  # the ranges were checked when the files were read
            raise ConfigurationError(f"image {name!r}: {error}; correct it in the Shoot") from None
        score, best = max(scored, key=lambda item: item[0], default=(0, None))
        if not score or best is None:
            wanted = f"{name!r} for target and runtime version {versions} and architecture {arch}"
            text = f"{self.origin}: no image {wanted}; add one to the file in {_OVERWRITE}"
            raise ActuatorError(text, codes=[ErrorCode.ERR_RETRYABLE_CONFIGURATION_PROBLEM])
        tag = best.tag or (f"v{target.lstrip('v')}" if target and not best.ref else None)
        return attrs.evolve(best, tag=tag, version=best.version or tag)

    def references(
        self, cluster: Cluster, *names: str, in_shoot: bool = False, arch: str = "amd64"
    ) -> dict[str, str]:
        """Return the references of these images by name: `images` of a chart, text for manifests.

        The images act on the shoot, and run in the seed or, with `in_shoot`, in the shoot. Raises
        like `find`.
        """
        target = cluster.kubernetes_version
        runtime = target if in_shoot else cluster.seed_kubernetes_version
        return {
            name: self.find(name, target=target, runtime=runtime, arch=arch).reference
            for name in names
        }


def load_images(module: str) -> ImageVector:
    """Read `images.yaml` beside a module (its `__file__`) and merge the operator's file into it.

    IMAGEVECTOR_OVERWRITE names that file. Its entries replace those with the same name, versions
    and architectures; fields that it lacks stay. Raises ConfigurationError with file and entry.
    """
    overwrite = os.environ.get(_OVERWRITE)
    files = [Path(module).with_name("images.yaml"), *([Path(overwrite)] if overwrite else [])]
    merged: dict[tuple[object, ...], ImageSource] = {}
    for file, new in ((path, image) for path in files for image in _read(path)):
        key = (new.name, new.target_version, new.runtime_version, *(new.architectures or ()))
        if file is not files[0] and key not in merged:
            text = "image %r in %s has no entry in images.yaml; adding it"
            logging.getLogger(__name__).warning(text, new.name, file)
        old = merged.get(key, new)
        given = attrs.asdict(new, filter=lambda _field, value: value is not None)
        other = {"ref": None} if new.ref is None else {"repository": None, "tag": None}
        merged[key] = attrs.evolve(old, **{"version": old.version or old.tag, **given, **other})
    return ImageVector(list(merged.values()), " and ".join(map(str, files)))


def _read(path: Path) -> list[ImageSource]:
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
        return decode(ImageVector, data or {"images": []}).images
    except (DecodeError, OSError, RecursionError, UnicodeError, yaml.YAMLError) as error:
        text = " ".join(str(error).split())
        raise ConfigurationError(f"{path} is not a valid image vector: {text}") from None


def _score(image: ImageSource, target: str, runtime: str, arch: str) -> int:
    """How well an entry fits; 0 if it does not. Raises ValueError for a bad version."""
    architectures = image.architectures or ["amd64", "arm64"]
    score = 1 if len(architectures) > 1 else 2
    fits = arch in architectures
    for constraint, version in ((image.target_version, target), (image.runtime_version, runtime)):
        if constraint is not None and version:
            fits &= is_in_range(version, constraint)
            score += 2 if _EXACT.match(constraint) else 1
    return score if fits else 0


def is_in_range(version: str, constraint: str) -> bool:
    """Return whether a version, without its suffix, is in a range. Raises ValueError."""
    found = _CHECKED.fullmatch(version)
    if not found:
        raise ValueError(f"expected a Kubernetes version such as 1.31.2, got {version[:64]!r}")
    alternatives = _HYPHEN.sub(r">=\1 <=\2", constraint).split("||")
    if not all(map(_COMPARISONS.fullmatch, alternatives)):
        raise ValueError(f"cannot compare {version!r} with {constraint!r}; write '>= 1.30, < 1.32'")
    point = (*(int(part or 0) for part in found.groups()), 1)
    terms = (re.findall(_COMPARISON, text) for text in alternatives)
    return any(all(_holds(point, *term) for term in every) for every in terms)


def _holds(point: tuple[float, ...], operator: str, version: str) -> bool:
    core, _, suffix = version.lstrip("v").partition("+")[0].partition("-")
    low: tuple[float, ...] = tuple(int(part) for part in takewhile(str.isdigit, core.split(".")))
    if len(low) == 3:
        low = (*low, 0 if suffix else 1)  # a pre-release lies just below its release
    least = low
    limit = _above(low)
    if operator in (">=", "=>"):
        limit = (inf,)
    elif operator == ">":
        least = limit
        limit = (inf,)
    elif operator in ("<", "<=", "=<"):
        least = ()
        limit = low if operator == "<" else limit
    elif operator in ("~", "~>"):
        limit = _above(low[:2])
    elif operator == "^":  # up to the first number that is not 0
        limit = _above(low[: next((n for n in (1, 2) if any(low[:n])), 3)])
    return (least <= point < limit) is not (operator == "!=")


def _above(low: tuple[float, ...]) -> tuple[float, ...]:
    """The first point after every version that begins with these numbers."""
    return (*low[:-1], low[-1] + 1) if low else (inf,)
