"""Requests: their content, and the result of each answer of the API server."""

import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from kubernetes.client import V1ConfigMap, V1Namespace, V1ObjectMeta

from actuator import Resource
from actuator.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    Invalid,
    LeaseLost,
    NotFound,
    NotServed,
    TooManyRequests,
    Unauthorized,
    Unavailable,
)
from actuator.v1alpha1 import Infrastructure
from generic.kube.client import Silence, connect, path_of
from tests.support.cluster.fault_proxy import DROP, Answer, HttpProxy, TcpProxy, kubeconfig, status
from tests.support.cluster.harness import INFRASTRUCTURES
from tests.support.objects import builders

CONFIG_MAPS = Resource("v1", "configmaps")
NAMESPACES = Resource("v1", "namespaces", namespaced=False)


def config_map(namespace, name, **data):
    meta = {"name": name, "namespace": namespace, "labels": {"made": name}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}


@pytest.fixture
def http(environment):
    proxy = HttpProxy(environment)
    yield proxy
    proxy.close()


@pytest.fixture
def tcp(environment):
    proxy = TcpProxy(environment.url)
    yield proxy
    proxy.close()


@pytest.fixture
def through(http, tmp_path):
    """A client that meets the API server by way of the HTTP proxy."""
    return connect(kubeconfig(tmp_path / "http", http.url))


@pytest.fixture
def across(tcp, environment, tmp_path):
    """A client that meets the API server by way of the TCP proxy."""
    token = environment.admin_token
    return connect(kubeconfig(tmp_path / "tcp", tcp.url, environment.ca_file, token=token))


@pytest.mark.parametrize(
    ("resource", "place", "path"),
    [
        (CONFIG_MAPS, (), "/api/v1/configmaps"),
        (CONFIG_MAPS, ("ns", "a"), "/api/v1/namespaces/ns/configmaps/a"),
        (NAMESPACES, ("", "a"), "/api/v1/namespaces/a"),
        (NAMESPACES, ("ignored", "a", "finalize"), "/api/v1/namespaces/a/finalize"),
        (
            INFRASTRUCTURES,
            ("ns", "a", "status"),
            "/apis/extensions.gardener.cloud/v1alpha1/namespaces/ns/infrastructures/a/status",
        ),
        (
            Resource("rbac.authorization.k8s.io/v1", "clusterroles", namespaced=False),
            ("", "system:a/../b?c"),
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Aa%2F..%2Fb%3Fc",
        ),
    ],
)
def test_a_path_names_the_object_and_nothing_else(resource, place, path):
    assert path_of(resource, *place) == path


def test_a_namespaced_object_without_its_namespace_is_refused(admin):
    words = r"configmaps a: the resource is namespaced; set the namespace"
    for request in (admin.get, admin.delete):
        with pytest.raises(Invalid, match=words):
            request(CONFIG_MAPS, "a")
    with pytest.raises(Invalid, match=words):
        admin.patch(CONFIG_MAPS, "a", "", {})


def test_an_object_lives_its_whole_life(admin, namespace):
    created = admin.create(CONFIG_MAPS, config_map(namespace, "a", k="1"))
    merged = admin.patch(CONFIG_MAPS, "a", namespace, {"data": {"k": None, "l": "é"}})
    assert merged["data"] == {"l": "é"}
    patched = admin.patch(
        CONFIG_MAPS, "a", namespace, [{"op": "replace", "path": "/data/l", "value": "2"}]
    )
    assert patched["data"] == {"l": "2"}
    assert admin.get(CONFIG_MAPS, "a", namespace) == patched
    assert {entry["manager"] for entry in patched["metadata"]["managedFields"]} == {"actuator"}
    admin.delete(CONFIG_MAPS, "a", namespace, uid=created["metadata"]["uid"])
    with pytest.raises(NotFound):
        admin.get(CONFIG_MAPS, "a", namespace)


