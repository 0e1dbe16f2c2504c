# The public names of the package, for type checkers and for `__init__.py`.

from generic.library.programs.errors import EnvtestError as EnvtestError
from generic.testing.envtest.access import ClusterAccess as ClusterAccess
from generic.testing.envtest.binaries import Binaries as Binaries, find_binaries as find_binaries
from generic.testing.envtest.environment import Environment as Environment
