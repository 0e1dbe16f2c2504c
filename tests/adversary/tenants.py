"""A tenant's API server that answers anything, at any speed, and the rules for all clients of it.

    python -m tests.adversary.tenants SEED [MODULE:FUNCTION]

`input_of(rng)` generates a client, the answers of its server and a proxy, and their speed;
`Target.problem` asks, and returns the broken rule. The functions are called first: a test
patches a mistake into the product.
"""

from __future__ import annotations

import faulthandler
import importlib
import json
import logging
import os
import random
import resource
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest

from actuator.errors import ApiError, Cancelled, ShootUnreachable
from generic.kube.client import HttpClient
from generic.library.healthchecks.model import HealthResult
from generic.testing.envtest import Environment
from generic.tools.packaging.chart import MALLOC
from tests.adversary import texts
from tests.adversary.inputs import rng_of
from tests.adversary.judge import Report
from tests.support.cluster.tenant_server import (
    CLIENTS,
    DISCOVERY,
    LISTS,
    NODES,
    OK,
    PHASES,
    PROXIES,
    Script,
    Step,
    TenantServer,
    head,
    playing,
    slow_names,
)

__all__ = ["AT_ONCE", "Input", "Target", "attack_tenants", "input_of", "serving"]

AT_ONCE = 5
SLACK = 3.0
"""Seconds that a request may take beyond its time."""
_FROZEN_SECONDS = 60
"""Seconds without any answer in which one thread keeps all others waiting."""
_NAME_SECONDS = 3.0
_MIB = 200.0
_ADDRESS_SPACE = 6 * 2**30
"""Bytes: a larger allocation fails here, and not on the whole machine."""
_MAX_TEXT = 9000
_MAX_LEVELS = 205
_MAX_REQUESTS = 103
_STATUSES = ("200 OK", "200", "201 C", "404 Not Found", "403 F", "410 G", "500 E", "503 B", "302 M")
_EARLY = ("000", "099 No", "100 Continue", "101 S", "102 Processing", "103 Early Hints", "199 X")
_LENGTHS = ("0", "1", "-1", "99999999999999999999", "5, 6", "x", "")
_CHARACTERS = (b"\r\n", b"\r\n\r\n", b"\x00", b":", b" ", b"0", b"1;", b"\xff", b"{", b'"')
_FRAGMENTS = ("[", "]", "{", "}", '{"":', '"', '""', "\\", '\\"', '"]', ",", "1", "1e9", "\u2201")


@attrs.frozen
class Input:
    """A client, its seconds, and its server; a proxy and a name if they are not usual."""

    client: str
    limit: float
    script: Script
    proxy: str = ""
    host: str = "127.0.0.1"


def input_of(rng: random.Random) -> Input:
    """Slow in a known phase (one in ten), large (one in ten), or anything."""
    client = rng.choice([*CLIENTS])
    limit = rng.choice((0.1, 0.3, 1.0))
    roll = rng.random()
    if roll < 0.1:
        return Input(client, limit, PHASES[rng.choice([*PHASES])], **_way(rng))
    if roll < 0.2:
        return large(client, rng.choice([*LISTS]))
    answers = [_slowed(_answer(rng), rng) for _ in range(rng.choice((1, 1, 2, 5)))]
    if rng.random() < 0.1:
        answers = [*DISCOVERY, *answers]
    script = playing(*answers, closes=rng.random() < 0.5)
    return Input(client, limit, script, **_way(rng))


def large(client: str, what: str) -> Input:
    """A large answer, with the time to send it."""
    return Input(client, 10.0, playing(LISTS[what]))


def _way(rng: random.Random) -> dict[str, str]:
    """The way to the server: as usual, through a proxy, or by a name."""
    roll = rng.random()
    if roll < 0.1:
        return {"proxy": rng.choice([*PROXIES])}
    if roll < 0.15:
        return {"host": f"{rng.randrange(10**6)}.example"}
    return {}


def _text(rng: random.Random) -> bytes:
    """JSON, nearly JSON, or parts of it again and again; in UTF-8, or not."""
    roll = rng.random()
    if roll < 0.5:
        text = _page(rng)
    elif roll < 0.8:
        text = texts.document(rng)
    else:
        parts = rng.choices(_FRAGMENTS, k=rng.randrange(1, 8))
        text = "".join(part * rng.choice((1, 2, 201, 1100, 20_000)) for part in parts)
    encoding = rng.choice(("utf-16-le", "utf-32-be")) if rng.random() < 0.05 else "utf-8"
    return text.encode(encoding, errors="surrogatepass")


