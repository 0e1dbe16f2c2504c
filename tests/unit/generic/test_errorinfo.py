"""An error is read once: bounded, whatever it is, and without keeping its frames."""

import gc
import json
import logging
import re
import traceback
import weakref
from pathlib import Path
from sysconfig import get_path
from typing import Any

import pytest

from actuator import ActuatorError, ErrorCode, RequeueAfter, Resource
from actuator.errors import (
    ApiError,
    DecodeError,
    Forbidden,
    Invalid,
    NotFound,
    NotServed,
    ShootUnreachable,
    Unavailable,
)
from actuator.v1alpha1 import Infrastructure
from generic.kube import errorinfo, refusals
from generic.kube.errorinfo import MAX_TEXT, describe, place, read_error, shorten
from generic.library.healthchecks.runs import Runs
from generic.reconciler.attempt import is_refused

ROOT = Path(__file__).parents[3]
AUTH = ErrorCode.ERR_INFRA_UNAUTHENTICATED
WEBHOOK = 'admission webhook "w" denied the request'


def caused(error, cause):
    error.__cause__ = cause
    return error


def test_codes_are_those_of_the_whole_chain():
    inner = ActuatorError("inner", codes=[AUTH])
    assert read_error(caused(ValueError("outer"), inner)).codes == (AUTH,)
    assert read_error(RequeueAfter(1, cause=inner)).codes == (AUTH,)


def test_codes_that_are_none_of_gardeners_are_left_out():
    error = ActuatorError("x", codes=[AUTH])
    vars(error)["codes"] = ("ERR_INFRA_UNAUTHENTICATED", object(), "nonsense", None)
    assert read_error(error).codes in ((AUTH,), ())
    vars(error)["codes"] = 7
    assert read_error(error).codes == ()


def test_an_object_that_cannot_be_read_is_a_matter_of_configuration():
    assert read_error(DecodeError("x")).codes == (ErrorCode.ERR_CONFIGURATION_PROBLEM,)


REFUSED = 'failed calling webhook "guard.example.org": dial tcp 127.0.0.1:443: connection refused'


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        (
            'admission webhook "guard.example.org" denied the request: not today',
            (ErrorCode.ERR_PROBLEMATIC_WEBHOOK,),
        ),
        (REFUSED, ()),  # Gardener would never retry the shoot
    ],
)
def test_a_webhook_in_the_way_is_named_and_a_denial_has_its_own_code(text, codes):
    for error in (Forbidden(403, text), caused(ActuatorError("no VPC"), ApiError(500, text))):
        assert read_error(error).codes == codes
    assert "guard.example.org" in read_error(Forbidden(403, text)).text
    quoted = ActuatorError(f"the cloud answered: {text}")
    assert read_error(quoted).codes == ()


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("x"), "Error"),
        (ActuatorError("x"), "ActuatorError"),
        (ActuatorError("x", reason="Own"), "Own"),
        (
            caused(ActuatorError("x", reason="Own"), Forbidden(403, "no", reason="Forbidden")),
            "Forbidden",
        ),
        (NotFound(404, "GET /api/v1/namespaces/a/secrets/b: gone"), "SecretMissing"),
        (Unavailable(0, "x"), "APIServerUnavailable"),
        (ShootUnreachable("x"), "ShootUnreachable"),
        (Forbidden(403, WEBHOOK), "WebhookDenied"),
        (Invalid(422, "refused"), "RefusedByAPIServer"),
    ],
)
def test_each_blocking_error_has_one_reason(error, reason):
    assert read_error(error).blocked_reason == reason


FORBIDDEN = 'POST /x: pods "p" is forbidden: '
QUOTING = 'PATCH /x: Worker "w" is invalid: spec.region: Invalid value: "a": '


