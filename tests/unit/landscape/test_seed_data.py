"""The pure parts of a seed: names of API servers, authorities, configuration of gardenlet."""

import base64

import pytest

from generic.testing.envtest.certificates import LocalAuthority
from generic.testing.landscape.seed import shoot_of
from generic.testing.landscape.seedobjects import SeedPlan, gardenlet_configuration
from generic.testing.landscape.shoots import authorities

PLAN = SeedPlan("seed", "aws", "eu", ["eu-1"], "dns", "example.com", {"key": "value"})


@pytest.mark.parametrize(
    ("host", "service"),
    [
        ("api.one.dev.internal.example.com", ("shoot--dev--one", "kube-apiserver")),
        ("api.one.dev.default.example.com", ("shoot--dev--one", "kube-apiserver")),
        ("api.one.dev.internal.example.org", None),
        ("api.one.dev.internal.exampleXcom", None),
        ("other.one.dev.internal.example.com", None),
        ("api.one.dev.internal.example.com.evil.org", None),
        ("10.2.0.1", None),
    ],
)
def test_the_name_of_a_shoots_api_server_leads_to_its_service(host, service):
    assert shoot_of(host, "example.com") == service


def secret(name, issued, pair, *, has_key=True):
    data = {"ca.crt": base64.b64encode(pair.certificate).decode()}
    if has_key:
        data["ca.key"] = base64.b64encode(pair.key).decode()
    return {"metadata": {"labels": {"name": name, "issued-at-time": str(issued)}}, "data": data}


def test_the_newest_authority_signs_and_all_of_the_name_are_trusted():
    old, new, other = (LocalAuthority.new("ca").key_pair for _ in range(3))
    found = authorities(
        [
            secret("ca-client", 200, new),
            secret("ca-client", 100, old),
            secret("ca", 300, other),
            secret("ca-kubelet", 400, other, has_key=False),
            {"metadata": {}, "data": {}},
        ]
    )
    assert {name: item.newest.key_pair for name, item in found.items()} == {
        "ca-client": new,
        "ca": other,
    }
    assert found["ca-client"].certificates == old.certificate + new.certificate


def test_gardenlets_thresholds_are_its_own():
    """The errors of a Shoot appear as in a real landscape; the configuration changes none."""
    made = gardenlet_configuration(PLAN, "garden", "seed", 1, 2)
    assert made["seedConfig"]["metadata"]["name"] == "seed"
    assert "retryDuration" not in made["controllers"]["shoot"]
    assert "conditionThresholds" not in made["controllers"]["shootCare"]