def _answer(rng: random.Random) -> bytes:
    """An answer as one would expect it, with up to three changes."""
    text = _text(rng)
    fields = [f"Content-Length: {len(text)}"]
    if rng.random() < 0.4:
        fields = ["Transfer-Encoding: chunked"]
        text = _chunked(text, rng)
    elif rng.random() < 0.2:
        fields = []
    if rng.random() < 0.1:
        fields.append(f"Content-Length: {rng.choice(_LENGTHS)}")
    if rng.random() < 0.1:
        fields.append(rng.choice(("Content-Encoding: gzip", "Connection: close", "Upgrade: h2c")))
    if rng.random() < 0.05:
        fields += [f"X-{number}: {'x' * 100}" for number in range(rng.choice((10, 2000)))]
    found = head(*fields, status=rng.choice(_STATUSES[:1] * 6 + _STATUSES)) + text
    if rng.random() < 0.1:
        early = head(*fields[: rng.randrange(2)], status=rng.choice(_EARLY))
        early += rng.choice((b"", text, b"2\r\n{}\r\n"))
        found = early * rng.choice((1, 10, 5000) if len(early) < 1000 else (1, 10)) + found
    for _ in range(rng.choice((0, 0, 0, 1, 2, 3))):
        found = _changed(found, rng)
    return found


def _page(rng: random.Random) -> str:
    """A list, or nearly one."""
    item = rng.choice((texts.document, texts.value))
    items = ",".join(item(rng) for _ in range(rng.choice((0, 1, 3, 99, 100, 101))))
    written = f"[{items}]" if rng.random() < 0.9 else texts.value(rng)
    meta = f'{{"continue":{texts.value(rng, 1)}}}' if rng.random() < 0.5 else "{}"
    meta = meta if rng.random() < 0.9 else texts.value(rng)
    return f'{{"kind":{texts.value(rng, 1)},"metadata":{meta},"items":{written}}}'


def _chunked(text: bytes, rng: random.Random) -> bytes:
    size = rng.choice((1, 7, 1000, 10**7)) if len(text) < 10_000 else 10_000
    extension = rng.choice((b"", b"", b";a=b", b";" + b"x" * 1000))
    parts = [text[at : at + size] for at in range(0, len(text), size)]
    chunks = [b"%x%s\r\n%s\r\n" % (len(part), extension, part) for part in parts]
    return b"".join(chunks) + b"0\r\n" + rng.choice((b"", b"X: y\r\n" * 3)) + b"\r\n"


def _changed(text: bytes, rng: random.Random) -> bytes:
    """Cut, with something inserted, or with a part sent twice."""
    at = rng.randrange(min(len(text), rng.choice((100, 10**7))) + 1)
    way = rng.randrange(3)
    if way == 0:
        return text[:at]
    if way == 1:
        return text[:at] + rng.choice(_CHARACTERS) * rng.choice((1, 1, 100)) + text[at:]
    return text[:at] + text[max(0, at - rng.randrange(200)) :]


def _slowed(text: bytes, rng: random.Random) -> list[Step]:
    """At once, in pieces, or with one byte at a time from some place on."""
    way = rng.randrange(4)
    at = rng.randrange(len(text) + 1)
    if way == 0:
        drops: list[Step] = [(text[at + n : at + n + 1], 1, 0.02) for n in range(300)]
        return [(text[:at], 1, 0.0), *drops, (text[at + 300 :], 1, 0.0)]
    if way == 1:
        return [(text[:at], 1, 0.0), (text[at:], 1, rng.choice((0.05, 0.5, 5.0)))]
    return [(text, 1, 0.0)]


