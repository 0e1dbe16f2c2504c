"""The versions that reports name."""

from pathlib import Path

import generic
from generic.serving.metrics import version


def product_version() -> str:
    """Return the installed version of this framework, or the folder that it is imported from."""
    if (found := version()) != "unknown":
        return found
    return f"not installed, imported from {Path(next(iter(generic.__path__))).parent}"
