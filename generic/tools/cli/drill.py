"""`actuator drill`: run a drill with live progress, tables, a report, and an exit status."""

import shlex
import signal
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import attrs
import click

from actuator.errors import ActuatorError, ApiError
from actuator.meta import format_time
from generic.kube.clock import SystemClock
from generic.kube.printable import echo
from generic.serving import logs
from generic.testing.drill.all import INTERRUPTED, NOT_BEGUN, Round, RoundResult, rounds
from generic.testing.drill.breaks import BREAKS, MIGRATION_BREAKS
from generic.testing.drill.evidence import Evidence, Origin
from generic.testing.drill.index import Index, finished, write_index
from generic.testing.drill.judge import Finding, unwritten
from generic.testing.drill.names import Names
from generic.testing.drill.paths import PATHS
from generic.testing.drill.report import check_folder
from generic.testing.drill.scenarios import OWN, Scenario, default_scenario, refusal, scenario_of
from generic.testing.drill.seedlist import read_contexts, survey
from generic.testing.drill.settings import DrillSettings
from generic.testing.envtest import EnvtestError
from generic.testing.rehearsal import CombinedRehearsal
from generic.tools.cli import complete
from generic.tools.cli.load import load_rehearsals
from generic.tools.cli.statuses import CheckCommand, No
from generic.tools.cli.versions import current_commit, product_version

_NOT_WITH_ALL = ("break_rule", "random_seed")
_OF_SEEDS = ("kubeconfig", "context", "contexts", "resume")


@click.command(cls=CheckCommand)
@click.argument("rehearsals", nargs=-1, metavar="[REHEARSAL]...")
@click.option(
    "--shoots",
    type=click.IntRange(1, 200),
    help="Number of shoots.  [default: 10, or 1 in a landscape]",
)
@click.option(
    "--scenario",
    help="External failure.  [default: credentials-revoked, or the first of the rehearsal]",
    shell_complete=complete.scenarios,
)
@click.option("--path", type=click.Choice([*PATHS]), help="gardenlet flow before the deletion.")
@click.option("--landscape", is_flag=True, help="Shoots of a real Gardener, without containers.")
@click.option("--all", "everything", is_flag=True, help="All scenarios, also with faults.")
@click.option("--kubeconfig", type=click.Path(path_type=Path), help="Kubeconfig of a real seed.")
@click.option("--context", help="Context; required with --kubeconfig.")
@click.option(
    "--contexts",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Drill one seed after the other: those of these contexts, one a line.",
)
@click.option("--resume", is_flag=True, help="Skip drills of --output that are finished and hold.")
@click.option(
    "--break",
    "break_rule",
    type=click.Choice([*BREAKS, *MIGRATION_BREAKS]),
    help="Violate one invariant on purpose (embedded cluster only).",
)
@click.option("--random-seed", type=click.IntRange(1), help="Migration: replay a run's kills.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    help="Folder of report.html and report.json.  [default: current folder]",
)
@click.option("--log-level", type=click.Choice(["debug", "info", "error"]), default=None)
def drill(
    rehearsals: tuple[str, ...],
    scenario: str | None,
    path: str | None,
    landscape: bool,
    everything: bool,
    output: Path,
    **given: Any,
) -> None:
    """Rehearse a force deletion end to end and check its invariants.

    REHEARSAL is MODULE:CLASS, by default the AWS sample; it runs on its own embedded cluster.
    With several rehearsals, every shoot contains all their kinds. With --path, shoots hibernate,
    migrate, fail or are retried before they are deleted. The scenario migration moves the shoots
    to another seed while managers are killed. The scenario take-over starts with objects of an
    extension that uses Gardener's Go library. In the scenario webhooks-down, webhooks fail as well
    (killed, expired, slow, denying), and must not block the force deletion. With --all, each
    scenario runs alone, and again while the API server restarts, watches end, requests fail, and
    calls hang.

    With --contexts, the drill runs in each of these seeds, and an index has all of them; with
    --all, each scenario of the rehearsals runs there, without faults. A seed that does not answer
    stops no other. With --resume, drills that hold are not repeated, unless the extension, its
    commit, the settings or the seed changed.

    With --landscape, Shoots of a real Gardener on this machine are deleted by their owner, get
    stuck, and are force-deleted by gardenlet; by default with the AWS sample and the local sample.

    The exit status is 0 if all rules hold, 1 if a rule is broken, and 3 if the drill could not
    run, or its report could not be written. Each report has a second name with the id of its
    drill, which no other drill overwrites.
    """
    level = given.pop("log_level")
    given["shoots"] = given["shoots"] or (1 if landscape else 10)
    if landscape:
        if everything or path or any(given[name] for name in (*_NOT_WITH_ALL, *_OF_SEEDS)):
            raise click.UsageError("--landscape takes --scenario, --shoots and --output only")
        _drill_landscape(rehearsals, scenario, given["shoots"], level, output)
        return
    if everything and (scenario or path or any(given[name] for name in _NOT_WITH_ALL)):
        raise click.UsageError(
            "--all selects scenarios and faults itself; remove the other options"
        )
    rehearsal = load_rehearsals(rehearsals)
    chosen = scenario_of(scenario or default_scenario(rehearsal.scenarios), path or "")
    if (given["kubeconfig"] or not everything) and (problem := refusal(rehearsal, chosen)):
        raise click.UsageError(problem)
    contexts = given.pop("contexts")
    resume = given.pop("resume")
    settings = DrillSettings(
        scenario=chosen.name,
        path=f"{path}: {PATHS[path]}" if path else "",
        patience=_patience(chosen, given["break_rule"]),
        origin=_origin(rehearsal),
        **given,
    )
    _check(chosen, settings, contexts, resume=resume and not everything)
    logs.configure(level or "info", "text", only_authors=level is None)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    check_folder(output)
    if everything or contexts:
        scenarios = [*rehearsal.scenarios] if everything else [chosen.name]
        planned = _planned(settings, rehearsal, contexts, scenarios)
        _hold_all(planned, settings, rehearsals, output, resume=resume)
        return
    _, findings = _hold(settings, rehearsal, output)
    _say_unnoticed(settings.break_rule, findings)
    _answer(findings, unwritten(findings))


