"""Run `promtool check rules` and `promtool test rules` on our rules, and on mutants of them.

`python -m tests.rules.promtool` breaks each rule in turn and lists the mutants that no test of
`situations` notices.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import attrs

from actuator.meta import Raw
from generic.tools.monitoring import ALERTS, GROUPS, RECORDINGS, never_scraped, rule_file
from hack.observe.programs import find_program
from tests.rules import causes
from tests.rules.situations import ALERTED, RECORDED
from tests.support.rules.extension import EXTENSION
from tests.support.rules.series import Series, labelled, together

RULES: Sequence[Raw] = (*RECORDINGS, *ALERTS)
_GROUP = "actuator"
_SECONDS = 600.0
_SEEDS = ("", "second")
"""Each situation is seen twice, in one Prometheus: rules must keep the label `seed`."""
_BY_SEED = (
    *("ActuatorDeletionStuck", "ActuatorDeletionStuckMore", "ActuatorTypeUnserved"),
    "ActuatorSeedUnmonitored",
)
"""Alerts on a cause that several extensions share."""
_JOBS = ("job", "twice")
"""Two jobs that scrape the same target."""


def problems(
    promtool: Path, rules: Sequence[Raw], folder: Path, about: Sequence[Raw] | None = None
) -> str | None:
    """Return promtool's errors about the rules; None if there are none.

    Tests each rule in its own situations, or only the rules `about`.
    """
    written = _write(folder / "rules.json", rule_file([{"name": _GROUP, "rules": rules}]))
    tested = []
    for number, rule in enumerate(rules if about is None else about):
        place = list(map(name_of, RULES)).index(name_of(rule))  # a mutant may have another name
        alone = rule_file([{"name": _GROUP, "rules": [rules[place]]}])
        needs = _write(folder / f"rules-{number}.json", alone)
        tested.append(_write(folder / f"cases-{number}.json", _cases(needs, list(_tests(rule)))))
    found = _errors(promtool, ["check", "rules", "--lint=all", "--lint-fatal", str(written)])
    return found or _errors(promtool, ["test", "rules", *map(str, tested)])


def situation_problems(promtool: Path, situation: causes.Situation, folder: Path) -> str | None:
    """Return promtool's errors about a situation of a whole extension, with all rules."""
    extra = [never_scraped(EXTENSION)] if situation.is_expected else []
    groups = [*GROUPS, {"name": "expected", "rules": extra}]
    rules = _write(folder / "rules.json", rule_file(groups))
    asked = [
        _asked(causes.PAGES, minute, [_sample({"alertname": k}, v) for k, v in pages.items()])
        for minute, pages in situation.pages.items()
    ] + [
        _asked(expr, minute, [_sample({}, value)])
        for minute, numbers in situation.numbers.items()
        for expr, value in numbers.items()
    ]
    test = {
        "name": situation.text,
        "interval": "1m",
        "input_series": _input(situation.series),
        "promql_expr_test": asked,
    }
    cases = _cases(rules, [test], [group["name"] for group in groups], situation.every)
    return _errors(promtool, ["test", "rules", str(_write(folder / "cases.json", cases))])


def _write(path: Path, content: Raw) -> Path:
    path.write_text(json.dumps(content))  # JSON is YAML
    return path


