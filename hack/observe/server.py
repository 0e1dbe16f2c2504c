"""A real Prometheus that scrapes one manager, on loopback, in a folder of its own."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import urllib3

from actuator.errors import ActuatorError
from generic.library.programs.processes import stop
from generic.tools.monitoring import GROUPS, rule_file

__all__ = ["Prometheus", "prometheus"]

_EVERY = "1s"
_READY_SECONDS = 60.0
_STOP_SECONDS = 15.0


@attrs.frozen
class Prometheus:
    """Its HTTP API, as far as we ask it."""

    url: str
    _http: urllib3.PoolManager = attrs.field(factory=urllib3.PoolManager)

    def query(self, expr: str) -> list[dict[str, Any]]:
        """What the expression returns now. Raises ActuatorError where it is none."""
        found = self._get("query", {"query": expr})["result"]
        if isinstance(found, list):
            return [one for one in found if isinstance(one, dict)]
        return []

    def rules(self) -> list[dict[str, Any]]:
        """Each rule: its health, and the state of alerts."""
        groups = self._get("rules", {})["groups"]
        return [rule for group in groups for rule in group["rules"]]

    def _get(self, what: str, fields: dict[str, str]) -> Any:
        answer = self._http.request("GET", f"{self.url}/api/v1/{what}", fields=fields, timeout=10.0)
        body = json.loads(answer.data)
        if body["status"] != "success":
            raise ActuatorError(f"Prometheus refuses {fields}: {body.get('error')}")
        return body["data"]


@contextmanager
def prometheus(program: Path, folder: Path, port: int, target: str) -> Iterator[Prometheus]:
    """Runs while it is open. Raises ActuatorError where it does not get ready."""
    (folder / "rules.json").write_text(json.dumps(rule_file(GROUPS, "docs/runbooks")))
    config = {
        "global": {"scrape_interval": _EVERY, "evaluation_interval": _EVERY},
        "rule_files": ["rules.json"],
        "scrape_configs": [
            {"job_name": "extension", "static_configs": [{"targets": [target]}]},
        ],
    }
    written = folder / "prometheus.json"
    written.write_text(json.dumps(config))
    log = folder / "prometheus.log"
    command = [
        *(str(program), f"--config.file={written}", f"--storage.tsdb.path={folder / 'data'}"),
        *(f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"),
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        server = Prometheus(f"http://127.0.0.1:{port}")
        _wait_ready(server, process, log)
        yield server
    finally:
        stop(process, _STOP_SECONDS)


def _wait_ready(server: Prometheus, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _READY_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            server.query("vector(1)")
            return
        except (urllib3.exceptions.HTTPError, ActuatorError, ValueError):
            time.sleep(0.2)
    tail = "\n".join(log.read_text(errors="replace").splitlines()[-10:])
    raise ActuatorError(f"Prometheus did not get ready:\n{tail}")
