"""The soak: one manager under its Role, objects created and deleted, and random faults.

    python -m tests.soak [--minutes 15] [--seed N]

The seed is printed; it replays the same faults at the same times. Exit status 1 if a rule is
violated.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from generic.tools.cli.screen import Screen, new_table
from tests.soak.figures import growth
from tests.soak.judge import WARM_UP, Seen, judge
from tests.soak.run import WORDS, soak
from tests.support.driver import hold, parser, say


def main() -> None:
    """Run the soak, print the results, and exit."""
    arguments = _arguments()
    folder = arguments.output or Path(tempfile.mkdtemp(prefix="soak-"))
    folder.mkdir(parents=True, exist_ok=True)
    print(f"seed {arguments.seed}: --seed {arguments.seed} plays the same faults again", flush=True)
    seconds = arguments.minutes * 60
    seen = soak(arguments.seed, seconds, folder, say, words=arguments.words)
    findings = judge(seen)
    _show(seen)
    if hold(findings):
        if arguments.output is None:
            shutil.rmtree(folder)
        return
    print(f"seed {arguments.seed} failed; the manager's log and the script: {folder}")
    sys.exit(1)


def _arguments() -> argparse.Namespace:
    known = parser("tests.soak", "Soaks a manager.")
    known.add_argument("--minutes", type=float, default=15.0, help="how long things go wrong")
    known.add_argument("--words", nargs="+", choices=WORDS, default=WORDS, help="what goes wrong")
    known.add_argument("--output", type=Path, help="keep log, script and outside there")
    arguments = known.parse_args()
    if arguments.minutes < 0.25:
        known.error("--minutes has to be at least 0.25")
    return arguments


def _show(seen: Seen) -> None:
    warm = seen.warm
    threads = [sample.threads for sample in warm]
    figures = {
        "objects": str(len(seen.lives)),
        "operations asked for": str(sum(life.asked for life in seen.lives)),
        **_outcomes(seen),
        "things outside": str(len(seen.outside)),
        "Orphans": str(len(seen.orphans)),
    }
    if warm:
        figures |= {
            f"memory after at most {WARM_UP:g} s, MiB": f"{warm[0].memory:.1f}",
            "memory at the end, MiB": f"{warm[-1].memory:.1f}",
            "growth, MiB a minute": f"{growth(warm):.2f} over {warm[-1].at - warm[0].at:.0f} s",
            "threads, least to most": f"{min(threads)} to {max(threads)}",
        }
    table = new_table("", "", title="What there was")
    for row in figures.items():
        table.add_row(*row)
    Screen().print(table)


def _outcomes(seen: Seen) -> dict[str, str]:
    everything = [outcome for outcomes in seen.outcomes.values() for outcome in outcomes]
    return {f"outcome {name}": str(everything.count(name)) for name in sorted(set(everything))}


if __name__ == "__main__":
    main()