def _errors(promtool: Path, arguments: Sequence[str]) -> str | None:
    command = [str(promtool), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    return f"{done.stdout}{done.stderr}" if done.returncode else None


def _cases(
    rules: Path, tests: Sequence[Raw], groups: Sequence[str] = (_GROUP,), every: int = 1
) -> Raw:
    return {
        "rule_files": [rules.name],
        "evaluation_interval": f"{every}m",
        "group_eval_order": list(groups),
        "tests": list(tests),
    }


def _input(series: Series) -> list[Raw]:
    return [{"series": str(name), "values": values} for name, values in series.items()]


def _asked(expr: str, minute: int, expected: Sequence[Raw]) -> Raw:
    return {"expr": expr, "eval_time": f"{minute}m", "exp_samples": list(expected)}


def _sample(labels: dict[str, str], value: float) -> Raw:
    matchers = ", ".join(f'{key}="{text}"' for key, text in labels.items() if text)
    return {"labels": f"{{{matchers}}}", "value": value}


def _in_seeds(series: Series) -> Series:
    return together(labelled(series, seed=seed) for seed in _SEEDS)


def _tests(rule: Raw) -> Iterator[Raw]:
    """Yield a test for each example of a recorded series, or each situation of an alert."""
    name = name_of(rule)
    if "record" in rule:
        for example in RECORDED[name]:
            scraped = together(_scraped_by(job, example.series) for job in _JOBS)
            # The series of another program, which our rules must ignore.
            metrics = {k: v for k, v in example.series.items() if not k.metric.startswith("seed:")}
            strangers = labelled(metrics, extension="", job="stranger")
            expected = [
                _sample({"extension": "ext", "seed": seed, **example.labels}, example.value)
                for seed in _SEEDS
                if example.value is not None
            ]
            labels = ", ".join(f'{k}="{v}"' for k, v in rule.get("labels", {}).items())
            asked = _asked(f"round({rule['record']}{{{labels}}}, 1e-6)", 120, expected)
            yield _test(name, together([_in_seeds(scraped), strangers]), asked)
        return
    alert, severity = rule["alert"], rule["labels"]["severity"]
    shown = f'count by (severity) (ALERTS{{alertname="{alert}", alertstate="firing"}})'
    fires, quiet = ALERTED[name]
    number = 2 if alert in _BY_SEED else 3
    asked = _asked(shown, fires.minute, [_sample({"severity": severity}, number)])
    yield _test(f"{name} fires", _three_times(fires.series), asked)
    for situation in quiet:
        yield _test(f"{name} is quiet", situation.series, _asked(shown, situation.minute, []))


def _scraped_by(job: str, series: Series) -> Series:
    """Return the series under a job; the second job misses one, so that shares differ."""
    found = labelled(series, job=job)
    if any(name.metric.startswith("seed:") for name in series):
        return series if job == _JOBS[0] else {}  # recorded, not scraped
    return found if job == _JOBS[0] or len(found) == 1 else dict(list(found.items())[:-1])


def _three_times(series: Series) -> Series:
    """Return the series of one extension in two seeds, and of another one in the second seed."""
    other = {
        name.but(extension="other") if ("extension", "ext") in name.labels else name: values
        for name, values in series.items()
    }
    first, second, third = (
        labelled(found, seed=seed)
        for found, seed in ((series, "first"), (series, "second"), (other, "second"))
    )
    return {**first, **second, **third}


def _test(name: str, series: Series, asked: Raw) -> Raw:
    return {
        "name": name,
        "interval": "1m",
        "input_series": _input(series),
        "promql_expr_test": [asked],
    }


@attrs.frozen
class Mutant:
    """The rules with one of them broken, and a description of the change."""

    text: str
    rule: Raw
    """The correct rule."""
    rules: Sequence[Raw]


def mutants() -> Iterator[Mutant]:
    """Yield each rule broken in each way that applies to it."""
    for number, rule in enumerate(RULES):
        for text, broken in _broken(rule):
            rules = (*RULES[:number], broken, *RULES[number + 1 :])
            yield Mutant(f"{name_of(rule)} {text}", rule, rules)


def name_of(rule: Raw) -> str:
    """Return the name of an alert with its severity, or of a recorded series with its labels."""
    labels = rule.get("labels", {}).values()
    return " ".join((rule.get("alert") or rule["record"], *labels))


def _broken(rule: Raw) -> Iterator[tuple[str, Raw]]:
    expr = rule["expr"]
    if "record" in rule:
        yield "is doubled", {**rule, "expr": f"2 * ({expr}) + 1"}
    else:
        yield "never fires", {**rule, "expr": f"({expr}) and vector(1) > 1"}
        yield "fires late", {**rule, "for": "36h"}
        yield "fires always", {**rule, "expr": f"({expr}) or vector(1)"}
        if "for" in rule:
            yield "fires at once", {**rule, "for": "0s"}
        other = "info" if rule["labels"]["severity"] != "info" else "warning"
        yield "has another severity", {**rule, "labels": {"severity": other}}
    for text, find, put in _MUTATIONS:
        if find.search(expr):
            yield text, {**rule, "expr": find.sub(put, expr)}


_MUTATIONS = (
    ("is about strangers too", re.compile('extension!=""'), ""),
    (
        "counts a target once for each job",
        re.compile(r"max by \((?=seed, extension, instance)"),
        "sum by (",
    ),
    ("loses the seed", re.compile(r"(?<!max )by \(seed, "), "by ("),
    ("loses the extension", re.compile(r"by \(seed, extension\b(?!, instance)"), "by (seed"),
    ("extrapolates", re.compile(r"max_over_time\(.* or (?=round\(increase)"), ""),
    ("ignores resets", re.compile(r"^(sum by [^/]*) or round\(increase\([^)]*\)\)\)\)$"), r"\1))"),
    ("has lost an exception", re.compile(r" unless on .*"), ""),
)
"""A description of each mutation, where it applies, and the replacement."""


def unnoticed(promtool: Path) -> tuple[int, list[str]]:
    """Return the number of mutants, and those that no test notices."""

    def survives(mutant: Mutant) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            found = problems(promtool, mutant.rules, Path(folder), about=[mutant.rule])
            return found is None

    made = list(mutants())
    with ThreadPoolExecutor(2) as pool:
        survivors = list(pool.map(survives, made))
    left = [item.text for item, survived in zip(made, survivors, strict=True) if survived]
    return len(made), left


def main() -> None:
    """Print the count; exit with status 1 if a mutant survived."""
    promtool = find_program("promtool", lambda text: print(text, file=sys.stderr))
    count, left = unnoticed(promtool)
    print(f"{count - len(left)} of {count} mutants noticed")
    for text in left:
        print(f"not noticed: {text}")
    sys.exit(1 if left else 0)


if __name__ == "__main__":
    main()
