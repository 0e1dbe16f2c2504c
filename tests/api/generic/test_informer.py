"""Informers against the real API server, with all that goes wrong on the way there."""

import json
import random
import secrets
import threading
import time
from typing import Any

import pytest

from actuator import Resource
from actuator.errors import NotFound
from generic.kube.client import connect
from generic.kube.headers import EventType, header
from generic.kube.informer import Informer
from generic.kube.problems import ABSENT
from generic.kube.store import Store
from generic.testing.envtest import Environment
from generic.testing.envtest.servers import KillableServer
from generic.testing.seed import install_crds
from tests.support.cluster.fault_proxy import Answer, HttpProxy, TcpProxy, kubeconfig, status
from tests.support.cluster.harness import INFRASTRUCTURES, PATIENCE, eventually
from tests.support.objects import builders

ADDED, MODIFIED, DELETED = EventType
ROLES = Resource("rbac.authorization.k8s.io/v1", "roles")
BINDINGS = Resource("rbac.authorization.k8s.io/v1", "rolebindings")
CRDS = Resource("apiextensions.k8s.io/v1", "customresourcedefinitions", namespaced=False)


class Watching:
    """An informer in a thread, and its events."""

    def __init__(self, client, namespace, resource=INFRASTRUCTURES, **options):
        self.client = client
        self.store = Store(resource, options.pop("make_header", header))
        self.events = []
        self.lists = []
        self.break_on = ""
        self.informer = Informer(
            client,
            self.store,
            self._on_event,
            namespace=namespace,
            relisted=self._relisted,
            **options,
        )
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.informer.run, args=(self.stop,), daemon=True)
        self.thread.start()

    def _on_event(self, event):
        if event.request.name == self.break_on:
            raise RuntimeError("cannot stand it")
        self.events.append(event)

    def _relisted(self, kind, reason):
        self.lists.append((kind, reason))

    @property
    def reasons(self):
        return [reason for _, reason in self.lists]

    def synced(self):
        assert eventually(lambda: self.informer.synced), self.informer.problem
        return self

    def told(self, name):
        return [event.type for event in self.events if event.request.name == name]

    def hears(self, name, *types):
        return eventually(lambda: self.told(name)[-len(types) :] == list(types))

    def names(self):
        return {request.name for request, _ in self.store.headers()}


class Objects:
    """Makes and unmakes Infrastructures in one namespace."""

    def __init__(self, client, namespace):
        self.client = client
        self.namespace = namespace

    def create(self, name, **more):
        return self.client.create(
            INFRASTRUCTURES, builders.infrastructure(self.namespace, "t", name, **more)
        )

    def update(self, name, **annotations):
        patch = {"metadata": {"annotations": annotations}}
        return self.client.patch(INFRASTRUCTURES, name, self.namespace, patch)

    def delete(self, name):
        self.client.delete(INFRASTRUCTURES, name, self.namespace)


@pytest.fixture
def objects(admin, namespace):
    return Objects(admin, namespace)


@pytest.fixture
def watch(namespace):
    """Starts informers; at the end of the test none must be left running."""
    started = []

    def start(client, **options):
        started.append(Watching(client, options.pop("namespace", namespace), **options))
        return started[-1]

    yield start
    for watching in started:
        watching.stop.set()


def ended(watching, proxy):
    """Whether the informer ends once it is stopped and its stream delivers a line."""
    watching.stop.set()
    proxy.close()
    watching.thread.join(30)
    return not watching.thread.is_alive()


@pytest.fixture
def http(environment):
    proxy = HttpProxy(environment)
    yield proxy
    proxy.close()


@pytest.fixture
def through(http, tmp_path):
    return connect(kubeconfig(tmp_path / "http", http.url))


@pytest.fixture
def tcp(environment):
    proxy = TcpProxy(environment.url)
    yield proxy
    proxy.close()


@pytest.fixture
def across(tcp, environment, tmp_path):
    token = environment.admin_token
    return connect(kubeconfig(tmp_path / "tcp", tcp.url, environment.ca_file, token=token))


def is_list(target):
    return "sendInitialEvents" in target or "watch=" not in target


def is_resumed(target):
    return "watch=true" in target and "sendInitialEvents" not in target


