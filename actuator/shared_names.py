"""Imports of `generic` and `extensions` find the framework beside an author's folders of that name.

Both names are common. Python imports the first folder or module on `sys.path` and hides the others:
with an author's own folder `generic` in the working directory, `from generic import Manager` fails.
With this finder one package has the folders of both:

- `generic` is the framework's package. An author's submodules (`generic.mine`) are found behind it.
- `extensions` is the author's, with the samples behind it: a copied sample replaces the original.

The finder works from the import of `actuator` on, which sorts before the two.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

__all__ = ["share_names"]

_HOME = Path(__file__).parents[1]
_CONTRACT = Path("actuator", "__init__.py")
_FRAMEWORK, _SAMPLES = "generic", "extensions"


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the package with the folders of both; None where one of them does not exist."""
        if fullname not in (_FRAMEWORK, _SAMPLES):
            return None
        # An entry with an `actuator` is the framework, or another copy of it.
        others = [entry for entry in sys.path if not Path(entry, _CONTRACT).exists()]
        ours = PathFinder.find_spec(fullname, [str(_HOME)])
        authors = PathFinder.find_spec(fullname, others)
        if ours is None or authors is None:
            return ours
        first, second = (ours, authors) if fullname == _FRAMEWORK else (authors, ours)
        folders = [*_folders(first), *_folders(second)]
        found = first if first.loader else second  # a folder without __init__.py has no loader
        found.submodule_search_locations = folders
        return found


def _folders(spec: ModuleSpec) -> Sequence[str]:
    return list(spec.submodule_search_locations or ())  # a module has none


def share_names() -> None:
    """Install the finder before all others. Calling it again does nothing."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