@pytest.mark.parametrize(
    ("error", "reason", "remedy"),
    [
        (f'{FORBIDDEN}User "system:anonymous" cannot get resource "pods"', "Unauthorized", "token"),
        (f'{FORBIDDEN}User "a\\"b" cannot get resource "pods"', "Forbidden", "actuator rbac"),
        (f"{FORBIDDEN}cannot set blockOwnerDeletion if an owner", "Forbidden", "actuator rbac"),
        (f"{FORBIDDEN}this namespace may not be deleted", "AdmissionDenied", "LimitRanger"),
        (
            f"{FORBIDDEN}MutatingAdmissionPolicy 'a' with binding 'b' denied request: x",
            "PolicyDenied",
            "binding",
        ),
        (f"{FORBIDDEN}failed quota: few: must specify limits.cpu", "QuotaExceeded", "raise"),
        (
            'GET /metrics: forbidden: User "eve" cannot get path "/metrics"',
            "Forbidden",
            "actuator rbac",
        ),
        (
            'POST /x: admission webhook "a" denied the request: "b" forbidden: exceeded quota: c',
            "WebhookDenied",
            "correct or remove the webhook",
        ),
        ("GET /x: <html>403 Forbidden</html>", "UnexpectedAnswer", "check proxies"),
    ],
)
def test_a_refusal_has_the_remedy_for_its_reason(error, reason, remedy):
    info = read_error(Forbidden(403, error))
    assert info.blocked_reason == reason
    assert remedy in info.text
    assert (remedy == "actuator rbac") is ("actuator rbac" in info.text)


@pytest.mark.parametrize(
    "quoted",
    [
        'admission webhook "guard" denied the request: no',
        'pods "p" is forbidden: exceeded quota: few',
        """pods "p" is forbidden: ValidatingAdmissionPolicy 'a' with binding 'b' denied request""",
        'pods "p" is forbidden: User "eve" cannot get resource "pods"',
    ],
)
def test_a_value_that_the_api_server_quotes_is_no_reason(quoted):
    info = read_error(Invalid(422, QUOTING + quoted))
    assert (info.blocked_reason, info.codes) == ("RefusedByAPIServer", ())


def test_the_remedy_of_a_long_refusal_is_kept():
    info = read_error(Forbidden(403, f"{FORBIDDEN}exceeded quota: few{'ü' * 10_000}"))
    assert len(info.text.encode()) <= MAX_TEXT
    assert info.text.endswith("delete objects that it counts")


@pytest.mark.parametrize(
    ("error", "reason", "remedy"),
    [
        (
            ApiError(404, "no", about="namespaces/a"),
            "NamespaceMissing",
            "create the namespace again",
        ),
        (ApiError(404, "<html>"), "UnexpectedAnswer", "check proxies"),
        (ApiError(404, "no", about="secrets/b"), "UnexpectedAnswer", "check proxies"),
        (ApiError(404, WEBHOOK), "WebhookDenied", "correct or remove"),
        (NotServed(404, "no", reason="NotServed"), "NotServed", "install the CRD"),
    ],
)
def test_a_404_that_does_not_name_the_object_is_no_missing_object(error, reason, remedy):
    info = read_error(error)
    assert info.blocked_reason == reason
    assert remedy in info.text


@pytest.mark.parametrize(
    ("error", "codes"),
    [
        (NotServed(404, "no", reason="NotServed"), (ErrorCode.ERR_CONFIGURATION_PROBLEM,)),
        (
            caused(ActuatorError("cannot", codes=[AUTH]), NotServed(404, "no")),
            (AUTH, ErrorCode.ERR_CONFIGURATION_PROBLEM),
        ),
        (RequeueAfter(5, cause=NotServed(404, "no")), (ErrorCode.ERR_CONFIGURATION_PROBLEM,)),
        (NotFound(404, "no"), ()),
        (ApiError(404, "no"), ()),
        (Unavailable(503, "no"), ()),
    ],
    ids=str,
)
def test_a_missing_crd_has_a_code_and_a_missing_object_has_none(error, codes):
    assert set(read_error(error).codes) == set(codes)


def test_seconds_that_were_changed_to_nonsense_are_replaced():
    error = RequeueAfter(5, "later")
    error.seconds = float("nan")
    info = read_error(error)
    assert info.waits
    assert info.requeue_after == 60.0