def test_it_lists_and_then_follows(admin, objects, watch):
    objects.create("old")
    watching = watch(admin).synced()
    assert watching.names() == {"old"}
    objects.create("new")
    objects.update("new", a="1")
    objects.delete("new")
    assert watching.hears("new", ADDED, MODIFIED, DELETED)
    assert watching.told("old") == [ADDED]
    assert watching.lists == [("infrastructures", "initial")]
    assert watching.informer.problem is None


def test_a_reset_connection_is_resumed_where_it_broke(across, tcp, objects, watch, caplog):
    watching = watch(across).synced()
    tcp.cut()
    objects.create("a")
    objects.update("a", b="1")
    objects.delete("a")
    assert watching.hears("a", ADDED, MODIFIED, DELETED)
    assert watching.reasons == ["initial"]
    eventually(lambda: watching.informer.problem is None)
    assert ended(watching, tcp)


def test_a_watch_that_cannot_be_reopened_soon_begins_with_a_list(across, tcp, objects, watch):
    """etcd may have been restored, and have passed the versions seen before."""
    objects.create("a")
    watching = watch(across).synced()
    tcp.refuses = True
    tcp.cut()
    objects.update("a", b="1")
    eventually(lambda: not watching.informer._version)
    tcp.refuses = False
    assert watching.hears("a", ADDED, MODIFIED)
    assert watching.events[-1].relisted
    assert watching.reasons == ["initial", "error"]
    assert ended(watching, tcp)


@pytest.mark.parametrize("kind", ["BOOKMARK", "ADDED", "MODIFIED", "DELETED"])
def test_a_version_that_goes_back_lists_again(through, http, objects, watch, caplog, kind):
    """As the API server sends it after a restore of etcd; only this line is not its own."""
    objects.create("a")
    watching = watch(through).synced()
    older = {**objects.client.get(INFRASTRUCTURES, "a", objects.namespace)}
    older["metadata"] = {**older["metadata"], "resourceVersion": "1"}
    line = json.dumps({"type": kind, "object": older}).encode() + b"\n"
    http.rule = lambda _method, target: (
        Answer(200, line) if is_resumed(target) else status(503, "Wait")
    )
    http.cut()
    eventually(lambda: not watching.informer.synced)  # and so the manager is not ready
    assert "etcd was restored" in str([record.__dict__ for record in caplog.records])
    http.rule = lambda _method, target: target
    watching.synced()
    assert watching.told("a") == [ADDED]
    assert "restored" in watching.reasons
    objects.delete("a")
    assert watching.hears("a", ADDED, DELETED)


def test_a_single_cut_is_no_warning(across, tcp, objects, watch, caplog):
    watching = watch(across).synced()
    tcp.cut()
    objects.create("a")
    assert watching.hears("a", ADDED)
    assert [r for r in caplog.records if r.levelname == "WARNING"] == []


def test_a_stream_that_ends_silently_is_noticed_and_replaced(across, tcp, objects, watch):
    watching = watch(across, idle_timeout=4).synced()
    tcp.stall()
    objects.create("a")
    eventually(lambda: watching.informer.age() > 1)
    assert watching.told("a") == []
    assert watching.hears("a", ADDED)
    eventually(lambda: watching.informer.age() < 1)
    assert watching.reasons == ["initial"]


def test_versions_that_went_backwards_are_noticed_by_the_silence_that_follows(
    through, http, objects, watch
):
    """As after a restore of etcd: the API server waits for a version far ahead, and says nothing.

    The version asked for is raised on the way, the answer is the API server's own.
    """
    objects.create("stale")
    watching = watch(through, idle_timeout=1.0).synced()
    ahead = f"resourceVersion={10**15}"
    http.rule = lambda _method, target: (
        target.replace(f"resourceVersion={watching.informer._version}", ahead)
        if is_resumed(target)
        else target
    )
    http.cut()
    eventually(lambda: any(ahead in http.rule(*r) for r in http.requests[1:]))
    objects.delete("stale")
    objects.create("fresh")
    assert watching.hears("fresh", ADDED)
    assert watching.hears("stale", ADDED, DELETED)
    assert watching.reasons[:2] == ["initial", "error"]


