"""Ranges of a Bastion: each once, as a cloud writes it; no other text is a range."""

from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actuator.codec import decode
from actuator.errors import ConfigurationError
from actuator.v1alpha1 import Bastion
from generic.library.bastion import ingress_problems, ingress_ranges


def bastion(*blocks):
    ingress = [
        {"ipBlock": {"cidr": block} if isinstance(block, str) else block} for block in blocks
    ]
    meta = {"name": "mine", "namespace": "shoot--a--b"}
    return decode(Bastion, {"metadata": meta, "spec": {"userData": "", "ingress": ingress}})


@pytest.mark.parametrize(
    ("cidrs", "expected"),
    [
        (("198.51.100.0/24", "2001:db8::/64"), ["198.51.100.0/24", "2001:db8::/64"]),
        (("1.2.3.4/8",), ["1.0.0.0/8"]),
        (("198.51.100.7/32", "198.51.100.7/32"), ["198.51.100.7/32"]),
        (("10.1.0.0/8", "10.2.0.0/8"), ["10.0.0.0/8"]),
        (("2001:DB8:0:0::1/64", "2001:db8::/64"), ["2001:db8::/64"]),
        (("0.0.0.0/0", "::/0"), ["0.0.0.0/0", "::/0"]),
    ],
)
def test_ranges_are_normalised_and_each_is_returned_once(cidrs, expected):
    assert [str(ingress_range) for ingress_range in ingress_ranges(bastion(*cidrs))] == expected
    assert list(ingress_problems(bastion(*cidrs))) == []


WRONG = [
    "",
    "anywhere",
    "10.0.0.0",
    "10.0.0.0/33",
    "10.0.0/8",
    "10.0.0.0/255.0.0.0",
    "10.0.0.0/0.0.0.255",
    "010.0.0.0/8",
    "fe80::1%eth0/64",
    "2001:db8::/129",
    "10.0.0.0/-1",
    "10.0.0.0/٨",
    " 10.0.0.0/8",
    "10.0.0.0/8\n",
]


@pytest.mark.parametrize("cidr", WRONG)
def test_a_cidr_that_go_refuses_is_a_problem_with_field_path_and_example(cidr):
    obj = bastion("10.0.0.0/8", cidr)
    (problem,) = ingress_problems(obj)
    assert problem.field == "spec.ingress[1].ipBlock.cidr"
    assert problem.detail.endswith(f"such as 203.0.113.0/24 or 2001:db8::/64, got {cidr!r}")
    with pytest.raises(ConfigurationError, match=r"^Bastion shoot--a--b/mine: spec.ingress\[1\]"):
        ingress_ranges(obj)


def test_an_exclusion_is_a_problem_because_ignoring_it_would_allow_more():
    obj = bastion({"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}, "anywhere")
    fields = [problem.field for problem in ingress_problems(obj)]
    assert fields == ["spec.ingress[0].ipBlock.except", "spec.ingress[1].ipBlock.cidr"]
    with pytest.raises(
        ConfigurationError, match=r"except: ranges cannot be excluded; .*; spec.ing"
    ):
        ingress_ranges(obj)


@given(st.lists(st.tuples(st.ip_addresses(), st.integers(0, 32)), min_size=1))
def test_no_range_allows_more_or_less_than_was_asked_for(asked):
    ranges = ingress_ranges(bastion(*(f"{address}/{length}" for address, length in asked)))
    assert len(set(ranges)) == len(ranges)
    wanted = {ip_network(f"{address}/{length}", strict=False) for address, length in asked}
    assert set(ranges) == wanted


class Firewall:
    def __init__(self):
        self.rules = {}

    def set_rules(self, name, rules):
        self.rules[name] = rules


def test_the_example_in_the_documentation_runs():
    text = (Path(__file__).parents[3] / "docs/extensions.md").read_text()
    code = text.partition("## Bastions")[2].split("```")[1]
    names: dict[str, Any] = {"MyFirewall": Firewall}
    exec(code.removeprefix("python"), names)
    firewall = Firewall()
    obj = bastion("10.1.2.3/8", "2001:DB8::1/64")
    actuator = names["MyBastion"](firewall)
    assert list(actuator.validate(None, obj, None)) == []
    actuator.reconcile(None, obj, None)
    assert firewall.rules == {"mine": [("IPv4", "10.0.0.0/8", 22), ("IPv6", "2001:db8::/64", 22)]}
    actuator.delete(None, obj, None)
    assert firewall.rules == {"mine": []}
