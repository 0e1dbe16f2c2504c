"""HealthServer: /healthz, /readyz and /metrics over plain HTTP.

Checks are functions that return None if healthy, else the reason. A server answers only for the
checks it was given; every other path is 404. Not here: the checks themselves.
"""

import logging
from collections.abc import Callable, Mapping, Sequence

from generic.serving.httpserver import Address, Handler, HttpServer

logger = logging.getLogger(__name__)

Check = Callable[[], str | None]
"""Return None if healthy, else the reason."""

Remarks = Callable[[], Sequence[str]]
_Answer = tuple[int, bytes, str]
"""The status, the body, and its content type."""
_TEXT = "text/plain; charset=utf-8"


class HealthServer(HttpServer):
    """Serves in its own threads between `start` and `stop`."""

    def __init__(
        self,
        address: Address,
        *,
        healthz: Mapping[str, Check] | None = None,
        readyz: Mapping[str, Check] | None = None,
        remarks: Remarks = list,
        metrics: Callable[[], tuple[bytes, str]] | None = None,
    ) -> None:
        """`remarks` returns lines that /readyz shows besides the checks, without failing."""
        super().__init__(address, _HealthHandler)
        self.pages: dict[str, Callable[[bool], _Answer]] = {}
        if healthz is not None:
            self.pages["/healthz"] = lambda verbose: _run(healthz, verbose=verbose)
        if readyz is not None:
            self.pages["/readyz"] = lambda verbose: _run(readyz, remarks, verbose=verbose)
        if metrics is not None:
            self.pages["/metrics"] = lambda _verbose: (200, *metrics())


def _run(checks: Mapping[str, Check], remarks: Remarks = list, *, verbose: bool) -> _Answer:
    """Run all checks; the body lists them if one failed or `verbose` is set."""
    lines = []
    failed = False
    for name, check in checks.items():
        try:
            reason = check()
        except Exception as error:  # a check that raises has failed
            reason = f"{type(error).__name__}: {error}"
        failed = failed or reason is not None
        lines.append(f"[+]{name} ok" if reason is None else f"[-]{name} failed: {reason}")
    if not failed and not verbose:
        return (200, b"ok\n", _TEXT)
    lines += [f"[i]{remark}" for remark in remarks()]
    lines.append("not ok" if failed else "ok")
    return 503 if failed else 200, ("\n".join(lines) + "\n").encode(), _TEXT


class _HealthHandler(Handler):
    server: HealthServer

    def respond(self) -> None:
        path, _, query = self.path.partition("?")
        page = self.server.pages.get(path)
        self.server.answering(self.connection)
        if self.command == "POST":
            answer = 405, b"use GET\n", _TEXT
        elif page is None:
            answer = 404, b"not found\n", _TEXT
        else:
            try:
                answer = page("verbose" in query.split("&"))
            except Exception as error:  # unreadable metrics: report the error and continue
                logger.warning(
                    "HTTP handler failed", extra={"fields": {"path": path}}, exc_info=True
                )
                answer = 500, f"{type(error).__name__}: {error}\n".encode(), _TEXT
        self.answer(*answer)
