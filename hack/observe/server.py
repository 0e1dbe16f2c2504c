"""A real Prometheus that scrapes one manager, on loopback, in its own folder."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
import urllib3

from actuator.errors import ActuatorError
from generic.tools.monitoring import GROUPS, rule_file
from hack.processes import running


@attrs.frozen
class Prometheus:
    """The used part of its HTTP API."""

    url: str
    _http: urllib3.PoolManager = attrs.field(factory=urllib3.PoolManager)

    def query(self, expr: str) -> list[dict[str, Any]]:
        """Evaluate the expression now. Raises ActuatorError if it is invalid."""
        found = self._get("query", {"query": expr})["result"]
        if isinstance(found, list):
            return [one for one in found if isinstance(one, dict)]
        return []

    def rules(self) -> list[dict[str, Any]]:
        """Return each rule with its health, and the state of alerts."""
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
    """Run Prometheus while the context is open. Raises ActuatorError if it is not ready."""
    (folder / "rules.json").write_text(json.dumps(rule_file(GROUPS, "docs/runbooks")))
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.json"],
        "scrape_configs": [
            {"job_name": "extension", "static_configs": [{"targets": [target]}]},
        ],
    }
    written = folder / "prometheus.json"
    written.write_text(json.dumps(config))
    address = f"127.0.0.1:{port}"
    command = [
        *(str(program), f"--config.file={written}", f"--storage.tsdb.path={folder / 'data'}"),
        *(f"--web.listen-address={address}", "--log.level=warn"),
    ]
    with running(command, folder / "prometheus.log", address, "/-/ready"):
        yield Prometheus(f"http://{address}")
