"""Fetch and build the programs that tests run and no package index has, before the tests.

The embedded cluster's programs, helm, promtool, the reader of kubeconfigs and the simulator of
MySQL from their Go modules; PostgreSQL and MariaDB from the packages of the machine's distribution.
Existing programs are skipped.
"""

import sys

from extensions.externaldatabase.rehearsal import Ground
from extensions.externaldatabase.servers import ServerError
from generic.library.charts import find_helm
from generic.library.programs.errors import EnvtestError
from generic.testing.envtest.binaries import find_binaries
from hack.observe.programs import find_program
from tests.adversary.kubeconfigs import build_reader
from tests.mysql_simulator import build_simulator


def main() -> None:
    """Prepare all programs; exit with status 1 and one sentence if one is not available."""
    try:
        find_binaries(_say)
        find_helm(_say)
        find_program("promtool", _say)
        build_reader(_say)
        build_simulator(_say)
        ground = Ground(_say)
        ground.start()
        ground.stop()
    except (EnvtestError, ServerError) as error:
        sys.exit(f"Error: {error}")


def _say(line: str) -> None:
    print(line, file=sys.stderr)


if __name__ == "__main__":
    main()
