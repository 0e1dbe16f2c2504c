"""A tenant's API server that answers anything, at any speed, and the rules for a client of it.

`answers(dice)` generates what it sends; `Target.problem` asks, and says which rule was broken.
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from actuator.errors import ApiError
from generic.kube.client import HttpClient
from tests.adversary import texts
from tests.adversary.inputs import dice_of
from tests.tenantside import LISTS, NODES, OK, PHASES, Script, Step, TenantServer, head, playing

__all__ = ["AT_ONCE", "Input", "Target", "input_of", "serving"]

AT_ONCE = 5
_SLACK = 3.0
_MIB = 200.0
_MAX_TEXT = 9000
_STATUSES = ("200 OK", "200", "201 C", "404 Not Found", "403 F", "410 G", "500 E", "503 B", "302 M")
_LENGTHS = ("0", "1", "-1", "99999999999999999999", "5, 6", "x", "")
_CHARACTERS = (b"\r\n", b"\r\n\r\n", b"\x00", b":", b" ", b"0", b"1;", b"\xff", b"{", b'"')


@attrs.frozen
class Input:
    """An operation of the client, its seconds, and the server's script."""

    operation: str
    limit: float
    script: Script

    def ask(self, client: HttpClient) -> Any:
        if self.operation == "list":
            return client.list(NODES)
        if self.operation == "create":
            return client.create(NODES, {"metadata": {"name": "a"}})
        if self.operation == "patch":
            return client.patch(NODES, "a", "", {"metadata": {}})
        return client.get(NODES, "a")


def input_of(dice: random.Random) -> Input:
    """Slow in a known phase (one in ten), large (one in ten), or anything."""
    operation = dice.choice(("get", "list", "list", "list", "create", "patch"))
    limit = dice.choice((0.1, 0.3, 1.0))
    roll = dice.random()
    if roll < 0.1:
        return Input(operation, limit, PHASES[dice.choice([*PHASES])])
    if roll < 0.2:
        steps = LISTS[dice.choice([*LISTS])]
        return Input("list", 10.0, playing(steps))
    answers = [_slowed(_answer(dice), dice) for _ in range(dice.choice((1, 1, 2, 5)))]
    return Input(operation, limit, playing(*answers, closes=dice.random() < 0.5))


def _answer(dice: random.Random) -> bytes:
    """An answer as one would expect it, with up to three changes."""
    body = _page(dice) if dice.random() < 0.6 else texts.document(dice)
    text = body.encode(errors="surrogatepass")
    fields = [f"Content-Length: {len(text)}"]
    if dice.random() < 0.4:
        fields, text = ["Transfer-Encoding: chunked"], _chunked(text, dice)
    elif dice.random() < 0.2:
        fields = []
    if dice.random() < 0.1:
        fields.append(f"Content-Length: {dice.choice(_LENGTHS)}")
    if dice.random() < 0.1:
        fields.append(dice.choice(("Content-Encoding: gzip", "Connection: close", "Upgrade: h2c")))
    if dice.random() < 0.05:
        fields += [f"X-{number}: {'x' * 100}" for number in range(dice.choice((10, 2000)))]
    found = head(*fields, status=dice.choice(_STATUSES[:1] * 6 + _STATUSES)) + text
    if dice.random() < 0.1:
        found = head(status="103 Early Hints") * dice.choice((1, 10, 5000)) + found
    for _ in range(dice.choice((0, 0, 0, 1, 2, 3))):
        found = _changed(found, dice)
    return found


def _page(dice: random.Random) -> str:
    """A list, or nearly one."""
    item = dice.choice((texts.document, texts.value))
    items = ",".join(item(dice) for _ in range(dice.choice((0, 1, 3, 99, 100, 101))))
    written = f"[{items}]" if dice.random() < 0.9 else texts.value(dice)
    meta = f'{{"continue":{texts.value(dice, 1)}}}' if dice.random() < 0.5 else "{}"
    meta = meta if dice.random() < 0.9 else texts.value(dice)
    return f'{{"kind":{texts.value(dice, 1)},"metadata":{meta},"items":{written}}}'


