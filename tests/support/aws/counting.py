"""Counting: a simulated account that counts requests, and can hold one of them up."""

from __future__ import annotations

import threading
from typing import Any

from extensions.aws.simulator import Simulator


class Counting(Simulator):
    """Counts the requests at the extension's endpoint, and can hold one of them."""

    def __init__(self) -> None:
        super().__init__()
        self.arrived = 0
        self.hold_at = 0
        self.held = threading.Event()
        self.go = threading.Event()

    def _answer(self, environ: Any, start_response: Any) -> Any:
        if environ["SERVER_PORT"] == self.url.rpartition(":")[2]:
            self.arrived += 1
            if self.arrived == self.hold_at:
                self.held.set()
                self.go.wait(60)
        return super()._answer(environ, start_response)
