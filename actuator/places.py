"""Places: the file and line of an author's class or method, for messages about it."""

from inspect import getsourcefile, getsourcelines
from typing import Any


def place_of(*subjects: Any) -> str:
    """Return " (FILE:LINE)" of the first class or function whose source is available, or ""."""
    for subject in subjects:
        try:
            return f" ({getsourcefile(subject)}:{getsourcelines(subject)[1]})"
        except (OSError, TypeError):
            continue
    return ""
