"""Helm as a program: run with limits of time and memory, ended with its actuator call.

Arguments are a list, values go through a pipe, the kubeconfig and credentials are private files
that are deleted afterwards. Helm's output is kept out of logs and errors, because it may quote
values; only phrases about the connection to the Target are repeated (`unreachable_because`).
Deciding which releases should exist does not belong here.
"""

import re
import resource
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

from actuator import ActuatorError, Cancelled, Context, ErrorCode
from generic.library.charts import helm_environment
from generic.library.programs import stop

SECONDS = 60.0
"""Maximum run time of helm; after that, a helm of a dead manager has ended too."""
_LOOK = 0.2
_MAX_BYTES = 16 << 20
"""Helm is ended if it prints more: a Target controls its output."""
MEMORY = 384 << 20
AT_ONCE = 2
"""Bytes of memory of one helm, which fails beyond, and how many run at the same time: together they
and the manager fit into the memory of the chart's pod. Targets and repositories send any size."""
_LIMITS = {resource.RLIMIT_DATA: MEMORY, resource.RLIMIT_FSIZE: 64 << 20}
"""Of memory and of a file, in bytes."""
_GO = {"GOMEMLIMIT": str(MEMORY * 3 // 4)}
"""Lets Go collect garbage before the limit (Go documentation, package runtime)."""
_NO_PLAIN_HTTP = {"HTTP_PROXY": "http://plain-http.invalid"}
"""Go's HTTP client sends plain requests to this proxy, except those to loopback addresses."""
_GRACE = 5.0
"""Seconds for a terminated helm to mark its release as unfinished."""


@attrs.frozen
class HelmResult:
    """The result of a helm command."""

    ok: bool
    output: str = attrs.field(repr=False)
    errors: str = attrs.field(repr=False)


@attrs.frozen
class Unreachable:
    """Why a Target or registry does not respond or refuses; `reason` is one CamelCase word."""

    reason: str
    text: str
    code: ErrorCode
    detail: str = ""
    """The phrase in helm's output that shows the cause; only for the manager's own log."""


@attrs.frozen
class Helm:
    """The program at `path`."""

    path: Path

    trust: Mapping[str, str] = attrs.field(factory=dict)
    """Variables with the CAs of repositories: SSL_CERT_FILE, SSL_CERT_DIR (Go, crypto/x509)."""

    _free: threading.Semaphore = attrs.field(
        factory=lambda: threading.Semaphore(AT_ONCE), init=False, eq=False, repr=False
    )

    def run(
        self, ctx: Context, private: Mapping[str, bytes], arguments: Sequence[str], values: str = ""
    ) -> HelmResult:
        """Run it once, for at most SECONDS or until the call has to end.

        `private` maps environment variables to the contents of the files that they name. Raises
        Cancelled, and ActuatorError if helm cannot be run. A timeout is a failed Answer.
        """
        ctx.check()
        while not self._free.acquire(timeout=_LOOK):
            ctx.check()
        try:
            return self._run(ctx, private, arguments, values)
        finally:
            self._free.release()

    def _run(
        self, ctx: Context, private: Mapping[str, bytes], arguments: Sequence[str], values: str
    ) -> HelmResult:
        seconds = min(SECONDS, ctx.remaining())
        with tempfile.TemporaryDirectory(prefix="actuator-helm-") as folder:
            environment = {**helm_environment(Path(folder)), **self.trust, **_NO_PLAIN_HTTP, **_GO}
            for variable, content in private.items():
                file = Path(folder, f"private-{variable}")
                file.touch(mode=0o600, exist_ok=False)
                file.write_bytes(content)
                environment[variable] = str(file)
            try:
                process = _start([str(self.path), *arguments], environment)
            except OSError as error:
                raise ActuatorError(f"helm cannot be run: {error.strerror}") from error
            with process:
                return _wait(ctx, process, values, ctx.clock.monotonic() + seconds)


def _start(command: Sequence[str], environment: dict[str, str]) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        text=True,
    )
    if sys.platform == "linux":
        for limit, most in _LIMITS.items():
            resource.prlimit(process.pid, limit, (most, most))  # not waited for, so it exists
    return process


def _wait(ctx: Context, process: subprocess.Popen[str], values: str, deadline: float) -> HelmResult:
    """Wait for helm, and check periodically whether the call has to end."""
    told: str | None = values
    while True:
        try:
            output, errors = process.communicate(told, timeout=_LOOK)
            return HelmResult(process.returncode == 0, output, errors)
        except subprocess.TimeoutExpired as so_far:
            told = None  # the input is sent only once
            size = len(so_far.output or b"") + len(so_far.stderr or b"")
            try:
                ctx.check()
            except Cancelled:
                stop(process, _GRACE)
                raise
            if size > _MAX_BYTES or ctx.clock.monotonic() > deadline:
                stop(process, _GRACE)
                return HelmResult(ok=False, output="", errors=_LATE)


_LATE = "i/o timeout"
_NO_ANSWER = (
    r"connection re\w+|no route to host|network is unreachable|i/o timeout|deadline exceeded|"
    r"handshake timeout|Client\.Timeout|: EOF|unexpected EOF|no such host|server misbehaving|"
    r"x509:|tls:|http: server gave|dial tcp|malformed HTTP|cluster unreachable"
)
_REASONS = {
    r"provide credentials|Unauthorized": Unreachable(
        "Unauthenticated",
        "its API server does not accept the credentials in the kubeconfig",
        ErrorCode.ERR_INFRA_UNAUTHENTICATED,
    ),
    r"is forbidden: User|Forbidden": Unreachable(
        "Forbidden",
        "its API server does not allow it with the credentials in the kubeconfig",
        ErrorCode.ERR_INFRA_UNAUTHORIZED,
    ),
    _NO_ANSWER: Unreachable(
        "NoAnswer",
        "its API server cannot be reached or is not trusted; check its address and CA",
        ErrorCode.ERR_INFRA_DEPENDENCIES,
    ),
}


def unreachable_because(errors: str) -> Unreachable | None:
    """Return why helm cannot use the Target; None for any other error.

    Until the API server has authenticated itself, all errors have the same reason and text:
    otherwise a tenant could scan the seed's network with kubeconfigs.
    """
    for pattern, found in _REASONS.items():
        if phrases := re.findall(pattern, errors):
            return attrs.evolve(found, detail=phrases[-1])
    return None
