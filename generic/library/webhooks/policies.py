"""ValidatingAdmissionPolicies from a ConfigAdmission: all that CEL can express. Pure."""

from collections.abc import Iterator
from functools import reduce
from operator import and_, or_

from actuator.interface import ProviderConfig, Resource
from actuator.meta import Raw
from actuator.provider_config import accepted_versions, constants, expected_versions
from actuator.schema import comparable, json_schema
from generic.kube.expressions import Expr, call, choose, joined, literal
from generic.library.manifests import manifest
from generic.library.webhooks.cel import CelCheck, Parts, changes, checks, valid
from generic.library.webhooks.configurations import GROUP_VERSION, conditions, rules
from generic.library.webhooks.places import Place
from generic.library.webhooks.webhook import Webhook

ConfigClass = type[ProviderConfig]
CREATED = Expr("request.operation").equals("CREATE")
POLICIES = Resource(GROUP_VERSION, "validatingadmissionpolicies", namespaced=False)
BINDINGS = Resource(GROUP_VERSION, "validatingadmissionpolicybindings", namespaced=False)
_LIST, _WORKER, _HOLDER, _BEFORE, _CONFIG, _PLACED = (Expr(name) for name in "lwhbcp")
_VALID = Expr("variables.valid")
"""Whether a configuration fits its schema. The API server evaluates the messages of a valid object
as well: with this variable, they cost nothing."""


def policy(
    name: str, selected: Webhook, place: Place, type: str, config: ConfigClass
) -> tuple[Raw, Raw]:
    """Return the ValidatingAdmissionPolicy for the requests of a webhook, and its binding."""
    known = (
        reduce(and_, valid(json_schema(cls), _CONFIG), is_version)
        for cls, is_version in _versions(config, _CONFIG).items()
    )
    is_valid = _of_all("changed", _CONFIG, reduce(or_, known))
    spec: Raw = {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": list(rules(selected)),
            "objectSelector": {"matchLabels": selected.object_labels},
        },
        "matchConditions": list(conditions(selected)),
        "variables": [
            *_variables(place, type),
            {"name": "valid", "expression": is_valid.text},
        ],
        "validations": [
            _validation(check, message, said)
            for check, message, said in (*_checked(place, config), *_immutable(place, config))
        ],
    }
    return with_binding(name, spec)


def with_binding(name: str, spec: Raw) -> tuple[Raw, Raw]:
    """Return the ValidatingAdmissionPolicy with this spec, and its binding, which denies."""
    binding = {"policyName": name, "validationActions": ["Deny"]}
    return (
        manifest(GROUP_VERSION, "ValidatingAdmissionPolicy", name, spec=spec),
        manifest(GROUP_VERSION, "ValidatingAdmissionPolicyBinding", name, spec=binding),
    )


def _validation(check: Expr, message: str, said: Expr) -> Raw:
    return {
        "expression": check.text,
        "message": " ".join(message.split()),
        "messageExpression": said.text,
        "reason": "Invalid",
    }


def configs(root: Expr, place: Place, type: str) -> Expr:
    """Return the configurations of an object, as lists in a list."""
    return _listed(root, place, *_chosen(root, place, type))


def _chosen(root: Expr, place: Place, type: str) -> tuple[Expr, Expr]:
    """Return whether a holder has a configuration of the type, and the configuration."""
    provider = root.optional("spec", "provider")
    found = _HOLDER.optional(place.type_field) if place.type_field else provider.optional("type")
    config = _HOLDER.optional(place.field).method("orValue", call("dyn", None))
    chosen = found.method("orValue", "").equals(type)
    if place.type_field is None:
        chosen = Expr("true")
    if not place.is_always_needed:
        workers = provider.optional("workers").method("orValue", [])
        chosen &= ~(config.equals(None) & workers.equals([]))
    return chosen, choose(config.equals(None), {}, config)


def _listed(root: Expr, place: Place, chosen: Expr, given: Expr) -> Expr:
    mapped = _mapped(root, place.holder, chosen, given)
    return mapped if "[]." in place.holder else literal([mapped])


def _message(parts: Parts, check: Expr | None = None) -> Expr:
    """Return the text about the first configuration, or the first for which a check is false."""
    placed = Expr("variables.placed")
    given = literal([_PLACED["config"]])
    if check:
        wrong = _LIST.method("filter", _PLACED, given.method("exists", _CONFIG, ~check))
        placed = placed.method("map", _LIST, wrong)
    text = given.method("map", _CONFIG, joined(_PLACED["at"], *parts))[0]
    first = literal([placed.method("filter", _LIST, ~_LIST.equals([]))[0][0]])
    return first.method("map", _PLACED, text)[0]