def _memory() -> float:
    """Peak memory of this process in MiB, with the servers, which generate their answers."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines["VmHWM"].split()[0]) / 1024


@attrs.define
class Target:
    """Clients of hostile servers, and of one of another tenant that only wants to be served."""

    complain: Callable[[str], None]
    _honest: TenantServer = attrs.field(factory=lambda: TenantServer(playing([(OK, 1, 0.0)])))
    _over: threading.Event = attrs.field(factory=threading.Event)
    _before: float = attrs.field(factory=_memory)

    def problem(self, given: Input) -> str | None:
        """The rule that this input breaks, None if it breaks none."""
        with ExitStack() as stack:
            server = TenantServer(given.script)
            proxy = None
            stack.callback(server.close)
            if given.proxy:
                proxy = TenantServer(PROXIES[given.proxy])
                stack.callback(proxy.close)
            client = server.client(given.host, given.limit, proxy)
            outcome = _started(given.client, client, given.limit)
            try:
                problem = outcome.result(given.limit + SLACK)
            except TimeoutError:
                problem = f"{given.client}: a request of {given.limit} s goes on"
            if len(server.requests) > _MAX_REQUESTS:
                problem = f"{given.client}: {len(server.requests)} requests"
        outcome.result(60.0)  # its connections are closed
        return problem

    def run(self) -> None:
        """Ask as the other tenant, and look at the memory, until the end."""
        client = self._honest.client()
        is_over = False
        while not is_over:
            is_over = self._over.wait(0.1)
            try:
                client.get(NODES, "a")
            except ApiError as error:
                self.complain(f"another tenant is not served: {error}")
            if (memory := _memory()) > self._before + _MIB:
                self.complain(f"{self._before:.0f} MiB, then {memory:.0f} MiB")
                self._before = memory
        self._honest.close()

    def close(self) -> None:
        self._over.set()


def _started(name: str, client: HttpClient, limit: float) -> Future[str | None]:
    """The problem of a request that is sent in a thread of its own."""
    future: Future[str | None] = Future()

    def run() -> None:
        try:
            problem = _wrong(name, CLIENTS[name](client, limit))
        except BaseException as error:
            problem = _wrong(name, error)
        future.set_result(problem)

    threading.Thread(target=run, daemon=True).start()
    return future


def _wrong(client: str, found: Any) -> str | None:
    """The problem with a result, None if there is none."""
    if isinstance(found, BaseException):
        is_left = isinstance(found, Cancelled) and client == "ctx.shoot"
        if not (isinstance(found, ApiError) or is_left):
            return f"{client}: raises {type(found).__name__}: {str(found)[:200]}"
        if client == "ctx.shoot" and getattr(found, "status", 0) == 0 and not is_left:
            return None if isinstance(found, ShootUnreachable) else f"{type(found).__name__}"
        text = str(found)
    else:
        text = found.detail if isinstance(found, HealthResult) else ""
    if len(text) > _MAX_TEXT:
        return f"{client}: {len(text)} characters of error"
    if isinstance(found, (BaseException, HealthResult, bytes, type(None))):
        return None
    items = found if client in ("list", "ctx.shoot") else [found]
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        return f"{client}: returns {type(found).__name__}, with {type(items[0]).__name__}"
    return f"{client}: too many levels" if _levels(found) > _MAX_LEVELS else None


def _levels(value: Any) -> int:
    levels = 0
    inner = [value]
    while inner := [item for item in inner if isinstance(item, (dict, list))]:
        levels += 1
        inner = [v for item in inner for v in (item.values() if isinstance(item, dict) else item)]
    return levels


@contextmanager
def serving(complain: Callable[[str], None]) -> Iterator[Target]:
    """A target, beside which another tenant is served; `complain` gets the rules broken there."""
    target = Target(complain)
    thread = threading.Thread(target=target.run, daemon=True)
    with pytest.MonkeyPatch.context() as patch, slow_names(patch, _NAME_SECONDS):
        thread.start()
        try:
            yield target
        finally:
            target.close()
            thread.join()


def attack_tenants(
    _environment: Environment | None,
    seed: int,
    numbers: Sequence[int | tuple[str, str]],
    report: Report,
    plants: Sequence[str] = (),
    frozen_seconds: int = _FROZEN_SECONDS,
) -> None:
    """Ask in a process of its own, whose memory is that of a pod; a pair is for `large`."""
    command = [sys.executable, "-m", "tests.adversary.tenants", str(seed), *plants]
    asked = subprocess.run(
        command,
        input=json.dumps([frozen_seconds, *numbers]),
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
        env={**os.environ, **MALLOC},
    )
    for line in asked.stdout.splitlines():
        report.complain("tenant", *json.loads(line))
    if asked.returncode:
        report.complain("tenant", "all inputs", f"the process ended: {asked.stderr[:3000]}")
    report.counts["lived"] += len(numbers)


def main(seed: int, *plants: str) -> None:
    """Ask for the numbers in the standard input, and print each problem; both are JSON."""
    frozen_seconds, *numbers = json.load(sys.stdin)
    for module, _, function in (plant.partition(":") for plant in plants):
        getattr(importlib.import_module(module), function)()
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    logging.disable()  # standard error has the stack of what keeps the interpreter
    lock = threading.Lock()
    _warm_up()

    def say(what: str, problem: str) -> None:
        with lock:
            print(json.dumps([what, problem]), flush=True)

    def ask(number: int | list[str]) -> None:
        if isinstance(number, list):
            given = large(*number)
        else:
            given = input_of(rng_of(seed, "tenants", number))
        if found := target.problem(given):
            say(f"--only {number}", found)
        with lock:  # no thread of Python may run if another one keeps the interpreter
            faulthandler.dump_traceback_later(frozen_seconds, exit=True)

    faulthandler.dump_traceback_later(frozen_seconds, exit=True)
    complain = lambda text: say("all inputs", text)
    with serving(complain) as target, ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(ask, numbers))
    faulthandler.cancel_dump_traceback_later()


def _warm_up() -> None:
    """Import the modules of the first use of a proxy: they are no memory of an answer."""
    proxy = TenantServer(PROXIES["forwards"])
    server = TenantServer(playing([(OK, 1, 0.0)]))
    for name in CLIENTS:
        _started(name, server.client(proxy=proxy), 5.0).result()
    proxy.close()
    server.close()


if __name__ == "__main__":
    main(int(sys.argv[1]), *sys.argv[2:])