def test_gone_as_an_answer_lists_again_and_finds_deleted_objects(through, http, objects, watch):
    for name in ("stays", "changes", "goes"):
        objects.create(name)
    watching = watch(through).synced()
    http.rule = lambda _method, target: (
        status(410, "Expired") if is_resumed(target) else status(503, "Wait")
    )
    http.cut()
    objects.delete("goes")
    objects.update("changes", a="1")
    objects.create("comes")
    eventually(lambda: not watching.informer._version)
    http.rule = lambda _method, target: target
    assert watching.hears("goes", ADDED, DELETED)
    assert watching.hears("changes", ADDED, MODIFIED)
    assert watching.hears("comes", ADDED)
    assert watching.told("stays") == [ADDED]
    assert watching.names() == {"stays", "changes", "comes"}
    assert "expired" in watching.reasons


def test_a_permanent_410_causes_no_hot_loop(through, http, objects, watch):
    gone = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old"}}
    http.rule = lambda _method, target: Answer(200, json.dumps(gone).encode() + b"\n")
    watching = watch(through)
    time.sleep(2)
    assert len(http.requests) <= 8
    eventually(lambda: len(http.requests) >= 2)
    eventually(lambda: "too old" in (watching.informer.problem or ""))  # not while it asks
    http.rule = lambda _method, target: target
    watching.synced()


def test_streams_that_end_at_once_are_no_hot_loop(through, http, watch):
    http.rule = lambda _method, target: Answer(200, b"") if is_resumed(target) else target
    watching = watch(through).synced()
    http.cut()
    time.sleep(2)
    assert len(http.requests) <= 8
    eventually(lambda: len(http.requests) >= 2)
    # On a busy machine, the server may count as away for more than a second: then it is listed.
    assert watching.reasons in (["initial"], ["initial", "error"])


def test_too_many_requests_waits_for_retry_after(through, http, watch, caplog):
    answered = []

    def rule(_method, target):
        answered.append(time.monotonic())
        return target if len(answered) > 1 else status(429, "TooManyRequests", Retry_After="1")

    http.rule = rule
    watch(through).synced()
    assert 1.0 <= answered[1] - answered[0] < 30
    assert "watch ended" not in caplog.text, "so an API server answers after a CRD was installed"


def test_too_many_requests_are_a_warning_once_they_persist(through, http, watch, caplog):
    http.rule = lambda *_: status(429, "TooManyRequests")
    watching = watch(through)
    eventually(lambda: watching.informer._failures >= 3)
    assert [r.message for r in caplog.records if r.levelname == "WARNING"] == ["watch ended"]


@pytest.mark.parametrize("code", [400, 422])
def test_a_server_without_streaming_lists_is_listed_in_pages(through, http, objects, watch, code):
    def rule(_method, target):
        refused = "sendInitialEvents" in target
        return status(code, "Invalid") if refused else target.replace("limit=500", "limit=2")

    http.rule = rule
    for name in "abcde":
        objects.create(name)
    watching = watch(through).synced()
    assert watching.names() == set("abcde")
    objects.update("a", b="1")
    assert watching.hears("a", ADDED, MODIFIED)
    objects.delete("b")
    assert watching.hears("b", ADDED, DELETED)
    assert watching.reasons == ["initial"]
    assert sum("limit=" in target for _, target in http.requests) == 3


def test_a_server_that_overlooks_the_wish_for_a_streamed_list_is_listed_in_pages(
    through, http, objects, watch
):
    """As older ones do: a bookmark comes without the mark that the list is over."""
    meta = {"resourceVersion": objects.create("a")["metadata"]["resourceVersion"]}
    bookmark = json.dumps({"type": "BOOKMARK", "object": {"metadata": meta}}).encode()
    http.rule = lambda _method, target: (
        Answer(200, bookmark + b"\n") if "sendInitialEvents" in target else target
    )
    watching = watch(through).synced()
    assert watching.names() == {"a"}
    assert any("limit=500" in target for _, target in http.requests)
    objects.create("b")
    assert watching.hears("b", ADDED)