def _first_of(variable: str, text: Expr) -> Expr:
    """Return a text that contains the first configuration before an update."""
    listed = Expr("variables").field(variable).method("filter", _LIST, ~_LIST.equals([]))
    return literal([listed[0][0]]).method("map", _BEFORE, text)[0]


def _path(root: Expr, holder: str) -> Parts:
    head, mark, rest = holder.partition("[]")
    if not mark:
        return (head,)
    listed = root.optional(*head.strip(".").split(".")).method("orValue", [])
    item = _WORKER if rest else _HOLDER
    return head, "[", call("string", listed.method("indexOf", item)), "]", *_path(_WORKER, rest)


def _variables(place: Place, type: str) -> Iterator[Raw]:
    """Yield the configurations before an update, and those to check, also with their paths."""
    root = Expr("object")
    former = choose(CREATED, [], configs(Expr("oldObject"), place, type))
    is_known = Expr("variables.before").method("exists", _LIST, _CONFIG.relation("in", _LIST))
    changed = _WORKER.method("filter", _CONFIG, ~is_known)
    listed = configs(root, place, type).method("map", _WORKER, changed)
    yield {"name": "before", "expression": former.text}
    yield {"name": "changed", "expression": listed.text}
    chosen, given = _chosen(root, place, type)
    is_changed = ~Expr("variables.before").method("exists", _LIST, given.relation("in", _LIST))
    path = call("dyn", joined(*_path(root, place.holder), f".{place.field}"))
    placed = _listed(root, place, chosen & is_changed, literal({"at": path, "config": given}))
    yield {"name": "placed", "expression": placed.text}


def _checked(place: Place, config: ConfigClass) -> Iterator[tuple[Expr, str, Expr]]:
    for check, message, parts in _checks(place, config):
        said = _message(parts, None if place.is_single else check)
        yield _VALID | _of_all("changed", _CONFIG, check), message, choose(_VALID, "", said)


def _checks(place: Place, config: ConfigClass) -> Iterator[CelCheck]:
    field = f"{place.holder}.{place.field}"
    versions = _versions(config, _CONFIG)
    if len(versions) > 1:
        known = reduce(or_, versions.values())
        text = f": {expected_versions(config)}"
        yield known, field + text, (text,)
    for cls, is_version in versions.items():
        for check, message, parts in checks(json_schema(cls), _CONFIG, field):
            yield ~is_version | check if len(versions) > 1 else check, message, parts


def _versions(config: ConfigClass, v: Expr) -> dict[ConfigClass, Expr]:
    """Return the expression for a configuration of each version and of none before it."""
    found: dict[ConfigClass, Expr] = {}
    for cls in accepted_versions(config):
        others = (~_is_version(other, v) for other in found)
        found[cls] = reduce(and_, others, _is_version(cls, v))
    return found


def _immutable(place: Place, config: ConfigClass) -> Iterator[tuple[Expr, str, Expr]]:
    field = f"{place.holder}.{place.field}"
    versions = _versions(config, _CONFIG) if place.is_single else {}
    for cls, is_version in versions.items():
        are_both = _versions(config, _BEFORE)[cls] & is_version
        for change, message, parts in changes(comparable(cls), _BEFORE, _CONFIG, field):
            same = ~are_both | change if len(versions) > 1 else change
            kept = _of_all("before", _BEFORE, same)
            yield _of_all("changed", _CONFIG, kept), message, _first_of("before", _message(parts))


def _of_all(variable: str, v: Expr, check: Expr) -> Expr:
    """Return whether the check is true for each configuration `v` of a variable."""
    return Expr("variables").field(variable).method("all", _LIST, _LIST.method("all", v, check))


def _mapped(root: Expr, holder: str, chosen: Expr, given: Expr) -> Expr:
    """Return what is given of the chosen holders, for a list in a list as lists."""
    head, mark, rest = holder.partition("[]")
    found = root.optional(*head.strip(".").split("."))
    if rest:
        inner = _mapped(_WORKER, rest, chosen, given)
        return found.method("orValue", []).method("map", _WORKER, inner)
    listed = found.method("orValue", []) if mark else literal([found.method("orValue", {})])
    return listed.method("map", _HOLDER, chosen, given)


def _is_version(cls: type[ProviderConfig], v: Expr) -> Expr:
    fields = (
        choose(v.has(name), v[name], call("dyn", None if needed else value)).equals(value)
        for name, value, needed in constants(cls)
    )
    return reduce(and_, fields)