def _answer(findings: Iterable[Finding], problem: str) -> None:
    """Raise No if a rule is broken, else ActuatorError if there is a problem."""
    if not all(finding.holds for finding in findings):
        raise No(problem)
    if problem:
        raise ActuatorError(problem)


def _drill_landscape(
    references: Sequence[str],
    scenario: str | None,
    shoots: int,
    level: logs.Level | None,
    output: Path,
) -> None:
    from generic.testing.drill.course import run_landscape  # needs jinja2
    from generic.testing.drill.landscape.run import scenarios_of
    from generic.testing.landscape.memory import require_memory
    from generic.tools.cli.landscape_extensions import DEFAULTS, landscape_world
    from generic.tools.cli.terminal import Terminal, show

    references = references or DEFAULTS
    rehearsal = load_rehearsals(references)
    known = scenarios_of(rehearsal)
    if (chosen := scenario or default_scenario(known)) not in known:
        raise click.UsageError(f"no scenario {chosen!r}; the rehearsals have {', '.join(known)}")
    require_memory(1, shoots)
    check_folder(output)
    logs.configure(level or "info", "text", only_authors=level is None)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    settings = DrillSettings(
        scenario=chosen,
        shoots=shoots,
        origin=_origin(rehearsal),
    )
    terminal = Terminal()
    opening = landscape_world(references, rehearsal, 1, terminal.say)
    evidence, findings = run_landscape(settings, rehearsal, opening, terminal, output)
    show(evidence, findings, output)
    _answer(findings, unwritten(findings))


def _check(
    scenario: Scenario, settings: DrillSettings, contexts: Path | None, *, resume: bool
) -> None:
    """Raise UsageError for options that cannot be combined."""
    broken = settings.break_rule
    what = f"path {scenario.path}" if scenario.path else f"scenario {scenario.name}"
    if settings.random_seed and scenario.course is not None:
        raise click.UsageError("--random-seed requires --scenario migration")
    if (settings.kubeconfig is not None) != ((settings.context is None) != (contexts is None)):
        why = "set --kubeconfig and --context together, or --kubeconfig and --contexts"
        raise click.UsageError(why)
    if resume and not contexts:
        raise click.UsageError("--resume requires --all or --contexts")
    if settings.kubeconfig and (broken or scenario.path or scenario.name in OWN):
        option = "--break" if broken else "--path" if scenario.path else what
        raise click.UsageError(f"{option} requires the embedded cluster; remove --kubeconfig")
    if broken and broken not in (judged := scenario.breakable):
        raise click.UsageError(f"--break {broken}: {what} has the invariants {', '.join(judged)}")


def _origin(rehearsal: CombinedRehearsal) -> Origin:
    """Return the tested versions, the commit of the current folder, and this command."""
    command = shlex.join(["actuator", *sys.argv[1:]])
    versions = {"version": product_version(), "extensions": rehearsal.versions}
    return Origin(commit=current_commit(), command=command, **versions)


