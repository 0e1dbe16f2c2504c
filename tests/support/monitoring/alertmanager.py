"""A real Alertmanager, the notifications that it sends, and rules whose time runs faster.

Not here: the alerts (`generic.tools.monitoring`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.request import Request, urlopen

import attrs

from actuator.meta import Raw
from generic.testing.envtest.servers import free_port
from hack.observe.programs import find_program
from hack.processes import running

FASTER = 120
"""The factor by which rules run faster: 15 minutes are 7.5 seconds."""
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"(\d+)([smhd])")
_RANGE = re.compile(r"(?<=[\[:])\d+[smhd](?=[\]:])|(?<= offset )\d+[smhd]\b")


@attrs.frozen
class Notification:
    """One notification: the names of its firing and of its resolved alerts."""

    firing: Sequence[str]
    resolved: Sequence[str]


class Receiver:
    """A webhook that receives notifications; the path is the name of a receiver."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._received: list[tuple[str, Notification]] = []

    def add(self, path: str, body: Raw) -> None:
        names: dict[str, list[str]] = {"firing": [], "resolved": []}
        for alert in body["alerts"]:
            names[alert["status"]].append(alert["labels"]["alertname"])
        found = Notification(sorted(names["firing"]), sorted(names["resolved"]))
        self._received.append((path.strip("/"), found))

    def of(self, name: str) -> list[Notification]:
        """Return the notifications of a receiver."""
        return [found for receiver, found in self._received if receiver == name]

    def pages(self, name: str) -> list[list[str]]:
        """Return the notifications about firing alerts: the names of each."""
        return [list(found.firing) for found in self.of(name) if found.firing]

    def resolved(self, name: str) -> set[str]:
        """Return the names of all alerts that were reported as resolved."""
        return {alert for found in self.of(name) for alert in found.resolved}


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Receive notifications within the block."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            receiver.add(self.path, json.loads(self.rfile.read(length)))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver = Receiver(f"127.0.0.1:{server.server_port}")
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()


def webhook(receiver: Receiver, name: str, **more: Any) -> Raw:
    """Return the configuration of a receiver that sends to the webhook."""
    return {"name": name, "webhook_configs": [{"url": f"http://{receiver.address}/{name}", **more}]}


@contextmanager
def running_alertmanager(config: Raw, folder: Path) -> Iterator[str]:
    """Alertmanager, alone, with a configuration; yields its address."""
    folder.mkdir()
    path = folder / "alertmanager.json"
    path.write_text(json.dumps(config))  # JSON is YAML
    address = f"127.0.0.1:{free_port()}"
    command = [str(find_program("alertmanager", print)), f"--config.file={path}"]
    command += [f"--storage.path={folder / 'data'}", f"--web.listen-address={address}"]
    command += ["--cluster.listen-address=", "--log.level=warn"]
    with running(command, folder / "alertmanager.log", address, "/-/ready"):
        yield address


def send(address: str, alerts: Sequence[Raw]) -> None:
    """Send alerts as Prometheus does."""
    headers = {"Content-Type": "application/json"}
    request = Request(f"http://{address}/api/v2/alerts", json.dumps(alerts).encode(), headers)
    with urlopen(request, timeout=10):
        pass


def known(address: str) -> list[Raw]:
    """Return the alerts that Alertmanager knows, with their states."""
    with urlopen(f"http://{address}/api/v2/alerts", timeout=10) as answer:
        found: list[Raw] = json.load(answer)
    return found


def faster(groups: Sequence[Raw]) -> list[Raw]:
    """Return the rules with every duration divided by FASTER."""
    return [{**group, "rules": [_faster(rule) for rule in group["rules"]]} for group in groups]


def _faster(rule: Raw) -> Raw:
    keys = [key for key in rule if key in {"for", "keep_firing_for"}]
    periods = {key: _shorter(rule[key]) for key in keys}
    expr = _RANGE.sub(lambda match: _shorter(match[0]), rule["expr"])
    return {**rule, **periods, "expr": expr}


def _shorter(duration: str) -> str:
    seconds = sum(int(number) * _SECONDS[unit] for number, unit in _DURATION.findall(duration))
    return f"{max(round(seconds * 1000 / FASTER), 1)}ms"
