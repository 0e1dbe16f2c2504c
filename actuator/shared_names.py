"""Let `generic` and `extensions` be imported beside an author's folders of the same names.

Both names are common. Python imports the first folder or module on `sys.path` and hides the others:
with an author's own folder `generic` in the working directory, `from generic import Manager` fails.
With this finder, one package has the folders of both:

- `generic` is the framework's package. An author's submodules (`generic.mine`) are found behind it.
- `extensions` is the author's, with the samples behind it: a copied sample replaces the original.

The import of `actuator`, which sorts before both names, installs the finder.
"""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

_HOME = Path(__file__).parents[1]
_CONTRACT = Path("actuator", "__init__.py")
_FRAMEWORK = "generic"
_SAMPLES = "extensions"


def share_names() -> None:
    """Install the finder before all others, and update the packages that are already imported.

    Call it again after a change of `sys.path`.
    """
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
    for name in (_FRAMEWORK, _SAMPLES):
        imported = sys.modules.get(name)
        found = _find(name)
        if imported is not None and found is not None:
            imported.__path__ = _folders(found)


class _Finder:
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return one of the framework's packages; None for all other modules."""
        return _find(fullname) if fullname in (_FRAMEWORK, _SAMPLES) else None


def _find(name: str) -> ModuleSpec | None:
    """Return the package with the folders of both, if both exist; None without the framework's."""
    # An entry with an `actuator` is the framework, or another copy of it.
    others = [entry for entry in sys.path if not Path(entry, _CONTRACT).exists()]
    ours = PathFinder.find_spec(name, [str(_HOME)])
    authors = PathFinder.find_spec(name, others)
    if ours is None or authors is None:
        return ours
    first, second = (ours, authors) if name == _FRAMEWORK else (authors, ours)
    folders = [*_folders(first), *_folders(second)]
    found = first if first.loader else second  # a folder without __init__.py has no loader
    found.submodule_search_locations = folders
    return found


def _folders(spec: ModuleSpec) -> list[str]:
    return list(spec.submodule_search_locations or ())  # a module has none