def test_an_object_deleted_while_the_list_is_streamed_is_not_kept(through, http, objects, watch):
    """The order of these events cannot be brought about from outside; the objects are real."""
    objects.create("stays")
    objects.create("goes")

    def line(kind, obj, **annotations):
        meta = {**obj["metadata"], "annotations": annotations}
        return json.dumps({"type": kind, "object": {**obj, "metadata": meta}})

    stays, goes = (
        objects.client.get(INFRASTRUCTURES, name, objects.namespace) for name in ("stays", "goes")
    )
    lines = [line("ADDED", stays), line("ADDED", goes), line("DELETED", goes)]
    lines.append(line("BOOKMARK", goes, **{"k8s.io/initial-events-end": "true"}))
    objects.delete("goes")
    http.rule = lambda _method, target: (
        Answer(200, "\n".join([*lines, ""]).encode()) if is_list(target) else target
    )
    watching = watch(through).synced()
    assert watching.names() == {"stays"}
    assert watching.told("goes") == [ADDED, DELETED]


@pytest.mark.parametrize(
    "line",
    [
        b"<html>",
        b"[]",
        b'{"type":"ADDED"}',
        b'{"type":"ADDED","object":null}',
        b'{"type":"MODIFIED","object":{"metadata":{}}}',
        b'{"type":"ERROR","object":"secret-text"}',
        b'{"type":"ERROR","object":{"code":"x"}}',
    ],
)
def test_a_line_that_makes_no_sense_is_survived(through, http, objects, watch, caplog, line):
    http.rule = lambda _method, target: Answer(200, line + b"\n") if is_resumed(target) else target
    watching = watch(through).synced()
    http.cut()
    eventually(lambda: "invalid watch event" in (watching.informer.problem or "") or None)
    http.rule = lambda _method, target: target
    objects.create("a")
    assert watching.hears("a", ADDED)
    assert "secret-text" not in caplog.text


def test_an_object_that_breaks_its_handler_does_not_stop_the_others(admin, objects, watch, caplog):
    watching = watch(admin).synced()
    watching.break_on = "bad"
    objects.create("bad")
    objects.create("good")
    assert watching.hears("good", ADDED)
    [record] = [r for r in caplog.records if r.message == "event handler failed"]
    assert record.fields["object"] == f"{objects.namespace}/bad"
    assert watching.reasons == ["initial"]


def test_an_object_that_no_header_can_be_made_of_does_not_stop_the_others(admin, objects, watch):
    def make_header(obj):
        if obj["metadata"]["name"] == "bad":
            raise ValueError("unheard of")
        return header(obj)

    objects.create("bad")
    objects.create("good")
    watching = watch(admin, make_header=make_header).synced()
    assert watching.names() == {"good"}


def test_a_missing_permission_is_logged_once_and_found_when_it_is_granted(
    admin, environment, objects, watch, caplog
):
    user = f"user-{secrets.token_hex(4)}"
    watching = watch(connect(environment.user_kubeconfig(user)))
    eventually(lambda: watching.informer._failures >= 3)
    assert "forbidden" in watching.informer.problem
    assert [r.message for r in caplog.records if r.levelname == "WARNING"] == ["watch ended"]
    meta = {"name": user, "namespace": objects.namespace}
    rule = {"apiGroups": ["*"], "resources": ["infrastructures"], "verbs": ["list", "watch"]}
    admin.create(ROLES, {"metadata": meta, "rules": [rule]})
    role = {"apiGroup": ROLES.group, "kind": "Role", "name": user}
    subject = {"apiGroup": ROLES.group, "kind": "User", "name": user}
    admin.create(BINDINGS, {"metadata": meta, "roleRef": role, "subjects": [subject]})
    watching.synced()
    assert watching.informer.problem is None


def test_a_resource_that_comes_goes_and_comes_again_is_followed(admin, namespace, watch):
    group = f"g{secrets.token_hex(4)}.example.com"
    version = {"name": "v1", "served": True, "storage": True}
    version["schema"] = {"openAPIV3Schema": {"type": "object"}}
    names = {"kind": "Thing", "plural": "things"}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"things.{group}"},
        "spec": {"group": group, "names": names, "scope": "Namespaced", "versions": [version]},
    }
    things = Resource(f"{group}/v1", "things")

    def create(name):
        meta = {"name": name, "namespace": namespace}
        obj = {"apiVersion": things.api_version, "kind": "Thing", "metadata": meta}
        try:
            return admin.create(things, obj)
        except NotFound:
            return None

    watching = watch(admin, resource=things)
    informer = watching.informer
    assert informer.settled.wait(PATIENCE)
    assert (informer.absent, informer.synced, informer.problem) == (True, False, ABSENT)
    install_crds(admin, [crd])
    eventually(lambda: create("a"))
    watching.synced()
    assert not informer.absent
    assert watching.hears("a", ADDED)
    admin.delete(CRDS, f"things.{group}")
    assert watching.hears("a", ADDED, DELETED)
    eventually(lambda: informer.absent)
    install_crds(admin, [crd])
    eventually(lambda: create("b"))
    assert watching.hears("b", ADDED)
    admin.delete(CRDS, f"things.{group}")


