"""A tenant's API server: each request to it ends in time, and needs a bounded amount of memory."""

import gc
import json
import os
import socket
import subprocess
import sys
import threading
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from actuator.codec import read_json
from actuator.errors import ApiError, NotServed, ShootUnreachable, Unavailable
from generic.kube import connecting, tenants
from generic.kube.client import HttpClient, _quoted
from generic.kube.clock import SystemClock
from generic.kube.tenants import AnswerRefused, Share
from generic.kube.transport import HttpTransport
from generic.reconciler import calls
from generic.reconciler.calls import Call, ShootClient
from generic.reconciler.operation import Operation
from generic.tools.packaging.chart import MALLOC
from tests.support.cluster.tenant_server import (
    CLIENTS,
    DEPLOYMENTS,
    DISCOVERY,
    LISTS,
    NODES,
    OK,
    PHASES,
    TenantServer,
    head,
    late,
    playing,
    proxied,
    slow_names,
    whole,
)
from tests.support.objects.stand_ins import UNUSED

LIMIT = 0.4
SLACK = 2.0


@pytest.fixture(autouse=True)
def _without_a_proxy(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def start():
    servers = []
    gc.freeze()  # else each collection below looks at the whole suite's objects

    def started(*answers, **options):
        servers.append(TenantServer(playing(*answers, **options)))
        return servers[-1]

    yield started
    for server in servers:
        server.close()
    gc.collect()  # an unclosed socket fails the test


def open_files():
    return len(list(Path("/proc/self/fd").iterdir()))


def seconds(request):
    began = time.monotonic()
    with pytest.raises(ApiError) as caught:
        request()
    return time.monotonic() - began, caught.value


def test_a_request_ends_in_time_in_whatever_phase_the_server_is_slow():
    assert late(PHASES, LIMIT, SLACK) == ([], [])


def test_a_request_ends_in_time_also_through_a_proxy(monkeypatch):
    with proxied(monkeypatch):
        assert late(PHASES, LIMIT, SLACK) == ([], [])
    with proxied(monkeypatch, is_slow=True):
        assert late(["body"], LIMIT, SLACK) == ([], [])


def test_a_transport_that_does_not_check_its_deadline_is_seen(monkeypatch):
    made = HttpTransport.__init__

    def without_trust(*given, is_trusted, **named):
        made(*given, **named)

    monkeypatch.setattr(HttpTransport, "__init__", without_trust)
    phases = ["body", "chunk extension", "trailer"]
    assert late(phases, 0.2, 0.6) == (phases, [])


def test_an_operation_whose_requests_each_have_a_deadline_is_seen(monkeypatch):
    monkeypatch.setattr(HttpClient, "_ending", lambda self: self)
    phases = ["pages", "discovery"]
    assert late(phases, 0.6, 1.5) == (phases, [])


def test_a_name_that_is_not_resolved_takes_no_longer_than_the_request(start, monkeypatch):
    client = start([(OK, 1, 0.0)]).client("tenant.example", LIMIT)
    with slow_names(monkeypatch, 60.0) as asked, ThreadPoolExecutor(8) as pool:
        took = [pool.submit(seconds, lambda: client.get(NODES, "a")) for _ in range(8)]
        assert max(future.result()[0] for future in took) < LIMIT + SLACK
        assert asked == ["tenant.example"]
    with slow_names(monkeypatch, 0.0):
        assert client.get(NODES, "a") == {"kind": "Node"}


def test_the_number_of_names_that_are_resolved_at_a_time_is_bounded(start, monkeypatch):
    monkeypatch.setattr(connecting, "_MAX_LOOKUPS", 2)
    server = start([(OK, 1, 0.0)])
    with slow_names(monkeypatch, 60.0) as asked:
        for number in range(4):
            client = server.client(f"a{number}.example", 0.1)
            assert seconds(lambda client=client: client.get(NODES, "a"))[0] < SLACK
        assert server.client(seconds=5.0).get(NODES, "a")
        assert asked == ["a0.example", "a1.example"]


def test_all_addresses_of_a_name_have_the_time_of_one_request(monkeypatch):
    with socket.socket() as full:  # nobody accepts, so a connection is never established
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        address = full.getsockname()
        waiting = [socket.socket() for _ in range(3)]
        for item in waiting:
            item.setblocking(False)
            item.connect_ex(address)
        time.sleep(0.05)
        monkeypatch.setattr(connecting, "_look_up", lambda *_: [address] * 100)
        server = TenantServer(PHASES["silence"])
        client = server.client("many.example", LIMIT)
        assert seconds(lambda: client.get(NODES, "a"))[0] < LIMIT + SLACK
        server.close()
        for element in waiting:
            element.close()


def test_the_deadline_of_a_request_does_not_end_the_next_one_on_its_connection(start):
    server = start([(OK, 1, 0.0)])
    before = open_files()
    client = server.client(seconds=0.3)
    for _ in range(3):
        client.get(NODES, "a")
        time.sleep(0.2)
    assert server.accepted == 1
    assert open_files() <= before + 2  # the two ends of the connection


def test_a_second_answer_on_a_connection_ends_in_time_too(start):
    server = start(
        [(OK, 1, 0.0)], [(head("Transfer-Encoding: chunked"), 1, 0.0), (b"1", 9**9, 0.1)]
    )
    client = server.client(seconds=LIMIT)
    client.get(NODES, "a")
    assert seconds(lambda: client.get(NODES, "a"))[0] < LIMIT + SLACK
    assert server.accepted == 1


def call(operation=Operation.RECONCILE):
    return Call(operation, UNUSED, SystemClock(), lambda: None, 60.0)


def shoot_client(server, patience=None):
    return ShootClient(server.client(), call(), "shoot--a--b", patience or threading.Semaphore())


def test_only_some_requests_wait_long_for_slow_shoots(start, monkeypatch):
    monkeypatch.setattr(calls, "_SHOOT_SECONDS", 1.5)
    monkeypatch.setattr(calls, "_FORCED_SECONDS", 0.3)
    server = TenantServer(PHASES["body"])
    patience = threading.Semaphore(2)

    def waits(_number):
        client = shoot_client(server, patience)
        return seconds(lambda: client.get(NODES, "a"))[0]

    with ThreadPoolExecutor(6) as pool:
        took = sorted(pool.map(waits, range(6)))
    assert took[3] < 1.5 <= took[4]
    assert shoot_client(start([(OK, 1, 0.5)]), patience).get(NODES, "a")
    server.close()


def test_the_requests_of_a_call_to_its_shoot_share_their_time(start, monkeypatch):
    monkeypatch.setattr(calls, "_SHOOT_SECONDS", 0.6)
    client = shoot_client(start([(OK, 1, 0.25)]))
    began = time.monotonic()

    def many():
        while time.monotonic() < began + 10:
            client.get(NODES, "a")

    with pytest.raises(ShootUnreachable, match="shoot--a--b: ") as caught:
        many()
    assert 0.5 < time.monotonic() - began < 0.6 + SLACK
    assert str(caught.value).endswith("is not hibernated and that its API server runs")
    assert seconds(lambda: client.get(NODES, "a"))[0] < 0.2


def test_a_refused_answer_is_the_shoots_error_with_its_limit_and_its_remedy(start):
    answer = whole(b"[" + b"{}," * 999_999 + b"{}]", items=True)
    client = shoot_client(start(answer))
    with pytest.raises(ShootUnreachable) as caught:
        client.list(NODES)
    text = "shoot shoot--a--b: GET nodes: the answer needs more than 64 MiB of memory"
    assert str(caught.value) == f"{text}; select fewer objects"


NUMBER = 6_000
NAMES = [f"{number:06}" for number in range(NUMBER)]
EXPENSIVE = {
    "objects": [{}] * NUMBER,
    "lists": [[]] * NUMBER,
    "one field": [{"a": 1}] * NUMBER,
    "six fields": [dict.fromkeys("abcdef", 1)] * NUMBER,
    "eleven fields": [dict.fromkeys("abcdefghijk", 1)] * NUMBER,
    "distinct fields": [{name: name} for name in NAMES],
    "one object": {name: name for name in [f"{number:06}" for number in range(5_462)]},
    "strings": NAMES,
    "wide strings": [f"{name}\U0001f600" for name in NAMES],
    "latin strings": [f"{name}é" for name in NAMES],
    "a wide string": ["x" * 100_000 + "\U0001f600"],
    "no JSON": [float("nan"), "x" * 100_000 + "\U0001f600"],
    "numbers": list(range(1000, 1000 + NUMBER)),
    "fractions": [number / 7 for number in range(NUMBER)],
}
TEXTS = {
    **{
        f"{name}{'' if ascii else ', UTF-8'}": json.dumps(
            value, separators=(",", ":"), ensure_ascii=ascii
        ).encode()
        for name, value in EXPENSIVE.items()
        for ascii in (True, False)
    },
    "chains of objects": b"[" + b",".join([b'{"a":' * 150 + b"1" + b"}" * 150] * 50) + b"]",
    "chains of lists": b"[" + b",".join([b"[" * 150 + b"]" * 150] * 50) + b"]",
    "deep": b"[" * 200 + b",".join([b"[]"] * NUMBER) + b"]" * 200,
    "deeper": b"[" * 199 + b",".join([b"[[[]]]"] * NUMBER) + b"]" * 199,
    "brackets in strings": b"[" * 201 + b",".join([b'"[["'] * NUMBER) + b"]" * 201,
}


def underestimated(names):
    """Answers whose decoding needs more memory than expected."""
    found = []
    for name in names:
        text = TEXTS[name]
        share = Share("a test")
        share.grow_for(text)
        tracemalloc.start()
        read_json(text)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        if peak > share.size:
            found.append(name)
    return found


def test_no_answer_needs_more_memory_than_is_expected_before_it_is_decoded(monkeypatch):
    monkeypatch.setattr(tenants, "_MAX_TOTAL_BYTES", 2**40)
    assert underestimated(TEXTS) == []
    monkeypatch.setattr(tenants, "_PER_VALUE", 48)
    expensive = ["chains of objects", "distinct fields", "deep"]
    assert underestimated(expensive) == expensive


def test_memory_of_answers_counts_until_their_last_object_is_dropped(start, monkeypatch):
    monkeypatch.setattr(tenants, "_ALL", 8 * 2**20)
    wide = [
        {"metadata": {"name": str(n), "labels": {str(i): "x" for i in range(200)}}}
        for n in range(90)
    ]
    pages = [whole(wide, items=True)]
    small = [whole({"kind": "Node"})]
    other = start(*small).client()
    client = start(*pages).client()
    kept = client.list(NODES)[3]
    kept_too = client.list(NODES)[3]
    with pytest.raises(
        AnswerRefused, match="GET nodes: all answers need more than 8 MiB of memory"
    ):
        client.list(NODES)
    assert other.get(NODES, "a") == {"kind": "Node"}
    assert kept == kept_too
    del kept, kept_too
    assert len(client.list(NODES)) == 90


WRONG = {
    "more than asked for": {"items": [{}] * 101},
    "items are a text": {"items": "secret"},
    "items are an object": {"items": {"secret": 1}},
    "items are texts": {"items": ["secret"] * 3},
    "metadata is a text": {"metadata": "secret"},
    "metadata is a list": {"metadata": ["secret"]},
    "the token is a list": {"metadata": {"continue": ["secret"]}},
    "the token is long": {"metadata": {"continue": "secret" * 1000}},
    "the token has no encoding": {"metadata": {"continue": "secret\ud800"}},
    "pages without end": {"metadata": {"continue": "secret"}},
    "no object": ["secret"],
    "a number of a million digits": {"items": 10**4200},
}


@pytest.mark.parametrize("answer", WRONG.values(), ids=WRONG)
def test_a_wrong_list_is_an_error_that_repeats_nothing_of_it(start, answer):
    with pytest.raises(Unavailable) as caught:
        start(whole(answer)).client().list(NODES)
    assert "secret" not in str(caught.value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("kind", ["Node", 5, None, ["x"], {"a": 1}, "x" * 1000])
def test_a_list_of_an_odd_kind_is_read(start, kind):
    [item] = start(whole({"kind": kind, "items": [{"a": 1}]})).client().list(NODES)
    assert item["a"] == 1
    assert item["apiVersion"] == "v1"


def test_all_pages_are_read_and_no_more_than_a_hundred(start):
    def page(number, more):
        meta = {"continue": f"token-{number}"} if more else {}
        return whole({"metadata": meta, "items": [{"number": number}]})

    server = start(*(page(number, number < 99) for number in range(100)))
    found = server.client().list(NODES)
    assert [item["number"] for item in found] == list(range(100))
    assert b"limit=100&continue=token-98 " in server.requests[-1]
    with pytest.raises(AnswerRefused, match="GET nodes: the list has more than 100 pages"):
        start(*(page(number, True) for number in range(101))).client().list(NODES)


def test_a_long_error_is_its_status_alone(start):
    answer = whole({"message": "x" * 300_000, "reason": "y" * 300_000}, status="403 Forbidden")
    with pytest.raises(ApiError) as caught:
        start(answer).client().get(NODES, "a")
    assert caught.value.status == 403
    assert str(caught.value) == "GET /api/v1/nodes/a: HTTP 403"


@pytest.mark.parametrize("status", ["000", "099 No", "100 Continue", "102 Processing"])
def test_a_body_in_front_of_the_answer_is_refused(start, status):
    body = b"x" * 30_000
    for fields in (["Content-Length: 30000"], ["Transfer-Encoding: chunked"], []):
        client = start([(head(*fields, status=status) + body, 9**9, 0.0)]).client()
        took, error = seconds(partial(client.get, NODES, "a"))
        assert isinstance(error, Unavailable)
        assert took < SLACK


def test_bytes_around_a_body_are_limited_by_its_length(start):
    took, error = seconds(lambda: start(LISTS["chunk extensions"]).client().get(NODES, "a"))
    assert "the headers of the answer are too long" in str(error)
    assert took < SLACK
    small = b"".join(b"1\r\n%c\r\n" % byte for byte in b'{"a":"' + b"x" * 50_000 + b'"}')
    steps = [(head("Transfer-Encoding: chunked") + small + b"0\r\n\r\n", 1, 0.0)]
    assert start(steps).client().get(NODES, "a") == {"a": "x" * 50_000}


def test_a_404_leads_to_a_hundred_requests_at_most(start):
    server = start(*DISCOVERY)
    with pytest.raises(NotServed):
        server.client().get(DEPLOYMENTS, "a", "b")
    assert len(server.requests) == 102


def test_a_stream_of_a_tenants_server_is_refused(start):
    server = start([(head(), 1, 0.0), (b"x" * 60_000, 9**9, 0.0)])
    with (
        pytest.raises(AnswerRefused, match="GET /api/v1/nodes: a stream"),
        server.client().stream("/api/v1/nodes", {}, read_timeout=1.0),
    ):
        pass
    assert server.requests == []


LONG = "error during apply of object " * 8000
WIDE = ["\x7f" * 10**6]
ODD = {
    "a long message": {"conditions": [{"type": "Available", "status": "False", "message": LONG}]},
    "a list": {"conditions": [{"type": "Available", "status": WIDE, "message": WIDE}]},
    "a type": {"conditions": [{"type": WIDE, "status": "True"}]},
    "a generation": {"observedGeneration": WIDE},
}


@pytest.mark.parametrize("status", ODD.values(), ids=ODD)
def test_a_health_check_shows_no_more_than_the_beginning_of_a_value(status):
    generation = ["\x80"] if "observedGeneration" in status else 0
    obj = {"metadata": {"generation": generation}, "status": status}
    client: Any = SimpleNamespace(get=lambda *_: obj)
    tracemalloc.start()
    began = time.process_time()
    found = CLIENTS["health check"](client, 5.0)
    took = time.process_time() - began
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(found.detail) < 9000
    assert took < 2.0  # with the square of the length: 5 s
    assert peak < 2 * 2**20


def test_long_names_are_not_kept(start):
    client = start(whole({})).client()
    _quoted.cache_clear()
    client.get(NODES, "x" * 5000)
    client.get(NODES, "y")
    assert _quoted.cache_info().currsize == 1


CHILD = """
import sys, threading
from generic.kube.client import connect
from generic.kube.kubeconfig import read_kubeconfig
from actuator import Resource
from actuator.errors import ApiError

def most():
    lines = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return int(lines["VmHWM"].split()[0]) // 1024

nodes = Resource("v1", "nodes", namespaced=False)
before, barrier = most(), threading.Barrier(5)

def ask(kubeconfig):
    client = connect(read_kubeconfig(kubeconfig))
    try:
        kept = client.list(nodes)
        outcome = f"{len(kept)} objects"
    except ApiError as error:
        kept, outcome = None, str(error)
    barrier.wait()  # all answers are in use at the same time
    print(outcome, file=sys.stderr)

for path in sys.argv[1:]:
    threads = [threading.Thread(target=ask, args=(open(path, "rb").read(),)) for _ in range(5)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
print(most() - before)
"""


def test_five_answers_at_once_need_less_than_200_mib(tmp_path):
    names = ["15 MiB of objects", "nested", "just so many objects", "a string", "large pages"]
    names += ["bodies of no answer", "quotes", "a kind that is long when shown"]
    servers = [TenantServer(playing(LISTS[name])) for name in names]
    for number, server in enumerate(servers):
        (tmp_path / str(number)).write_bytes(server.kubeconfig().encoded())
    paths = [str(tmp_path / str(number)) for number in range(len(servers))]
    command = [sys.executable, "-c", CHILD, *paths]
    environment = {**os.environ, **MALLOC}  # as the chart sets it
    done = subprocess.run(
        command, capture_output=True, check=True, text=True, timeout=120, env=environment
    )
    for server in servers:
        server.close()
    assert int(done.stdout) < 200
    assert len(done.stderr.splitlines()) == 5 * len(names)
