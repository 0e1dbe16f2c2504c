"""Run `promtool check rules` and `promtool test rules` on our rules, and on mutants of them.

`python -m tests.rules.promtool` breaks each rule in turn and lists the mutants that no test of
`situations` notices.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import attrs

from actuator.meta import Raw
from generic.tools.monitoring import ALERTS, RECORDINGS, rule_file
from hack.observe.programs import find_program
from tests.rules.situations import ALERTED, RECORDED, Situation

RULES: Sequence[Raw] = (*RECORDINGS, *ALERTS)
_GROUP = "actuator"
_OURS = "and on (job) actuator_build_info"
"""Limits the metrics of controller-runtime and client-go to those of this framework."""
_SECONDS = 300.0


def problems(
    promtool: Path, rules: Sequence[Raw], folder: Path, about: Sequence[Raw] | None = None
) -> str | None:
    """Return promtool's errors about the rules; None if there are none.

    Tests each rule in its own situations, or only the rules `about`.
    """
    written = _write_rules(folder / "rules.json", rules)
    tested = []
    for number, rule in enumerate(rules if about is None else about):
        # No rule needs an alert, so each is tested without the other alerts.
        needed = [item for item in rules if "record" in item or name_of(item) == name_of(rule)]
        needs = _write_rules(folder / f"rules-{number}.json", needed)
        tested.append(folder / f"cases-{number}.json")
        tested[-1].write_text(json.dumps(_cases(rule, needs)))
    checked = ["check", "rules", "--lint=all", "--lint-fatal", str(written)]
    for command in (checked, ["test", "rules", *map(str, tested)]):
        arguments = [str(promtool), *command]
        done = subprocess.run(
            arguments, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
        if done.returncode:
            return f"{done.stdout}{done.stderr}"
    return None


def _write_rules(path: Path, rules: Sequence[Raw]) -> Path:
    groups = [{"name": _GROUP, "rules": rules}]
    path.write_text(json.dumps(rule_file(groups)))  # JSON is YAML
    return path


def _cases(rule: Raw, needs: Path) -> Raw:
    return {
        "rule_files": [needs.name],
        "evaluation_interval": "1m",
        "group_eval_order": [_GROUP],
        "tests": list(_tests(rule)),
    }


def _tests(rule: Raw) -> Iterator[Raw]:
    """Yield a test for the example of a recorded series, or for each situation of an alert."""
    name = name_of(rule)
    if "record" in rule:
        series, labels, value = attrs.astuple(RECORDED[name])
        expected = {"labels": f"{{{labels}}}", "value": value}
        yield _test(name, Situation(series, 120), f"round({name}, 1e-6)", [expected])
        return
    shown = f'count by (alertname, severity) (ALERTS{{alertname="{name}", alertstate="firing"}})'
    labels = f'{{alertname="{name}", severity="{rule["labels"]["severity"]}"}}'
    fires, quiet = ALERTED[name]
    yield _test(f"{name} fires", fires, shown, [{"labels": labels, "value": 1}])
    for situation in quiet:
        yield _test(f"{name} is quiet", situation, shown, [])


def _test(name: str, situation: Situation, expr: str, expected: list[Raw]) -> Raw:
    series = [{"series": item, "values": values} for item, values in situation.series.items()]
    asked = {"expr": expr, "eval_time": f"{situation.minute}m", "exp_samples": expected}
    return {"name": name, "interval": "1m", "input_series": series, "promql_expr_test": [asked]}


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
    """Return the name of an alert or of a recorded series."""
    name: str = rule.get("alert") or rule["record"]
    return name


def _broken(rule: Raw) -> Iterator[tuple[str, Raw]]:
    expr = rule["expr"]
    if "record" in rule:
        yield "is doubled", {**rule, "expr": f"2 * ({expr})"}
    else:
        yield "never fires", {**rule, "expr": f"({expr}) and vector(1) > 1"}
        yield "fires late", {**rule, "for": "36h"}
        if "for" in rule:
            yield "fires at once", {**rule, "for": "0s"}
        other = "info" if rule["labels"]["severity"] != "info" else "warning"
        yield "has another severity", {**rule, "labels": {"severity": other}}
    if _OURS in expr:
        yield "is about strangers too", {**rule, "expr": expr.replace(_OURS, "")}


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
