"""The rendered webhook configurations: deletions are exempt by construction."""

import pytest

from actuator.v1alpha1 import Network
from generic.library.webhooks import Webhook
from generic.library.webhooks.configurations import EXEMPT, Endpoint, Mode, configurations


def conditions(**given):
    """Return the names of the conditions of a webhook."""
    webhook = Webhook(
        name="mine",
        kinds=[Network],
        handle=lambda _request: None,
        mutating=False,
        failure_policy="Fail",
        **given,
    )
    endpoint = Endpoint(mode=Mode.SERVICE, name="acme", namespace="garden", port=443)
    [(_, configuration)] = configurations([webhook], endpoint, b"")
    return [
        match_condition["name"]
        for match_condition in configuration["webhooks"][0]["matchConditions"]
    ]


@pytest.mark.parametrize("given", [{}, {"names": ["a"]}, {"conditions": {"b": "true"}}])
def test_deletions_of_gardeners_kinds_are_exempt_also_before_they_begin(given):
    own = ["names"] if "names" in given else [*given.get("conditions", {})]
    assert conditions(**given) == [EXEMPT["name"], "exempt-confirmed-deletions", *own]


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("a.example.org", "a.example.org"),
        ("a.example.org:9443", "a.example.org"),
        ("192.0.2.10:9443", "192.0.2.10"),
        ("[2001:db8::1]:9443", "2001:db8::1"),
        ("[2001:db8::1]", "2001:db8::1"),
    ],
)
def test_a_certificate_for_a_url_is_for_its_host(host, name):
    endpoint = Endpoint(mode=Mode.URL, name="acme", namespace="", port=9443, host=host)
    assert endpoint.host_names == [name]