def test_a_text_is_bounded_in_bytes_and_has_no_control_characters():
    text = describe(ActuatorError("ü\x1b[31m" * 10_000))
    assert len(text.encode()) <= MAX_TEXT
    assert text.isprintable()
    assert shorten("\ud800") == "?"


def test_a_long_chain_of_causes_is_read_to_a_limit():
    error = ActuatorError("first", codes=[AUTH])
    for number in range(100_000):
        error = caused(ValueError(number), error)
    assert read_error(error).codes == ()


def test_the_variables_of_a_check_that_raised_are_freed_at_once():
    class Large:
        """Stands for a value in a local variable of an author."""

    kept = []

    def check(_ctx=None):
        large = Large()
        kept.append(weakref.ref(large))
        raise ValueError("x")

    log = logging.getLogger("generic.library.healthchecks.runs")
    log.disabled = True
    enabled = gc.isenabled()
    gc.disable()
    try:
        Runs().run("uid", [check], 5)
        assert kept[0]() is None
    finally:
        log.disabled = False
        if enabled:
            gc.enable()


def test_a_wait_that_was_raised_from_an_error_is_no_error():
    info = read_error(caused(RequeueAfter(5, "waiting for the VPC"), KeyError("vpc")))
    assert (info.waits, info.requeue_after, info.unexpected) == (True, 5, None)
    assert info.text == "waiting for the VPC"


def test_the_codes_of_a_wait_are_those_of_its_cause():
    info = read_error(RequeueAfter(5, cause=DecodeError("x")))
    assert info.codes == (ErrorCode.ERR_CONFIGURATION_PROBLEM,)


class Hostile(ActuatorError):
    """Of which nothing can be read."""

    __cause__ = property(lambda self: 1 / 0)
    reason = property(lambda self: 1 / 0)
    codes = property(lambda self: 1 / 0)

    def __init__(self):
        Exception.__init__(self)


def test_no_attribute_of_an_error_can_break_its_reading():
    assert read_error(Hostile()).text == "Hostile"


@pytest.mark.parametrize(
    ("error", "refused"),
    [
        (Invalid(422, "a rule"), True),
        (ApiError(400, "not JSON"), True),
        (ApiError(413, "too large"), True),
        (Unavailable(500, "etcdserver: request is too large"), True),
        (Unavailable(500, "internal error"), False),
        (Unavailable(502, "bad gateway"), False),
        (Unavailable(503, "later"), False),
        (Unavailable(0, "no answer"), False),
        (Forbidden(403, "no"), False),
        (NotFound(404, "gone"), False),
        (ValueError("x"), False),
    ],
)
def test_a_refusal_concerns_the_content_not_the_writer_or_the_time(error, refused):
    assert is_refused(error) is refused


def test_the_place_is_the_line_of_the_author_that_called_a_library():
    def fail():
        json.loads("{")

    with pytest.raises(ValueError, match="property name") as raised:
        fail()
    line = fail.__code__.co_firstlineno + 1
    assert place(raised.value) == f"test_errorinfo.py:{line}"
    unexpected = read_error(raised.value).unexpected
    assert unexpected is not None
    assert place(unexpected) == f"test_errorinfo.py:{line}"
    assert place(ValueError("never raised")) == ""


class OutOfAddresses(Exception):
    """An error of an author."""


class Odd(Exception):
    __module__ = 5  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (KeyError("x"), "KeyError: 'x'"),
        (json.JSONDecodeError("x", "", 0), "json.decoder.JSONDecodeError: x"),
        (OutOfAddresses("x"), f"{__name__}.OutOfAddresses: x"),
        (Odd("x"), "Odd: x"),
    ],
)
def test_a_traceback_names_the_module_of_the_exception(error, line):
    unexpected = read_error(error).unexpected
    assert unexpected is not None
    assert traceback.format_exception_only(unexpected)[0].startswith(line)


