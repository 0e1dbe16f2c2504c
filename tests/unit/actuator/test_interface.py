"""The interface of authors: kinds, defaults, codes, words."""

from datetime import timedelta

import pytest

from actuator import Actuator, ActuatorError, ConfigurationError, ErrorCode, RequeueAfter, Result
from actuator.errors import AlreadyExists, Conflict, Unavailable, api_error, codes_of
from actuator.interface import ExternalResource, object_class
from actuator.v1alpha1 import ControlPlane, Infrastructure


class Network(Actuator[Infrastructure]):
    def reconcile(self, ctx, obj, cluster):
        raise NotImplementedError

    def delete(self, ctx, obj, cluster):
        raise NotImplementedError


class Derived(Network):
    pass


def test_an_actuator_has_its_kind_also_through_inheritance():
    assert object_class(Network()) is Infrastructure
    assert object_class(Derived()) is Infrastructure


def test_an_actuator_without_a_kind_is_an_error_that_shows_the_syntax():
    class Vague(Actuator):
        reconcile = delete = lambda self, ctx, obj, cluster: None

    with pytest.raises(TypeError, match=r"Actuator\[Infrastructure\]"):
        object_class(Vague())


def test_reconcile_and_delete_have_to_be_written():
    with pytest.raises(TypeError, match="Actuator has no method delete; define delete"):
        Actuator()  # type: ignore[abstract]  # what is refused


@pytest.mark.parametrize("cls", [Infrastructure, ControlPlane])
def test_by_default_external_resources_are_unknown_once_anything_was_stored(cls):
    actuator = Network()
    assert list(actuator.external_resources(cls())) == []
    for field in ("provider_status", "state"):
        obj = cls()
        setattr(obj.status, field, {"password": "secret"})
        assert list(actuator.external_resources(obj)) == [ExternalResource(type="unknown")]


def test_an_actuator_that_leaves_nothing_reports_no_unknown_resource():
    obj = Infrastructure()
    obj.status.state = {"a": "b"}
    actuator = Network()
    actuator.leaves_nothing = True
    assert list(actuator.external_resources(obj)) == []


def test_codes_are_found_wherever_in_the_chain_they_are():
    cause = ActuatorError("quota", codes=[ErrorCode.ERR_INFRA_QUOTA_EXCEEDED])
    wrapped = ValueError("while creating")
    wrapped.__cause__ = ConfigurationError("bad")
    wrapped.__cause__.__cause__ = cause
    assert codes_of(wrapped) == (
        ErrorCode.ERR_CONFIGURATION_PROBLEM,
        ErrorCode.ERR_INFRA_QUOTA_EXCEEDED,
    )
    assert codes_of(RequeueAfter(1, cause=cause)) == (ErrorCode.ERR_INFRA_QUOTA_EXCEEDED,)
    assert codes_of(None) == ()


def test_a_chain_of_causes_that_bites_its_tail_ends():
    one = ValueError()
    two = ValueError()
    one.__cause__ = two
    two.__cause__ = one
    assert codes_of(one) == ()


def test_not_done_yet_is_no_actuator_error():
    assert not issubclass(RequeueAfter, ActuatorError)
    assert str(RequeueAfter(30)) == "Next attempt in 30 s"


@pytest.mark.parametrize("code", list(ErrorCode))
def test_five_codes_let_a_shoot_be_force_deleted(code):
    allowed = {
        "ERR_INFRA_UNAUTHENTICATED",
        "ERR_INFRA_UNAUTHORIZED",
        "ERR_INFRA_DEPENDENCIES",
        "ERR_CLEANUP_CLUSTER_RESOURCES",
        "ERR_CONFIGURATION_PROBLEM",
    }
    assert code.allows_force_deletion is (code in allowed)


def test_an_answer_of_the_api_server_becomes_the_matching_exception():
    assert type(api_error(409, {"reason": "AlreadyExists"})) is AlreadyExists
    assert type(api_error(409, {})) is Conflict
    assert type(api_error(503, {"details": "nonsense"})) is Unavailable
    assert api_error(429, {}, retry_after=2).retry_after == 2
    assert api_error(403, {"details": {"causes": [{"reason": "X"}, 5]}}).causes == ("X",)


@pytest.mark.parametrize("seconds", [-1, float("inf"), float("nan"), "30", True, timedelta(30)])
def test_looking_again_takes_a_finite_number_of_seconds(seconds):
    with pytest.raises(ValueError, match="finite and at least 0"):
        Result(requeue_after=seconds)
    with pytest.raises(ValueError, match="finite and at least 0"):
        RequeueAfter(seconds)
    assert Result(requeue_after=2).requeue_after == 2
