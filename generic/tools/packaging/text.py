"""Manifests as YAML text, Go templates included, and folders of text as a packed chart."""

from __future__ import annotations

import base64
import gzip
import io
import re
import tarfile
from collections.abc import Mapping
from typing import Any

import yaml

from actuator.meta import Raw

__all__ = ["literal_text", "packed", "plain_text", "switched", "yaml_text"]

_QUOTED_TEMPLATE = re.compile(r"'(\{\{[^']*\}\})'")


class _Dumper(yaml.SafeDumper):
    """Writes what occurs twice twice, and not as an alias."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def yaml_text(*documents: Raw) -> str:
    """The documents as YAML; a string that is a Go template stands there without quotes."""
    return _QUOTED_TEMPLATE.sub(r"\1", plain_text(*documents))


def literal_text(document: Raw) -> str:
    """The document as YAML in which Helm finds no Go template."""
    return plain_text(document).replace("{{", '{{ "{{" }}')


def plain_text(*documents: Raw) -> str:
    """The documents as YAML, for a file that is no template."""
    return yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, width=10_000)


def switched(value: str, text: str, otherwise: str = "") -> str:
    """One manifest where values.yaml says so, and else the other one."""
    if text == otherwise:
        return text
    return f"{{{{- if .Values.{value} }}}}\n{text}{{{{- else }}}}\n{otherwise}{{{{- end }}}}\n"


def packed(folder: str, files: Mapping[str, str]) -> str:
    """A chart as a ControllerDeployment carries it: tar, gzip, base64; the same every time."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for path, text in files.items():
            content = text.encode()
            entry = tarfile.TarInfo(f"{folder}/{path}")
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return base64.b64encode(gzip.compress(archive.getvalue(), mtime=0)).decode("ascii")