def test_core_objects_are_read_as_models_and_own_kinds_as_their_classes(admin, namespace):
    admin.create(CONFIG_MAPS, config_map(namespace, "typed", k="1"))
    found = admin.get(V1ConfigMap, "typed", namespace)
    assert isinstance(found, V1ConfigMap)
    assert found.metadata is not None
    assert (found.metadata.name, found.data) == ("typed", {"k": "1"})
    assert "typed" in [obj.metadata.name for obj in admin.list(V1ConfigMap, namespace)]
    assert admin.list(V1ConfigMap, namespace, label_selector="a=b") == []
    assert admin.get(V1Namespace, namespace).metadata.creation_timestamp.year > 2000
    assert admin.list(Infrastructure, namespace) == []
    with pytest.raises(NotFound):
        admin.get(V1ConfigMap, "missing", namespace)
    with pytest.raises(TypeError, match="V1ObjectMeta is no class of a kind; pass a Resource"):
        admin.get(V1ObjectMeta, "typed", namespace)


def test_a_status_is_patched_apart_from_its_object(admin, namespace):
    admin.create(INFRASTRUCTURES, builders.infrastructure(namespace, "t"))
    patch = {"status": {"observedGeneration": 1}, "spec": {"region": "other"}}
    patched = admin.patch(INFRASTRUCTURES, "infra", namespace, patch, subresource="status")
    assert patched["status"] == {"observedGeneration": 1}
    assert patched["spec"]["region"] == "eu-1"


def test_apply_creates_takes_over_and_drops_fields_no_longer_named(admin, namespace):
    admin.apply(CONFIG_MAPS, config_map(namespace, "a", k="1", l="1"), field_manager="other")
    admin.apply(CONFIG_MAPS, config_map(namespace, "a", k="2", m="2"))
    assert admin.apply(CONFIG_MAPS, config_map(namespace, "a", k="3"))["data"] == {
        "k": "3",
        "l": "1",
    }


def test_a_list_is_complete_however_many_pages_it_takes(through, http, admin, namespace):
    for name in "abcde":
        admin.create(CONFIG_MAPS, config_map(namespace, name))
    http.rule = lambda _method, target: target.replace("limit=500", "limit=2")
    listed = through.list(CONFIG_MAPS, namespace)
    assert {obj["metadata"]["name"] for obj in listed} >= set("abcde")
    assert {(obj["apiVersion"], obj["kind"]) for obj in listed} == {("v1", "ConfigMap")}
    assert http.count("GET") >= 3
    only = through.list(CONFIG_MAPS, namespace, label_selector="made in (b,c)")
    assert [obj["metadata"]["name"] for obj in only] == ["b", "c"]


def refusals(admin, environment, namespace, tmp_path):
    """Requests that the API server refuses, each with the expected class of error."""
    taken = config_map(namespace, "taken")
    admin.create(CONFIG_MAPS, taken)
    failing = [{"op": "test", "path": "/metadata/uid", "value": "another"}]
    unauthorized = connect(environment.user_kubeconfig("nobody"))
    stranger = connect(
        kubeconfig(tmp_path / "bad", environment.url, environment.ca_file, token="wrong-" + "x" * 9)
    )
    yield NotFound, 404, lambda: admin.get(CONFIG_MAPS, "missing", namespace)
    yield NotServed, 404, lambda: admin.list(Resource("nowhere.example/v1", "things"), namespace)
    yield AlreadyExists, 409, lambda: admin.create(CONFIG_MAPS, taken)
    yield Conflict, 409, lambda: admin.delete(CONFIG_MAPS, "taken", namespace, uid="another")
    yield Invalid, 422, lambda: admin.patch(CONFIG_MAPS, "taken", namespace, failing)
    yield Invalid, 422, lambda: admin.create(CONFIG_MAPS, config_map(namespace, "NO"))
    yield Forbidden, 403, lambda: unauthorized.get(CONFIG_MAPS, "taken", namespace)
    yield Unauthorized, 401, lambda: stranger.get(CONFIG_MAPS, "taken", namespace)
    yield ApiError, 400, lambda: admin.list(CONFIG_MAPS, namespace, label_selector="a=b=c")