HERE = "/home/author"
INSTALLED = get_path("purelib")
FRAMEWORK = Path(errorinfo.__file__).parents[2]
CALLS = {
    "a helper of the author": ([f"{HERE}/acme.py", f"{HERE}/cloud.py"], "cloud.py:1"),
    "a library": ([f"{HERE}/acme.py", f"{INSTALLED}/boto3/x.py"], "acme.py:1"),
    "Python": ([f"{HERE}/acme.py", f"{get_path('stdlib')}/json/decoder.py"], "acme.py:1"),
    "generated code": ([f"{HERE}/acme.py", "<attrs generated>"], "acme.py:1"),
    "the framework": ([f"{HERE}/acme.py", f"{FRAMEWORK}/generic/kube/client.py"], "acme.py:1"),
    "called back": ([f"{FRAMEWORK}/generic/x.py", f"{INSTALLED}/y/y.py", f"{HERE}/a.py"], "a.py:1"),
    "an installed extension": (
        [f"{INSTALLED}/acme/a.py", f"{INSTALLED}/acme/b.py", f"{INSTALLED}/boto3/x.py"],
        "b.py:1",
    ),
    "no author": ([f"{FRAMEWORK}/generic/x.py", f"{FRAMEWORK}/actuator/y.py"], ""),
}


@pytest.mark.parametrize(("files", "found"), CALLS.values(), ids=CALLS)
def test_the_place_is_the_innermost_of_the_author(files, found):
    """As each file calls the next one, and the last one raises."""
    call: Any = None  # to call it fails
    for file in reversed(files):
        scope = {"call": call}
        exec(compile("def run(): call()", file, "exec"), scope)
        call = scope["run"]
    with pytest.raises(TypeError) as raised:
        call()
    whole = raised.value.__traceback__
    assert whole is not None
    outer = raised.value.with_traceback(whole.tb_next)
    assert place(outer) == found


def test_a_module_without_a_name_has_no_influence_on_the_place():
    for names in ({}, {"__name__": None}, {"__name__": 3}):
        with pytest.raises(ZeroDivisionError) as raised:
            exec("1 / 0", names)
        assert place(raised.value).startswith("test_errorinfo.py:")


def raised(act):
    """The data of the error that this code raises."""
    with pytest.raises(Exception) as caught:
        act()
    return read_error(caught.value)


MISTAKES = {
    "spec": (
        lambda: setattr(Infrastructure().spec, "region", "x"),
        "InfrastructureSpec.region cannot be set; an actuator changes only the fields of obj.",
    ),
    "metadata": (
        lambda: setattr(Infrastructure().metadata, "finalizers", []),
        "ObjectMeta.finalizers cannot be set; an actuator changes only the fields of obj.",
    ),
    "unknown field of the spec": (
        lambda: setattr(Infrastructure().spec, "regoin", "x"),
        "InfrastructureSpec.regoin cannot be set; an actuator changes only the fields of obj.",
    ),
    "status": (
        lambda: setattr(Infrastructure().status, "node_cidr", "x"),
        "InfrastructureStatus has no field node_cidr; did you mean 'nodes_cidr'?",
    ),
    "inherited field": (
        lambda: Infrastructure().status.provider_state,  # type: ignore[attr-defined]
        "InfrastructureStatus has no field provider_state; did you mean 'provider_status'?",
    ),
    "nothing similar": (
        lambda: setattr(Infrastructure().status, "vpc", "x"),
        "InfrastructureStatus has no field vpc",
    ),
    "the object": (
        lambda: Infrastructure().statu,  # type: ignore[attr-defined]
        "Infrastructure has no field statu; did you mean",
    ),
    "code": (
        lambda: ErrorCode.ERR_INFRA_QUOTA,  # type: ignore[attr-defined]
        "there is no ErrorCode ERR_INFRA_QUOTA; did you mean",
    ),
}


@pytest.mark.parametrize(("act", "text"), MISTAKES.values(), ids=MISTAKES)
def test_a_wrong_field_is_one_sentence_without_a_traceback(act, text):
    info = raised(act)
    assert info.text.startswith(text)
    assert re.search(r" \(test_errorinfo\.py:\d+\)$", info.text)
    assert info.is_bug
    assert info.unexpected is None


