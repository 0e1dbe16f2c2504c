"""The API server computes built expressions as Python computes the same from the same values.

EXPRESSIONS is the number of generated expressions (default: 300).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from operator import and_, or_
from random import Random
from typing import Annotated, Any, ClassVar

import attrs
import pytest

from actuator.errors import ApiError
from actuator.interface import resource_of
from actuator.meta import KeepsUnknownFields, Kind, Object, Raw, Schema, own_kind
from generic.kube.client import HttpClient, connect, path_of
from generic.kube.expressions import Expr, call, choose, literal
from generic.library.manifests import manifest
from generic.library.webhooks.configurations import GROUP_VERSION
from generic.library.webhooks.policies import BINDINGS, POLICIES
from generic.testing.envtest import Environment
from generic.testing.seed import install
from tests.support.cluster.harness import eventually
from tests.support.objects.configurations import equal

EXPRESSIONS = int(os.environ.get("EXPRESSIONS", "300"))
TEXTS = [
    "", "a", "namespace", "in", "true", "null", "__in__", "it's", 'say "so"', "\\", "\\n", "\\\\",
    "a\nb", "\r\n", "\t", "\0", "\x7f", "\u2028", "é", "😀", "${a}", "{0}", "{{ a }}", "a.b", "a-b",
    "a/b", "0", "a b", "`", "'''", '"""', "r'a'", "//", "/*", "^a$", "[", "\\d+", "\u200b",
]  # fmt: skip
VALUES: list[Any] = [
    *TEXTS, None, True, False, 0, 1, -1, 7, 2**53 + 1, 2**63 - 1, -(2**63), 0.5, -1.5, 1e300, 1e-7,
    [], {}, [1], ["a"], [1, "a"], [[1], ["a"]], [None], [{}, {"in": 1}], {"a": 1, "b": "x"},
    {"namespace": {"in": [1, 2]}}, {"": ""}, ["\\", '"', "\n"], {'"': "\\"}, [-1, 0.5], [[], [[]]],
]  # fmt: skip
REGEXES = ["^a$", "^$", r"^\d+$", r"^[\\\"]+$", "^[^\n]*$", "^(?:a|é)+$", r"^\.|\\$", "😀", r"\t"]
KIND = "Expression"


@attrs.define(kw_only=True)
class Values(Object):
    """An object whose spec has one field for each value, named by any text."""

    KIND: ClassVar[Kind] = own_kind(KIND, "expressions.example.org")

    spec: Raw = attrs.field(factory=dict)


@attrs.frozen(kw_only=True)
class ReservedSpec(KeepsUnknownFields):
    namespace: Annotated[str, Schema(immutable="always", max_length=9)] = ""
    in_: Annotated[str, Schema(immutable="always", max_length=9)] = ""
    loop: Annotated[str, Schema(immutable="always", max_length=9)] = ""
    dashed: Annotated[str, Schema(immutable="always", max_length=9)] = attrs.field(
        default="", metadata={"wire": "a-b.c/d__e"}
    )
    free: str = ""


@attrs.define(kw_only=True)
class Reserved(Object):
    """An own kind with fields that CEL reserves or cannot name."""

    KIND: ClassVar[Kind] = own_kind("Reserved", "expressions.example.org")

    spec: Annotated[ReservedSpec, Schema(required=True)] = attrs.field(factory=ReservedSpec)


@pytest.fixture
def client(borrowed) -> Iterator[HttpClient]:
    with Environment() as started:
        install(started, [Values, Reserved])
        yield connect(started.kubeconfig)


Rule = Callable[[int], tuple[Expr, bool]]
"""Makes a pair of an expression and its value, with conditions inside as deep as the number."""