def test_each_refusal_has_its_class_and_names_the_request(admin, environment, namespace, tmp_path):
    asked = [*refusals(admin, environment, namespace, tmp_path)]
    assert len(asked) > 5
    for cls, code, ask in asked:
        with pytest.raises(cls) as caught:
            ask()
        error = caught.value
        assert (type(error), error.status) == (cls, code)
        assert "/api" in error.message
        assert error.message.split()[0].isupper()
        assert "fieldManager" not in error.message
        assert "wrong-" not in repr(error.__dict__)


def test_an_invalid_object_is_reported_with_its_causes(admin, namespace):
    with pytest.raises(Invalid) as caught:
        admin.create(CONFIG_MAPS, config_map(namespace, "NO"))
    assert (caught.value.reason, caught.value.causes) == ("Invalid", ("FieldValueInvalid",))


def every_call(client, namespace):
    yield "GET", lambda: client.get(CONFIG_MAPS, "a", namespace)
    yield "GET", lambda: client.list(CONFIG_MAPS, namespace)
    yield "POST", lambda: client.create(CONFIG_MAPS, config_map(namespace, "a"))
    yield "PATCH", lambda: client.apply(CONFIG_MAPS, config_map(namespace, "a"))
    yield "PATCH", lambda: client.patch(CONFIG_MAPS, "a", namespace, {"data": {}})
    yield "DELETE", lambda: client.delete(CONFIG_MAPS, "a", namespace)


@pytest.mark.parametrize(
    ("answer", "cls"),
    [
        (DROP, Unavailable),
        (status(429, "TooManyRequests", Retry_After="60"), TooManyRequests),
        (status(503, "ServiceUnavailable", Retry_After="60"), Unavailable),
        (Answer(302, headers={"Location": "/version"}), ApiError),
    ],
    ids=["dropped", "429", "503", "302"],
)
def test_no_request_is_ever_repeated_or_redirected(through, http, namespace, answer, cls):
    http.rule = lambda _method, _target: answer
    began = time.monotonic()
    for number, (method, call) in enumerate(every_call(through, namespace), 1):
        with pytest.raises(cls):
            call()
        assert (len(http.requests), http.requests[-1][0]) == (number, method)
    assert time.monotonic() - began < 30, "something waited"


def test_a_connection_that_died_while_idle_is_no_reason_to_repeat_either(across, tcp, namespace):
    across.list(CONFIG_MAPS, namespace)
    tcp.cut()
    time.sleep(0.05)
    across.list(CONFIG_MAPS, namespace)  # the pool sees that it is closed, and opens another
    assert tcp.accepted == 2


def test_retry_after_is_handed_on_in_seconds(through, http, namespace):
    http.rule = lambda _method, _target: status(429, "TooManyRequests", Retry_After="7")
    with pytest.raises(TooManyRequests) as caught:
        through.get(CONFIG_MAPS, "a", namespace)
    assert caught.value.retry_after == 7.0


@pytest.mark.parametrize("body", [b"<html>oops</html>", b"", b"[1]", b"\xff"])
def test_an_error_that_is_no_status_object_is_still_an_error(through, http, body):
    http.rule = lambda _method, _target: Answer(502, body)
    with pytest.raises(Unavailable) as caught:
        through.get(NAMESPACES, "default")
    assert caught.value.message.startswith("GET /api/v1/namespaces/default: ")


@pytest.mark.parametrize("body", [b"<html>login</html>", b"[1]", b"null", b""])
def test_a_success_that_is_no_object_is_an_error(through, http, body):
    http.rule = lambda _method, _target: Answer(200, body)
    with pytest.raises(Unavailable):
        through.get(NAMESPACES, "default")


def test_an_answer_that_does_not_come_is_a_silence(across, tcp):
    across.get(NAMESPACES, "default")
    tcp.stall()
    began = time.monotonic()
    with pytest.raises(Silence) as caught:
        across.within(0.3).send("GET", "/api/v1/namespaces")
    assert time.monotonic() - began < 20, "30 s are the default"
    assert caught.value.status == 0
    assert "GET /api/v1/namespaces" in caught.value.message


