"""The admission of an extension in `actuator dev`: a manager of its own, policies, and examples.

The garden's types are CRDs in the embedded cluster (`generic.testing.gardenapi`). The admission has
a user of its own, with exactly the permissions of its chart.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from actuator.errors import ConfigurationError, NotFound
from actuator.interface import Client, ProviderConfig
from actuator.meta import Raw
from actuator.schema import json_schema
from generic.kube.client import HttpClient
from generic.library.manifests import manifest_of
from generic.library.webhooks import ConfigAdmission, NamespacedCloudProfile, Shoot
from generic.library.webhooks.configurations import MUTATING, VALIDATING
from generic.library.webhooks.places import IN_GARDEN
from generic.manager.manager import Manager
from generic.manager.options import Options
from generic.manager.rbac import grant
from generic.manager.webhooks import endpoint_of
from generic.testing.gardenapi.admission import apply_policies, remove_policies
from generic.testing.gardenapi.controllers import serve_garden
from generic.testing.gardenapi.install import install_garden
from generic.testing.minimal import POOL, example
from generic.testing.polling import polling
from generic.tools.cli.development import DevelopmentTarget
from generic.tools.cli.load import load_manager
from generic.tools.packaging.chart import yaml_text

USER = "actuator-dev-admission"
_GARDEN = {place.of for place in IN_GARDEN}


def admission_beside(extension: str) -> str:
    """Return the function `admission` in the module of this name beside the extension, or ""."""
    name = f"{extension.partition(':')[0]}.admission"
    with suppress(ModuleNotFoundError):  # the extension is a module, not a package
        if find_spec(name):
            return f"{name}:admission"
    return ""


def admission_manager(target: DevelopmentTarget, options: Options) -> Manager | None:
    """Return a manager with the admission of an extension, if there is one.

    Raises ConfigurationError.
    """
    found = target.admission
    reference = admission_beside(target.extension or "") if found is None else found
    if reference in ("", "none"):
        return None
    manager = load_manager(reference, (), options)
    if manager.registrations:
        why = "the function added an actuator; name the one that adds the admission"
        raise ConfigurationError(f"--admission {reference}: {why}")
    return manager


@contextmanager
def serving_garden(
    target: DevelopmentTarget, client: HttpClient, manager: Manager, options: Options | None
) -> Iterator[None]:
    """Serve the garden and the admission of an extension, if it has one, until the context is left.

    `client` has the rights of an administrator. `manager` is that of the extension, `options` are
    those of the admission, None on an existing cluster. Raises ApiError and ConfigurationError.
    """
    if options is None:
        yield
        return
    admission = admission_manager(target, options) or Manager(options)
    admissions = [*manager.admissions, *admission.admissions]
    if admission.webhooks:
        grant(client, admission, USER)
    else:
        _remove_webhooks(client, options)
    if not (admissions or admission.webhooks):
        remove_policies(client)
        yield
        return
    install_garden(client)
    apply_policies(client, admissions)
    examples = yaml_text(*example_objects(admissions))
    _examples(target).write_text(examples, encoding="utf-8")
    if admission.webhooks:
        admission.start()
    with polling(partial(serve_garden, client), "garden"):
        yield


def _examples(target: DevelopmentTarget) -> Path:
    return (target.kubeconfig or Path()).parent / "garden.yaml"


def _remove_webhooks(client: Client, options: Options) -> None:
    """Remove the webhooks of the code before a change."""
    for resource in (MUTATING, VALIDATING):
        with suppress(NotFound):
            client.delete(resource, endpoint_of(options).service)


def banner(target: DevelopmentTarget, manager: Manager, options: Options | None) -> str:
    """Return the text about the admission of an extension; "" if it has none."""
    admission = admission_manager(target, options or manager.options)
    served = [*described(manager), *(described(admission) if admission else ())]
    if not served:
        return ""
    if options is None:
        return "\nThe admission is not served on an existing cluster.\n"
    lines = "\n".join(f"  {line}" for line in served)
    examples = _examples(target)
    return f"""
The cluster is a garden as well. The admission judges these objects:
{lines}
Their types are CRDs of this framework, not gardener-apiserver. Change a copy of the examples:
  cp {examples} .
  kubectl apply --server-side -f {examples.name}
"""


def described(manager: Manager) -> Iterator[str]:
    """Yield a line for each admission, with the kind of the objects, its policy and webhooks."""
    names = set[str]()
    for admission in manager.admissions:
        own = [webhook.name for webhook in admission.webhooks()]
        names.update(own)
        parts = ["policy"] * (admission.config is not None) + [f"webhook {name}" for name in own]
        kind = admission.place.of.KIND.name
        yield f"{kind:<23}type {admission.type}: {admission.kind.KIND.name}, {', '.join(parts)}"
    for webhook in manager.webhooks:
        if webhook.name not in names and {*webhook.kinds} & _GARDEN:
            kinds = " ".join(cls.KIND.name for cls in webhook.kinds)
            yield f"{kinds:<23}webhook {webhook.name}"


def example_objects(admissions: Iterable[ConfigAdmission]) -> list[Raw]:
    """Return an object for each kind and type, with examples of all its configurations."""
    groups = defaultdict[tuple[Any, str], list[ConfigAdmission]](list)
    for admission in admissions:
        if admission.config:
            groups[admission.place.of, admission.type].append(admission)
    return [_example(cls, type, found) for (cls, type), found in groups.items()]


def _example(cls: Any, type: str, admissions: Sequence[ConfigAdmission]) -> Raw:
    spec: Raw = {}
    if cls is Shoot:
        machine = {"type": POOL["machineType"], "image": {**POOL["machineImage"]}}
        pool = {"name": POOL["name"], "machine": machine, "minimum": 1, "maximum": 2}
        spec = {"region": "region", "provider": {"type": type, "workers": [pool]}}
    elif cls is NamespacedCloudProfile:
        spec = {"parent": {"kind": "CloudProfile", "name": f"example-{type}"}}
    for admission in admissions:
        _put(spec, admission)
    if cls.KIND.name == "BackupBucket":
        spec["provider"] = {"type": type, "region": "region"}
    namespace = "default" if cls.KIND.namespaced else ""
    return manifest_of(cls, f"example-{type}", namespace, spec=spec)


def _put(spec: Raw, admission: ConfigAdmission) -> None:
    holder = spec
    _, *path = admission.place.holder.split(".")
    for part in path:
        name = part.removesuffix("[]")
        found = holder.setdefault(name, {} if name == part else [{}])
        holder = found if name == part else found[0]
    if admission.place.type_field:
        holder[admission.place.type_field] = admission.type
    config: type[ProviderConfig] | None = admission.config
    if config:
        holder[admission.place.field] = example(json_schema(config))
