"""The adversary: attacks a manager with generated input, and judges its effects on others.

    python -m tests.adversary [--inputs 10000] [--seed N] [--family objects values predicates]

The seed is printed: it plays the same inputs again, with --only a single one of them. Exit
status 1 when a rule was broken.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from generic.testing.envtest import Environment
from tests.adversary.run import FAMILIES, attack
from tests.support.driver import hold, parser, say


def main() -> None:
    """Attacks, prints the result, and exits."""
    known = parser("tests.adversary", "Attacks.")
    known.add_argument("--inputs", type=int, default=10_000, help="of each family")
    known.add_argument("--family", nargs="+", choices=FAMILIES, default=FAMILIES)
    known.add_argument("--only", type=int, nargs="+", help="numbers of the inputs to play")
    arguments = known.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="adversary-"))
    broken = False
    with Environment(progress=say) as environment:
        for family in arguments.family:
            say(f"{family}: seed {arguments.seed}")
            numbers = arguments.only or range(arguments.inputs)
            report = attack(environment, arguments.seed, family, numbers, folder, say)
            say(f"{family}: {report}")
            if not hold(report.findings):
                broken = True
                say(f"again: python -m tests.adversary --seed {arguments.seed} --family {family}")
    if broken:
        say(f"the managers' logs: {folder}")
        sys.exit(1)


if __name__ == "__main__":
    main()