def test_a_refused_connection_is_one_clear_line(across, tcp, environment):
    tcp.close()
    with pytest.raises(Unavailable) as caught:
        across.get(NAMESPACES, "default")
    assert "refused" in caught.value.message
    assert "\n" not in caught.value.message
    assert "object at 0x" not in caught.value.message
    assert environment.admin_token not in caught.value.message


def test_a_gate_is_asked_before_each_write_and_holds_it_back(through, http, namespace):
    def closed():
        raise LeaseLost("another leads")

    fenced = through.gated(closed)
    for method, call in every_call(fenced, namespace):
        if method == "GET":
            http.rule = lambda _method, _target: status(404, "NotFound")
            with pytest.raises(ApiError, match="NotFound"):
                call()
        else:
            with pytest.raises(LeaseLost):
                call()
    assert {method for method, _ in http.requests} == {"GET"}
    http.rule = lambda _method, target: target
    through.create(CONFIG_MAPS, config_map(namespace, "a"))  # the other is not fenced


def test_every_request_is_heard_of_once(http, namespace, tmp_path):
    heard = []
    client = connect(kubeconfig(tmp_path / "k", http.url), observe=lambda *said: heard.append(said))
    client.create(CONFIG_MAPS, config_map(namespace, "a"))
    with pytest.raises(AlreadyExists):
        client.create(CONFIG_MAPS, config_map(namespace, "a"))
    http.rule = lambda _method, _target: DROP
    with pytest.raises(Unavailable):
        client.get(CONFIG_MAPS, "a", namespace)
    assert heard == [
        ("POST", client.host, "201"),
        ("POST", client.host, "409"),
        ("GET", client.host, "<error>"),
    ]


def test_many_threads_share_no_more_connections_than_were_asked_for(
    tcp, environment, namespace, tmp_path, caplog
):
    path = kubeconfig(tmp_path / "k", tcp.url, environment.ca_file, token=environment.admin_token)
    client = connect(path, connections=8)

    def live(number):
        client.create(CONFIG_MAPS, config_map(namespace, f"c{number}"))
        return client.patch(CONFIG_MAPS, f"c{number}", namespace, {"data": {"n": str(number)}})

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(live, range(64)))
    assert [answer["data"]["n"] for answer in answers] == [str(number) for number in range(64)]
    assert tcp.accepted <= 8
    assert "pool is full" not in caplog.text


def test_a_stream_yields_whole_lines_however_they_arrive(through, admin, namespace):
    text = "x" * 300_000
    query = {"watch": "true", "resourceVersion": "0", "fieldSelector": "metadata.name=big"}
    timer = threading.Timer(
        0.1, lambda: admin.create(CONFIG_MAPS, config_map(namespace, "big", text=text))
    )
    timer.start()
    with through.stream(path_of(CONFIG_MAPS, namespace), query, read_timeout=60) as lines:
        event = json.loads(next(lines))
    assert (event["type"], event["object"]["data"]["text"]) == ("ADDED", text)


def test_a_stream_that_falls_silent_raises(through, namespace):
    query = {"watch": "true", "resourceVersion": "0", "fieldSelector": "metadata.name=none"}
    began = time.monotonic()
    with (
        through.stream(path_of(CONFIG_MAPS, namespace), query, read_timeout=2) as lines,
        pytest.raises(Silence),
    ):
        next(lines)
    assert time.monotonic() - began < 20


def test_a_stream_that_is_refused_raises_before_the_first_line(through, http, namespace):
    http.rule = lambda _method, _target: status(429, "TooManyRequests", Retry_After="3")
    with (
        pytest.raises(TooManyRequests) as caught,
        through.stream(path_of(CONFIG_MAPS, namespace), {"watch": "1"}, read_timeout=5),
    ):
        pass
    assert caught.value.retry_after == 3.0