NOTHING: dict[str, str] = {}


@pytest.mark.parametrize(
    "act",
    [lambda: 1 / 0, lambda: "x".regoin, lambda: NOTHING["x"]],  # type: ignore[attr-defined]
)
def test_any_other_bug_has_its_line_and_its_traceback(act):
    info = raised(act)
    assert re.search(r"Error: .* \(test_errorinfo\.py:\d+\)$", info.text)
    assert info.unexpected is not None


def test_one_code_needs_no_list():
    one: Any = AUTH
    assert ActuatorError("no", codes=one).codes == (AUTH,)


@pytest.mark.parametrize(
    ("codes", "remark"),
    [
        (["ERR_INFRA_UNAUTHENTICATED"], ""),
        (["ERR_UNAUTHENTICATED"], "; unknown error code 'ERR_UNAUTHENTICATED' is ignored; did you"),
        (["VPC"], "; unknown error code 'VPC' is ignored"),
        ([AUTH, "x" * 500], f"; unknown error code '{'x' * 60}' is ignored"),
    ],
)
def test_an_unknown_code_is_named(codes, remark):
    wrapped = RequeueAfter(1, cause=caused(ValueError("no"), ActuatorError("no", codes=codes)))
    for error in (ActuatorError("no", codes=codes), wrapped):
        text = read_error(error).text.partition("no")[2]
        assert text.startswith(remark)
        assert bool(text) is bool(remark)


def forbidden(request, verb, resource, group, where):
    what = resource.partition("/")[0]
    message = f'{request}: {what}{"." * bool(group)}{group} "x" is forbidden: User "mine" cannot '
    return Forbidden(
        403,
        f'{message}{verb} resource "{resource}" in API group "{group}" {where}',
        reason="Forbidden",
    )


NAMESPACE = 'in the namespace "n"'
CLUSTER = "at the cluster scope"
FORBIDDEN_REQUESTS = [
    (("GET /api/v1/namespaces/n/configmaps/x", "get", "configmaps", "", NAMESPACE), "v1"),
    (("GET /apis/apps/v1/deployments", "list", "deployments", "apps", CLUSTER), "apps/v1"),
    (
        (
            "PATCH /apis/x.io/v1beta1/namespaces/n/as/x/status",
            "patch",
            "as/status",
            "x.io",
            CLUSTER,
        ),
        "x.io/v1beta1",
    ),
    (("POST /apis/y.io/v1/ys", "create", "xs", "x.io", CLUSTER), "x.io/v1"),
]


@pytest.mark.parametrize(("refused", "version"), FORBIDDEN_REQUESTS)
@pytest.mark.parametrize("wrap", [lambda e: e, lambda e: caused(ActuatorError("no vpc"), e)])
def test_a_refused_request_names_the_permission_as_code(refused, version, wrap):
    text = read_error(wrap(forbidden(*refused))).text
    found = re.search(r"add (Resource\(.*?\)) to the `permissions` of the actuator, and", text)
    assert found, text
    wanted = Resource(version, refused[2]).permission(refused[1])
    assert eval(found[1], {"Resource": Resource}) == wanted


@pytest.mark.parametrize(
    "message",
    [
        'GET /x: forbidden: User "mine" cannot get path "/x"',
        (
            'POST /api/v1/y: y "z" is forbidden: exceeded quota: User "m" cannot get resource "s" '
            'in API group "" at the cluster scope'
        ),
    ],
)
def test_another_refusal_names_no_permission(message):
    assert "permission(" not in read_error(Forbidden(403, message, reason="Forbidden")).text


def test_each_reason_of_a_refusal_is_in_the_table_for_operators():
    page = (ROOT / "docs/troubleshooting.md").read_text()
    reasons = {reason for _, reason in (*refusals._TEXTS, *refusals._CLASSES)}
    assert len(reasons) > 8
    rows = "".join(re.findall(r"^\| (`.*?) \|", page, re.MULTILINE))
    assert reasons | refusals.REMEDIES.keys() <= {*re.findall(r"`(\w+)`", rows)}
