"""The drill's report, as JSON for machines and as one page for people.

It contains evidence, of any class, and findings. Not here: the content of the page (`page`).
`check_report` reads the JSON back: a report that differs from the evidence breaks a rule.
"""

import json
import secrets
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import attrs
import cattrs
from attrs import AttrsInstance
from cattrs.errors import BaseValidationError
from cattrs.gen import make_dict_structure_fn, override

from actuator.errors import ConfigurationError, DecodeError
from actuator.meta import wire_name
from generic.kube.plain import json_text
from generic.testing.drill.judge import Finding

_VERSION = 3
_PROBE = bytes(1 << 20)
"""More than the files of a drill usually need."""
E = TypeVar("E", bound=AttrsInstance)


def as_json(evidence: AttrsInstance, findings: Sequence[Finding]) -> str:
    """Return the content of report.json."""
    passed = all(finding.holds for finding in findings)
    told = {"version": _VERSION, "passed": passed, "findings": findings, "evidence": evidence}
    return json_text(told, sort_keys=True) + "\n"


def read_json(path: Path, cls: type[E]) -> tuple[E, list[Finding]]:
    """Read a report.json with evidence of class `cls`.

    Raises DecodeError if it is not such a report or contradicts itself.
    """
    converter = cattrs.Converter(forbid_extra_keys=True)
    converter.register_structure_hook_factory(attrs.has, partial(_reader, converter))
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        version = told["version"]
        passed = told["passed"]
        evidence = converter.structure(told["evidence"], cls)
        findings = converter.structure(told["findings"], list[Finding])
    except (OSError, ValueError, KeyError, TypeError, BaseValidationError) as error:
        raise DecodeError(f"{path.name} is no report of a drill: {error!r}") from error
    if version != _VERSION:
        raise DecodeError(f"{path.name} is of version {version!r}, not {_VERSION}")
    if passed != all(finding.holds for finding in findings):
        raise DecodeError(f"{path.name} has another verdict than its findings")
    return evidence, findings


def _reader(converter: cattrs.Converter, cls: type[E]) -> Callable[[Any, Any], E]:
    """Return how to read an object of `cls`, whose keys are in camelCase."""
    names: dict[str, Any] = {
        field.name: override(rename=wire_name(field)) for field in attrs.fields(cls)
    }
    return make_dict_structure_fn(cls, converter, **names)


def check_report(path: Path, evidence: AttrsInstance, findings: Sequence[Finding]) -> list[str]:
    """Return the differences between the report and the evidence."""
    try:
        told, judged = read_json(path, type(evidence))
    except DecodeError as error:
        return [str(error)]
    problems = [
        f"the report differs from the evidence: {field.name}"
        for field in attrs.fields(type(evidence))
        if getattr(told, field.name) != getattr(evidence, field.name)
    ]
    if judged != list(findings):
        problems.append("the report has another verdict")
    return problems


def check_folder(folder: Path) -> None:
    """Create the folder, and test that it has space. Raises ConfigurationError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(_PROBE)
    except OSError as error:
        why = f"--output {folder}: cannot write reports there: {error.strerror}"
        raise ConfigurationError(f"{why}; free space, or set another folder") from None


def own_name(path: Path, drill: str) -> Path:
    """Return the name that only the drill with this id uses, such as report-1a2b3c.html."""
    return path.with_stem(f"{path.stem}-{drill}")


def write_all(folder: Path, drill: str, texts: Mapping[str, str]) -> None:
    """Write files under names of the drill's own, then under those of the latest drill.

    Raises OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        write_text(own_name(folder / name, drill), text)
    for name, text in texts.items():
        write_text(folder / name, text)


def write_text(path: Path, text: str) -> None:
    """Write the whole file or nothing. Raises OSError."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        # an error's text may contain half a surrogate pair, which cannot be encoded
        with part.open("x", encoding="utf-8", errors="replace") as file:
            file.write(text)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