def _planned(
    settings: DrillSettings,
    rehearsal: CombinedRehearsal,
    contexts: Path | None,
    scenarios: Sequence[str],
) -> list[RoundResult]:
    """Return the rounds to run. Those of a seed that does not answer have a problem already."""
    if not settings.kubeconfig:
        return [RoundResult(round=round_, problem=NOT_BEGUN) for round_ in rounds(rehearsal)]
    from generic.tools.cli.terminal import DrillScreen

    names = read_contexts(contexts) if contexts else [str(settings.context)]
    DrillScreen().print(f"Reading the identities of {len(names)} seeds", soft_wrap=True)
    return [
        RoundResult(
            round=Round(scenario, seed=seed.context),
            problem=seed.problem or NOT_BEGUN,
            identity=seed.identity,
            started=_now() if seed.problem else "",
        )
        for seed in survey(settings.kubeconfig, names)
        for scenario in scenarios
    ]


def _hold_all(
    planned: Sequence[RoundResult],
    settings: DrillSettings,
    references: Sequence[str],
    output: Path,
    *,
    resume: bool,
) -> None:
    """Run all rounds, each with a new rehearsal. Raises No if a rule is broken.

    The index is written before each round and at the end, so that it is there after any end.
    """
    from generic.tools.cli.terminal import DrillScreen, show_rounds

    rehearsal = load_rehearsals(references)
    held = [*planned]
    index = Index(
        id=Names().id,
        title=rehearsal.title,
        started=_now(),
        origin=settings.origin,
        shoots=settings.shoots,
        rehearsals=rehearsal.references,
        held=held,
    )
    kept = finished(output, index) if resume else {}
    held[:] = [kept.get(item.round, item) for item in planned]
    try:
        for number, item in enumerate([*held]):
            title = f"\n{number + 1} of {len(held)}: {item.round.title}"
            DrillScreen().print(title, soft_wrap=True)
            if item.problem == NOT_BEGUN:
                begun = attrs.evolve(item, started=_now(), problem=INTERRUPTED)
                held[number] = begun
                _save(output, index)
                held[number] = _hold_one(begun, settings, load_rehearsals(references), output)
            ended = held[number]
            if ended.problem or ended is item:
                DrillScreen().print(ended.problem or "finished before", soft_wrap=True)
    finally:
        lost = _save(output, index)
        show_rounds(held, output)
    left = sum(bool(item.problem) for item in held)
    problem = lost or (
        f"{left} of {len(held)} rounds could not run, or wrote no report" if left else ""
    )
    _answer([finding for item in held for finding in item.findings], problem)


def _now() -> str:
    return format_time(SystemClock().now())


def _save(output: Path, index: Index) -> str:
    """Write the index; return why it cannot be written, or ""."""
    try:
        write_index(output, index)
    except OSError as error:
        return f"cannot write the index into {output}: {error.strerror}"
    return ""


def _hold_one(
    begun: RoundResult, settings: DrillSettings, rehearsal: CombinedRehearsal, output: Path
) -> RoundResult:
    """Run one round; an error is part of the result, so that the next rounds run."""
    began = time.monotonic()
    patience = _patience(scenario_of(begun.round.scenario), None)
    mine = attrs.evolve(begun.round.settings(settings), patience=patience)
    try:
        id_, findings = _hold(mine, rehearsal, output / begun.round.folder)
        problem = unwritten(findings)
        drill_id = "" if problem else id_
        ended = attrs.evolve(begun, findings=findings, problem=problem, drill=drill_id)
    except (ActuatorError, ApiError, EnvtestError) as error:
        ended = attrs.evolve(begun, problem=str(error))
    return attrs.evolve(ended, seconds=time.monotonic() - began)


def _hold(
    settings: DrillSettings, rehearsal: CombinedRehearsal, output: Path
) -> tuple[str, list[Finding]]:
    """Run a drill and print the result; return the id of the drill and the findings."""
    from generic.testing.drill.course import run  # needs jinja2
    from generic.tools.cli.terminal import Terminal, show, show_findings

    evidence, findings = run(settings, rehearsal, Terminal(), output)
    if isinstance(evidence, Evidence):
        show(evidence, findings, output)
    else:
        show_findings(evidence, findings, output)
    return evidence.drill, findings


def _say_unnoticed(break_rule: str | None, findings: Sequence[Finding]) -> None:
    """Report that a rule was broken on purpose and its check did not notice."""
    if break_rule in {finding.rule for finding in findings if finding.holds}:
        echo(
            f"--break {break_rule} had no effect: this drill did not detect a violation of "
            f"{break_rule}",
            err=True,
        )


def _patience(scenario: Scenario, break_rule: str | None) -> float:
    """Return the seconds for each phase."""
    return scenario.patience_if_broken if break_rule else scenario.patience
