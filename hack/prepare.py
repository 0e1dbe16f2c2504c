"""Fetch and build the programs that tests run and no package index has, before the tests.

The embedded cluster's programs, helm, promtool and the programs of
`tests/support/landscape/go_programs.py` from their Go modules; PostgreSQL and MariaDB from the
packages of the machine's distribution. Existing programs are skipped. With the argument
`landscape` or `observe`: the programs of the tests on a real Gardener, or of monitoring, instead.
"""

import sys
from functools import partial
from pathlib import Path

from extensions.externaldatabase.rehearsal import DatabaseRehearsal
from extensions.externaldatabase.servers import ServerError
from generic.library.charts import find_helm
from generic.library.programs.errors import EnvtestError
from generic.testing.envtest.binaries import find_binaries
from generic.testing.landscape.programs import find_gardener
from hack.observe.programs import OBSERVING, find_program
from tests.support.landscape.go_programs import PROGRAMS

_say = partial(print, file=sys.stderr)


def main() -> None:
    """Prepare all programs; exit with status 1 and one sentence if one is not available."""
    try:
        find_binaries(_say)
        find_helm(_say)
        if sys.argv[1:] == ["landscape"]:
            find_gardener(_say)
            return
        if sys.argv[1:] == ["observe"]:
            for name in OBSERVING:
                find_program(name, _say)
            return
        find_program("promtool", _say)
        for build in PROGRAMS:
            build(_say)
        _say("starting PostgreSQL and MariaDB; fetching those that are not installed, if any")
        databases = DatabaseRehearsal()
        databases.start(Path())
        databases.stop()
    except (EnvtestError, ServerError) as error:
        sys.exit(f"Error: {error}")


if __name__ == "__main__":
    main()