def _chunked(text: bytes, dice: random.Random) -> bytes:
    size = dice.choice((1, 7, 1000, 10**7)) if len(text) < 10_000 else 10_000
    extension = dice.choice((b"", b"", b";a=b", b";" + b"x" * 1000))
    parts = [text[at : at + size] for at in range(0, len(text), size)]
    chunks = [b"%x%s\r\n%s\r\n" % (len(part), extension, part) for part in parts]
    return b"".join(chunks) + b"0\r\n" + dice.choice((b"", b"X: y\r\n" * 3)) + b"\r\n"


def _changed(text: bytes, dice: random.Random) -> bytes:
    """Cut, with something inserted, or with a part sent twice."""
    at = dice.randrange(min(len(text), dice.choice((100, 10**7))) + 1)
    way = dice.randrange(3)
    if way == 0:
        return text[:at]
    if way == 1:
        return text[:at] + dice.choice(_CHARACTERS) * dice.choice((1, 1, 100)) + text[at:]
    return text[:at] + text[max(0, at - dice.randrange(200)) :]


def _slowed(text: bytes, dice: random.Random) -> list[Step]:
    """At once, in pieces, or with one byte at a time from some place on."""
    way = dice.randrange(4)
    at = dice.randrange(len(text) + 1)
    if way == 0:
        drops: list[Step] = [(text[at + n : at + n + 1], 1, 0.02) for n in range(300)]
        return [(text[:at], 1, 0.0), *drops, (text[at + 300 :], 1, 0.0)]
    if way == 1:
        return [(text[:at], 1, 0.0), (text[at:], 1, dice.choice((0.05, 0.5, 5.0)))]
    return [(text, 1, 0.0)]


def _memory() -> float:
    """Resident MiB of this process, the servers included, which make what they send as they go."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


@attrs.define
class Target:
    """Clients of hostile servers, and of one of another tenant that only wants to be served."""

    complain: Callable[[str], None]
    _honest: TenantServer = attrs.field(factory=lambda: TenantServer(playing([(OK, 1, 0.0)])))
    _over: threading.Event = attrs.field(factory=threading.Event)
    _before: float = attrs.field(factory=_memory)

    def problem(self, given: Input) -> str | None:
        """The rule that this input breaks, None if it breaks none."""
        server = TenantServer(given.script)
        began = time.monotonic()
        try:
            client = server.client(seconds=given.limit)
            found, error = given.ask(client), None
        except ApiError as raised:
            found, error = None, raised
        except Exception as raised:
            return f"it raises {type(raised).__name__}: {raised}"
        finally:
            server.close()
        if (took := time.monotonic() - began) > given.limit + _SLACK:
            return f"a request of {given.limit} s takes {took:.1f} s"
        if error is not None:
            return f"{len(str(error))} characters of error" if len(str(error)) > _MAX_TEXT else None
        items = found if given.operation == "list" else [found]
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            return f"the client returns {type(found).__name__}, with {type(items[0]).__name__}"
        return None

    def run(self) -> None:
        """Ask as the other tenant, and look at the memory, until the end."""
        client = self._honest.client(seconds=_SLACK)
        while not self._over.wait(0.1):
            try:
                client.get(NODES, "a")
            except ApiError as error:
                self.complain(f"another tenant is not served: {error}")
            if (memory := _memory()) > self._before + _MIB:
                self.complain(f"{self._before:.0f} MiB, then {memory:.0f} MiB")
                self._before = memory

    def close(self) -> None:
        self._over.set()
        self._honest.close()


@contextmanager
def serving(complain: Callable[[str], None]) -> Iterator[Target]:
    """A target, beside which another tenant is served; `complain` gets the rules broken there."""
    target = Target(complain)
    thread = threading.Thread(target=target.run, daemon=True)
    thread.start()
    try:
        yield target
    finally:
        target.close()
        thread.join()


def main(seed: int) -> None:
    """Ask for the numbers in the standard input, and print the problems; both are JSON."""
    problems: list[tuple[str, str]] = []

    def ask(number: int) -> None:
        if found := target.problem(input_of(dice_of(seed, "tenants", number))):
            problems.append((f"--only {number}", found))

    complain = lambda text: problems.append(("all inputs", text))
    with serving(complain) as target, ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(ask, json.load(sys.stdin)))
    json.dump(problems, sys.stdout)


if __name__ == "__main__":
    main(int(sys.argv[1]))
