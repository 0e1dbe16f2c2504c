"""Keyword arguments that become fields of a class: names and types are those of the class."""

from typing import get_type_hints

import attrs
import pytest

from actuator.meta import Kind, OwnKindFields
from generic.library.managedresources import ManagedResourceActuator
from generic.library.managedresources.deployment import Fields
from generic.library.webhooks.webhook import Webhook, WebhookFields

REQUIRED = {"name", "kinds", "handle", "mutating", "failure_policy"}
OF_GARDENER = {
    "migratable",
    "has_operation_annotation",
    "outcomes_are_watched",
    "triggers",
    "behaviour",
}
GIVEN = {"name", "group", "columns", "ready"}


@pytest.mark.parametrize(
    ("arguments", "cls", "others"),
    [(WebhookFields, Webhook, REQUIRED), (OwnKindFields, Kind, OF_GARDENER | GIVEN)],
    ids=["mutates", "own_kind"],
)
def test_arguments_are_the_fields_of_the_class_with_their_types(arguments, cls, others):
    hints = get_type_hints(cls)
    fields = {
        field.name: hints[field.name] for field in attrs.fields(cls) if field.name not in others
    }
    assert get_type_hints(arguments) == fields


def test_attributes_of_a_managed_resource_are_the_arguments_of_its_deployment():
    hints = get_type_hints(ManagedResourceActuator)
    expected = {name: hint for name, hint in get_type_hints(Fields).items() if name in hints}
    assert expected.keys() == Fields.__annotations__.keys() - {"keep_objects"}
