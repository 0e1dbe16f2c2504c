"""What authors import from `actuator` is a promise: nothing comes or goes by accident."""

import inspect

import pytest

import actuator

PROMISED = [
    "Actuator",
    "ActuatorError",
    "ApiError",
    "Client",
    "Clock",
    "Cluster",
    "Condition",
    "ConditionedStatus",
    "ConfigurationError",
    "Context",
    "DefaultSpec",
    "DefaultStatus",
    "ErrorCode",
    "ExternalResource",
    "FieldProblem",
    "Kind",
    "LastError",
    "LastOperation",
    "Object",
    "ObjectMeta",
    "Permission",
    "Provisioned",
    "ReadyReasons",
    "RequeueAfter",
    "Resource",
    "Result",
    "SeedObjects",
]


def test_the_promised_names_are_all_there_and_no_others():
    assert actuator.__all__ == PROMISED


def test_they_are_sorted():
    assert sorted(actuator.__all__) == actuator.__all__


@pytest.mark.parametrize("name", PROMISED)
def test_each_says_what_it_is(name):
    """A docstring of its own: not inherited, not the signature that a decorator writes."""
    promised = vars(getattr(actuator, name))
    written = inspect.cleandoc(promised.get("__doc__") or "")
    assert len(written.split()) >= 3, f"{name} has no docstring"


@pytest.mark.parametrize("name", PROMISED)
def test_each_lives_in_the_contract(name):
    assert getattr(actuator, name).__module__.startswith("actuator.")
