# The public names of the package, for type checkers and for `__init__.py`.

from generic.library.programs.cache import cache_directory as cache_directory, locked as locked
from generic.library.programs.processes import (
    Process as Process,
    ProcessGroup as ProcessGroup,
    kill as kill,
    stop as stop,
)