class Timetable(threading.Event):
    """Notes how long an informer would wait, and ends it after a dozen times."""

    def __init__(self):
        super().__init__()
        self.waits = []

    def wait(self, timeout=None):
        self.waits.append(timeout)
        if len(self.waits) == 12:
            self.set()


def test_an_absent_kind_is_asked_for_soon_and_then_a_few_times_a_minute(admin):
    stop = Timetable()
    store = Store(Resource("absent.example.com/v1", "things"), header)
    Informer(admin, store, lambda event: None).run(stop)
    assert stop.waits[0] < 2, "a CRD may be about to be installed"
    assert sum(stop.waits[:7]) > 60
    assert all(20 < seconds < 40 for seconds in stop.waits[5:])


def test_it_stops_while_it_waits(across, tcp, watch):
    tcp.refuses = True
    watching = watch(across)
    eventually(lambda: watching.informer._failures >= 3)
    watching.stop.set()
    watching.thread.join(30)
    assert not watching.thread.is_alive()


def test_no_change_is_lost_to_random_cuts(across, tcp, objects, watch, monkeypatch):
    """A list, as after a long cut, would hide states: a busy machine may reopen watches late."""
    monkeypatch.setattr("generic.kube.informer._AWAY", 60.0)
    seed = secrets.randbits(32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    watching = watch(across).synced()
    written = set()
    alive: list[Any] = []
    deleted = set()
    for number in range(200):
        if not alive or chance.random() < 0.3:
            alive.append(f"o{number}")
            answer = objects.create(alive[-1])
        elif chance.random() < 0.6:
            answer = objects.update(chance.choice(alive), n=str(number))
        else:
            deleted.add(name := alive.pop(chance.randrange(len(alive))))
            objects.delete(name)
            continue
        written.add(int(answer["metadata"]["resourceVersion"]))
        if chance.random() < 0.08:
            tcp.cut()

    def all_seen():
        seen = {event.new.resource_version for event in watching.events if event.new}
        gone = {e.request.name for e in watching.events if e.type is DELETED}
        return watching.names() == set(alive) and written <= seen and deleted <= gone

    assert eventually(all_seen)
    versions = [event.new.resource_version for event in watching.events if event.new]
    assert len(versions) == len(set(versions)), "something was told twice"
    assert watching.reasons == ["initial"]


@pytest.fixture
def own_cluster(borrowed):
    """A cluster for these tests alone: its API server is restarted."""
    with Environment() as environment:
        yield environment


def test_a_restarted_api_server_no_longer_knows_old_versions(own_cluster, tmp_path, watch):
    """The real 410: the watch cache begins anew, and the version is from before."""
    proxy = TcpProxy(own_cluster.url)
    path = kubeconfig(tmp_path / "k", proxy.url, own_cluster.ca_file, token=own_cluster.admin_token)
    admin = connect(own_cluster.kubeconfig)
    maps = Resource("v1", "configmaps")

    def create(name):
        admin.create(maps, {"metadata": {"name": name, "namespace": "default"}})

    for name in ("stays", "goes"):
        create(name)
    watching = watch(connect(path), namespace="default", resource=maps).synced()
    proxy.stall()
    admin.delete(maps, "goes", "default")
    for number in range(20):
        create(f"meanwhile-{number}")
    own_cluster.stop_apiserver()
    own_cluster.restart(KillableServer.APISERVER)
    proxy.cut()
    assert watching.hears("goes", ADDED, DELETED)
    assert watching.hears("meanwhile-19", ADDED)
    assert watching.told("stays") == [ADDED]
    assert watching.reasons[-1] == "expired"
    assert ended(watching, proxy)
