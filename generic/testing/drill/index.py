"""The index of many drills, for people, programs, and CI systems (JUnit XML).

An earlier index tells which rounds are finished, so that they are not repeated.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import attrs
import cattrs
from cattrs.errors import BaseValidationError

from actuator.errors import ConfigurationError
from actuator.meta import Raw
from generic.kube.canonical import digest
from generic.kube.plain import json_text, plain
from generic.kube.printable import printable
from generic.testing.drill.all import Round, RoundResult
from generic.testing.drill.evidence import Origin
from generic.testing.drill.judge import Finding
from generic.testing.drill.report import write_all

_VERSION = 1
_HASH = "sha256"
"""The field of index.json with the hash of the others."""
_COUNTS = {"tests": "testcase", "errors": "error", "failures": "failure", "skipped": "skipped"}


@attrs.frozen(kw_only=True)
class Index:
    """All rounds, also those that have not begun."""

    id: str
    title: str
    started: str
    """RFC 3339."""
    origin: Origin
    shoots: int = 0
    """Of each drill."""
    rehearsals: Sequence[str] = ()
    """MODULE:CLASS."""
    held: Sequence[RoundResult]

    @property
    def seeds(self) -> Mapping[str, list[RoundResult]]:
        """The rounds of each existing seed, by its context."""
        names = dict.fromkeys(item.round.seed for item in self.held if item.round.seed)
        return {name: [item for item in self.held if item.round.seed == name] for name in names}


@attrs.frozen(kw_only=True)
class RoundEntry:
    """A round in index.json; the fields are those of RoundResult."""

    seed: str
    identity: str
    scenario: str
    injected: str
    started: str
    verdict: str
    problems: list[str]
    report: str | None
    """Its JSON, relative to the folder of the index."""
    sha256: str | None
    seconds: float


@attrs.frozen(kw_only=True)
class IndexFile:
    """The content of index.json."""

    version: int
    title: str
    started: str
    origin: Origin
    shoots: int
    rehearsals: list[str]
    passed: bool
    rounds: list[RoundEntry]
    sha256: str = ""
    """The SHA-256 of the canonical JSON of the other fields."""


class AlteredIndex(ConfigurationError):
    """An index.json was changed after it was written."""


def read_index(path: Path) -> IndexFile:
    """Read an index.json. Raises ConfigurationError if it is none or altered, and OSError."""
    data = path.read_bytes()
    content = _content(data)
    none = f"{path}: not an index.json of `actuator drill --all`; select that file"
    if content is None:
        raise ConfigurationError(none)
    if data != _with_hash(content):
        raise AlteredIndex(f"{path}: altered: its content and its hash differ")
    try:
        index = cattrs.structure(content, IndexFile)
    except (ValueError, TypeError, BaseValidationError) as error:
        raise ConfigurationError(none) from error
    if index.version != _VERSION:
        why = f"an index of version {index.version}, not {_VERSION}"
        raise ConfigurationError(f"{path}: {why}; use the `actuator` that wrote it")
    return index


def report_state(folder: Path, entry: RoundEntry) -> str:
    """Return whether the report of a round still has the hash in its index. Raises OSError."""
    if not entry.report or not entry.sha256:
        return "none"
    found = _hash(folder / entry.report)
    return "missing" if found is None else "unchanged" if found == entry.sha256 else "altered"


def finished(folder: Path, index: Index) -> dict[Round, RoundResult]:
    """Return the rounds of `index` that need no repetition: by the index.json in the folder.

    Their rules hold and their reports are unchanged; versions, settings and seeds are the same.
    Raises ConfigurationError if that index.json is altered, and OSError.
    """
    path = folder / "index.json"
    if not path.exists():
        return {}
    former = read_index(path)
    if _settings(former) != _settings(index):
        return {}
    found = {(item.seed, item.scenario, item.injected): item for item in former.rounds}
    kept: dict[Round, RoundResult] = {}
    for item in index.held:
        drill = item.round
        entry = found.get((drill.seed, drill.scenario, drill.injected))
        if entry is None or entry.verdict != "holds" or not entry.report:
            continue
        is_same = item.identity in (entry.identity, "")  # "": it cannot be asked now
        if is_same and report_state(folder, entry) == "unchanged":
            report = json.loads((folder / entry.report).read_bytes())
            kept[drill] = RoundResult(
                round=drill,
                findings=cattrs.structure(report["findings"], list[Finding]),
                drill=Path(entry.report).stem.partition("-")[2],
                identity=entry.identity,
                started=entry.started,
                seconds=entry.seconds,
            )
    return kept


def _settings(index: Index | IndexFile) -> tuple[object, ...]:
    """Return what has to be equal, so that results of one run count in another."""
    return [*index.rehearsals], index.shoots, attrs.evolve(index.origin, command="")


def write_index(folder: Path, index: Index) -> None:
    """Write index.html, index.json and junit.xml. Raises OSError."""
    texts = {
        "index.html": page_of(index),
        "index.json": _json(folder, index),
        "junit.xml": _junit(index),
    }
    write_all(folder, index.id, texts)


def page_of(index: Index) -> str:
    """Return the page that links the reports of all rounds."""
    from generic.testing.drill.html import render  # needs jinja2

    findings = [Finding(rule="", title="", problems=tuple(item.told)) for item in index.held]
    verdict = f"{sum(not item.told for item in index.held)} of {len(index.held)} rounds hold."
    if seeds := index.seeds:
        whole = sum(not any(item.told for item in items) for items in seeds.values())
        verdict = f"Each drill holds in {whole} of {len(seeds)} seeds. {verdict}"
    what = "Drills in seeds" if seeds else "All drills"
    return render("index", findings, what=what, verdict=verdict, index=index, seeds=seeds)


def _hash(report: Path) -> str | None:
    """Return the SHA-256 of a file; None if there is none."""
    return hashlib.sha256(report.read_bytes()).hexdigest() if report.is_file() else None


def is_index(path: Path) -> bool:
    """Whether a file is an index.json, also an altered one. Raises OSError."""
    return _content(path.read_bytes()) is not None


def _content(data: bytes) -> Raw | None:
    """Return the content of an index.json, also of an altered one; None for another file."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and "rounds" in found else None