class Grower:
    """Grows pairs of an expression and the value that it has in Python."""

    def __init__(self, spec: Raw, rng: Random) -> None:
        self.spec = spec
        self.rng = rng

    def condition(self, depth: int) -> tuple[Expr, bool]:
        rules: list[Rule] = [self._equality, self._membership, self._field, self._match, self._type]
        if depth:
            rules = [self._both, self._not, self._choice, self._each, self._absent]
        return self.rng.choice(rules)(depth - 1)

    def _value(self) -> tuple[Expr, Any]:
        name = self.rng.choice(list(self.spec))
        return Expr("object.spec")[name], self.spec[name]

    def _equality(self, _: int) -> tuple[Expr, bool]:
        found, value = self._value()
        other = self.rng.choice([value, self.rng.choice(VALUES)])
        return found.equals(other), equal(value, other)

    def _membership(self, _: int) -> tuple[Expr, bool]:
        found, value = self._value()
        among = self.rng.sample(VALUES, 3)
        return found.relation("in", among), any(equal(value, item) for item in among)

    def _field(self, _: int) -> tuple[Expr, bool]:
        found, value = self._value()
        name = self.rng.choice(TEXTS)
        return found.has(name), isinstance(value, dict) and value.get(name) is not None

    def _match(self, _: int) -> tuple[Expr, bool]:
        found, value = self._value()
        regex = self.rng.choice(REGEXES)
        is_text = isinstance(value, str)
        is_short = call("size", found).relation("<=", 3)
        fits = is_text and len(value) <= 3 and re.search(regex, value, re.ASCII)
        return found.is_a(str) & is_short & found.method("matches", regex), bool(fits)

    def _type(self, _: int) -> tuple[Expr, bool]:
        found, value = self._value()
        types = self.rng.sample([bool, dict, float, int, list, str], 2)
        return found.is_a(*types), type(value) in types

    def _both(self, depth: int) -> tuple[Expr, bool]:
        one, first = self.condition(depth)
        other, second = self.condition(depth)
        operator: Callable[[Any, Any], Any] = self.rng.choice([and_, or_])
        return operator(one, other), operator(first, second)

    def _not(self, depth: int) -> tuple[Expr, bool]:
        found, value = self.condition(depth)
        if self.rng.random() < 0.5:
            return ~found, not value
        return found.equals(True), value

    def _choice(self, depth: int) -> tuple[Expr, bool]:
        pairs = [self.condition(depth) for _ in range(3)]
        (_, is_first), (_, first), (_, other) = pairs
        found = choose(*(expression for expression, _ in pairs))
        return found.equals(True), first if is_first else other

    def _each(self, depth: int) -> tuple[Expr, bool]:
        """A macro over literals, whose condition has the variable and another condition."""
        x = Expr(f"x{depth}")
        values = self.rng.sample(VALUES, 2)
        wanted = self.rng.choice(values)
        inner, is_true = self.condition(depth)
        results = [equal(item, wanted) or is_true for item in values]
        condition = call("dyn", x).equals(wanted) | inner
        name, function = self.rng.choice([("all", all), ("exists", any)])
        return literal(values).method(name, x, condition), function(results)

    def _absent(self, _: int) -> tuple[Expr, bool]:
        first, second = self.rng.choice(list(self.spec)), self.rng.choice(TEXTS)
        holder = self.spec[first]
        value = holder.get(second, 5) if isinstance(holder, dict) else 5
        if not isinstance(holder, dict):
            first, value = "no such field", 5
        found = Expr("object").optional("spec", first, second).method("orValue", call("dyn", 5))
        return found.equals(5), equal(value, 5)


def refusal(client: HttpClient, name: str, spec: Raw) -> str:
    body = {"apiVersion": resource_of(Values.KIND).api_version, "kind": KIND, "spec": spec}
    body["metadata"] = {"name": name, "namespace": "default"}
    try:
        path = path_of(resource_of(Values.KIND), "default")
        client.send("POST", path, query={"dryRun": "All"}, body=json.dumps(body).encode())
    except ApiError as error:
        return str(error)
    return ""


def test_the_api_server_computes_like_python(client):
    rng = Random(EXPRESSIONS)
    spec = {name: rng.choice(VALUES) for name in TEXTS} | {f"v{i}": v for i, v in enumerate(VALUES)}
    pairs = [Grower(spec, rng).condition(rng.randint(0, 4)) for _ in range(EXPRESSIONS)]
    assert 0.2 < sum(value for _, value in pairs) / EXPRESSIONS < 0.8
    expected = [expression if value else ~expression for expression, value in pairs]
    plural = {"apiGroups": [Values.KIND.group], "resources": [Values.KIND.plural]}
    rule = {**plural, "apiVersions": ["*"], "operations": ["CREATE"]}
    policy = manifest(
        GROUP_VERSION,
        "ValidatingAdmissionPolicy",
        "expressions",
        spec={
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [
                {"expression": 'object.metadata.name != "refused"', "message": "active"},
                *({"expression": item.text, "message": item.text} for item in expected),
            ],
        },
    )
    binding = {"policyName": "expressions", "validationActions": ["Deny"]}
    client.apply(POLICIES, policy)
    client.apply(
        BINDINGS,
        manifest(GROUP_VERSION, "ValidatingAdmissionPolicyBinding", "expressions", spec=binding),
    )
    assert "active" in eventually(lambda: refusal(client, "refused", spec))
    assert refusal(client, "one", spec) == ""


def test_fields_with_reserved_names_are_immutable(client):
    resource = resource_of(Reserved.KIND)
    names = ["namespace", "in", "loop", "a-b.c/d__e"]
    meta = {"name": "one", "namespace": "default"}
    head = {"apiVersion": resource.api_version, "kind": "Reserved", "metadata": meta}
    client.create(resource, {**head, "spec": {"namespace": "a"}})
    assert client.patch(resource, "one", "default", {"spec": {"free": "x"}})
    for name in names:
        with pytest.raises(ApiError, match="field is immutable, also without a value"):
            client.patch(resource, "one", "default", {"spec": {name: "b"}})
