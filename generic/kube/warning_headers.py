"""Warnings of the API server about writes that it accepted, such as a field that it drops.

Source: RFC 7234, section 5.5, and Kubernetes documentation, "Kubernetes API Concepts". Not here:
what was dropped for one object (`dropped`).
"""

import logging
import re

from generic.kube.printable import printable

logger = logging.getLogger(__name__)

_VALUE = re.compile(r'\b\d{3} [^ ,"]++ "((?:[^"\\]|\\.)*+)"', re.DOTALL)
_MAX_READ = 8192
_MAX_TEXT = 500
_MAX_KNOWN = 500
"""Maximum characters of a header and of a text, and number of texts that are remembered."""


class Warnings:
    """Logs each warning once for each collection of objects; safe to use from any thread."""

    def __init__(self) -> None:
        self._known: set[tuple[str, ...]] = set()

    def log(self, path: str, header: str) -> None:
        """Log the warnings in the header of the answer to a write of the object at `path`."""
        collection = re.sub("/namespaces/[^/]+/", "/", path).split("/")[:5]
        for text in read_warnings(header):
            if (key := (text, *collection)) in self._known:
                continue
            if len(self._known) >= _MAX_KNOWN:  # rather a second line later than none
                self._known.clear()
            self._known.add(key)
            fields = {"path": printable(path), "warning": text}
            logger.warning("the API server warns about a write", extra={"fields": fields})


def read_warnings(header: str) -> list[str]:
    """Return the printable texts of a header; those of repeated headers are joined by commas."""
    texts = [re.sub(r"\\(.)", r"\1", text) for text in _VALUE.findall(header[:_MAX_READ])]
    decoded = [text.encode("latin-1", "replace").decode(errors="replace") for text in texts]
    return [printable(" ".join(text.split()))[:_MAX_TEXT] for text in decoded]