def _with_hash(content: Raw) -> bytes:
    """Return the only text of index.json with this content, and with its hash."""
    others = {key: value for key, value in content.items() if key != _HASH}
    try:
        return f"{json_text({**others, _HASH: digest(others)})}\n".encode()
    except (ValueError, RecursionError):  # NaN is no JSON
        return b""


def _json(folder: Path, index: Index) -> str:
    reports = [item.report and item.report.with_suffix(".json") for item in index.held]
    rounds = [
        RoundEntry(
            seed=item.round.seed,
            identity=item.identity,
            scenario=item.round.scenario,
            injected=item.round.injected,
            started=item.started,
            verdict=item.verdict.lower(),
            problems=item.told,
            report=str(report) if report else None,
            sha256=_hash(folder / report) if report else None,
            seconds=item.seconds,
        )
        for item, report in zip(index.held, reports, strict=True)
    ]
    content = IndexFile(
        version=_VERSION,
        title=index.title,
        started=index.started,
        origin=index.origin,
        shoots=index.shoots,
        rehearsals=[*index.rehearsals],
        passed=all(item.verdict == "holds" for item in index.held),
        rounds=rounds,
    )
    return _with_hash(plain(content)).decode()


def _junit(index: Index) -> str:
    """Return a suite for each round, with a case for each rule and one for the round itself."""
    root = Element("testsuites", name=f"{index.origin.command}: {index.title}")
    for item in index.held:
        name = item.round.title
        seconds = f"{item.seconds:.1f}"
        suite = SubElement(root, "testsuite", name=name, timestamp=item.started, time=seconds)
        case = SubElement(suite, "testcase", classname=name, name="the round ran", time=seconds)
        if item.problem:
            _result(case, "error", item.problem)
        for finding in item.findings:
            title = f"{finding.rule}: {finding.title}"
            case = SubElement(suite, "testcase", classname=name, name=title)
            if not finding.holds:
                _result(case, "failure", *finding.problems)
            elif not finding.exercised:
                _result(case, "skipped", *finding.untested)
        for key, tag in _COUNTS.items():
            suite.set(key, str(sum(1 for _ in suite.iter(tag))))
    for part in root.iter():  # XML cannot hold control characters
        part.text = printable(part.text or "", keep="\n")
        part.attrib.update({key: printable(text) for key, text in part.items()})
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, "unicode") + "\n"


def _result(case: Element, tag: str, *texts: str) -> None:
    SubElement(case, tag, message=texts[0]).text = "\n".join(texts)
