"""Registry: the registrations of a manager, before it runs.

Its methods are the part of `Manager` with which authors add actuators; an invalid registration
raises at once, in the author's call. `rbac` generates the Role from the registrations, and `wiring`
the running parts.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import attrs
from msgspec import Struct

from actuator.errors import ConfigurationError
from actuator.interface import (
    Actuator,
    Client,
    Permission,
    ProviderConfig,
    config_class,
    kind_of,
    resource_of,
)
from actuator.meta import Kind, Object, Raw
from generic.controller.predicates import Predicate, all_of, selection
from generic.controller.watch import Watch, watches_for
from generic.manager.mistakes import check_actuator, check_arguments, check_fields
from generic.manager.options import Options
from generic.reconciler.failure import GiveUpAfter, Limits, checked

if TYPE_CHECKING:
    from generic.library.healthchecks import HealthChecks
    from generic.library.webhooks import Webhook
    from generic.library.webhooks.admission import ConfigAdmission

Run = Callable[[Client, threading.Event], None]
"""Run until the event is set."""


def served(registrations: Iterable["Registration"]) -> str:
    """Return the kinds and types of these registrations: "ControlPlane/aws Worker/aws"."""
    return " ".join(
        sorted(
            {f"{item.kind.name}/{type}" for item in registrations for type in item.types or ("",)}
        )
    )


class Registration(Struct, frozen=True, kw_only=True):
    """A registered actuator, from which the Role is generated."""

    name: str
    actuator: Actuator[Any]
    cls: type[Object]
    types: tuple[str, ...]
    workers: int
    predicates: tuple[Predicate, ...]
    watches: tuple[Watch, ...]
    give_up_after: Limits = attrs.field(factory=dict)
    namespaces: tuple[str, ...] = ()
    scope: Predicate | None = None
    """Limits the selection further, in tests and drills that share a cluster."""

    @property
    def kind(self) -> Kind:
        """The actuator's kind, with the actuator's own finalizer if it has one."""
        return kind_of(self.actuator)

    @property
    def config(self) -> type[ProviderConfig] | None:
        """The class of the configurations, None if there is none."""
        found = config_class(self.actuator)
        return None if found == Raw else found

    def selection(self, classes: Sequence[str] | None) -> Predicate:
        """Return the predicate for the objects that the actuator serves.

        `classes` are those of the Options, None every class. The author's predicates are no part of
        it: they filter triggers.
        """
        selected = selection(self.types, classes, self.namespaces)
        return all_of(selected, self.scope) if self.scope else selected

    def shares(self, kind: Kind, types: Sequence[str], namespaces: Sequence[str]) -> str:
        """Return the objects of this selection that we serve as well, in words; "" for none."""
        if str(resource_of(self.kind)) != str(resource_of(kind)):  # of any version
            return ""
        found = [kind.name]
        for ours, theirs in ((self.types, types), (self.namespaces, namespaces)):
            if ours and theirs and not set(ours) & set(theirs):
                return ""
            found += sorted(set(ours) & set(theirs) or {*ours, *theirs})
        return " ".join(found)


class CheckRegistration(Struct, frozen=True, kw_only=True):
    """Registered health checks."""

    name: str
    checks: "HealthChecks"
    workers: int


class Runnable(Struct, frozen=True, kw_only=True):
    """A function that runs beside the controllers while this process leads."""

    name: str
    run: Run
    permissions: tuple[Permission, ...] = ()


@attrs.define(eq=False)
class Registry:
    """The registrations, in order. Names are unique: flags and metrics use them."""

    options: Options
    registrations: list[Registration] = attrs.field(factory=list)
    health_checks: list[CheckRegistration] = attrs.field(factory=list)
    runnables: list[Runnable] = attrs.field(factory=list)
    """Including those of the manager itself."""
    webhooks: list["Webhook"] = attrs.field(factory=list)
    admissions: list["ConfigAdmission"] = attrs.field(factory=list)
    shoot_origin: str = ""
    """The origin of the ManagedResources with the webhooks for shoots."""

    def add(
        self,
        actuator: Actuator[Any],
        *,
        type: str | Sequence[str] = (),
        namespaces: Sequence[str] = (),
        name: str = "",
        workers: int | None = None,
        predicates: Sequence[Predicate] = (),
        watches: Sequence[Watch] = (),
        give_up_after: GiveUpAfter | None = None,
        guards_secret: bool | None = None,
    ) -> None:
        """Add an actuator for the objects of its kind, these types and these namespaces.

        This selection, with the classes of the Options, decides which objects are served; without
        `namespaces` it is every namespace. `predicates` filter which changes of them trigger. They
        cannot hide the deletion of an object that carries our finalizer.

        `name` is used in flags and metrics: by default the kind, or kind and type. Events about a
        resource in `watches` trigger the objects that they concern. A failing deletion is retried
        without limit, unless `give_up_after` has seconds for its error code, or for None: any other
        error. With `guards_secret`, the Secret of spec.secretRef is kept until the last object that
        needs it is cleaned up; set it to False, not None, if a former version of the extension did
        so: then its guards are removed. Raises TypeError, with file and line, for a mistake in the
        actuator's class, its kind or its configuration (module `mistakes`); ValueError if a
        Gardener kind has no type, a name is taken, another actuator serves the same objects, or the
        kind has no namespaces to select or no spec.secretRef to guard.
        """
        from generic.reconciler.behaviours import with_behaviour  # with the first actuator

        types: Any = (type,) if isinstance(type, str) else type
        if not self.registrations:
            self._prepare()
        who = f"add({actuator.__class__.__name__}())"
        lists = {"predicates": predicates, "watches": watches}
        check_arguments(who, {"type": types, **lists}, workers)
        cls = check_actuator(who, actuator)
        if cls.KIND.has_operation_annotation and not all(types or [""]):
            flag = "set type=…, or --type on the command line"
            raise ValueError(f"{who}: {cls.KIND.name} objects have a type; {flag}")
        self._check_served(who, cls.KIND, types, namespaces)
        chosen = self._name(name, cls.KIND.name.lower(), types)
        mode = self.options.ignore_operation_annotation
        registration = Registration(
            name=chosen,
            actuator=with_behaviour(actuator, guards_secret=guards_secret),
            cls=cls,
            types=tuple(types),
            workers=self.options.workers_of(chosen, workers),
            predicates=tuple(predicates),
            watches=watches_for(
                cls.KIND, [*actuator.watches, *watches], ignore_operation_annotation=mode
            ),
            give_up_after=checked(give_up_after or {}),
            namespaces=tuple(namespaces),
        )
        self.registrations.append(registration)

    def add_health_checks(self, checks: "HealthChecks") -> None:
        """Add checks whose results become conditions of the objects of a kind."""
        chosen = self._name("", f"healthcheck-{checks.cls.KIND.name.lower()}", checks.types)
        workers = self.options.workers_of(chosen)
        self.health_checks.append(CheckRegistration(name=chosen, checks=checks, workers=workers))

    def add_runnable(self, name: str, run: Run, *, permissions: Sequence[Permission] = ()) -> None:
        """Add a function to run in its own thread while this process leads, until its event is set.

        It gets a client with `permissions`. If it raises, it is called again.
        """
        chosen = self._name(name, name, ())
        self.runnables.append(Runnable(name=chosen, run=run, permissions=tuple(permissions)))

    def add_webhooks(self, *webhooks: "Webhook", shoot_origin: str = "") -> None:
        """Add admission webhooks; every replica serves them, whether it leads or not.

        Webhooks for shoots are deployed by an actuator, with `Manager.shoot_webhooks`; if
        `shoot_origin` is the origin of its ManagedResources, they are updated when the certificates
        rotate. Raises ValueError if a name is taken, and ConfigurationError for a webhook that
        could block deletions or a whole cluster.
        """
        from generic.library.webhooks.lint import findings  # with the first webhook

        if problems := findings(webhooks):
            raise ConfigurationError("\n".join(problems))
        self.shoot_origin = shoot_origin or self.shoot_origin
        for webhook in webhooks:
            if any(item.name == webhook.name for item in self.webhooks):
                raise ValueError(f"webhook {webhook.name!r} already exists; set another name=…")
            self.webhooks.append(webhook)

    def add_admission(self, *admissions: "ConfigAdmission") -> None:
        """Add the webhooks for objects of the garden; `actuator chart` installs the policies.

        For a manager that runs against the garden. Raises ValueError if a name is taken.
        """
        for admission in admissions:
            if admission.config:
                check_fields(f"add_admission({admission.name})", admission.config)
        self.admissions += admissions
        self.add_webhooks(*(hook for admission in admissions for hook in admission.webhooks()))

    def enabled(self) -> "Registry":
        """Return the enabled registrations. Raises ConfigurationError for unknown names."""
        served = self.options.enabled_webhooks(webhook.name for webhook in self.webhooks)
        names = self.options.enabled(self._names())
        return Registry(
            self.options,
            [registration for registration in self.registrations if registration.name in names],
            [health_check for health_check in self.health_checks if health_check.name in names],
            [runnable for runnable in self.runnables if runnable.name in names],
            [webhook for webhook in self.webhooks if webhook.name in served],
            self.admissions,
            self.shoot_origin,
        )

    @property
    def kinds(self) -> list[tuple[str, Kind]]:
        """The names of the controllers with their kinds."""
        kinds = [(registration.name, registration.kind) for registration in self.registrations]
        return kinds + [(item.name, item.checks.cls.KIND) for item in self.health_checks]

    def _prepare(self) -> None:
        """Do what the first actuator needs, before it is added."""

    def _names(self) -> Iterator[str]:
        yield from (registration.name for registration in self.registrations)
        yield from (health_check.name for health_check in self.health_checks)
        yield from (runnable.name for runnable in self.runnables)

    def _name(self, given: str, default: str, types: tuple[str, ...]) -> str:
        """Return the given name, or one of the kind, or of kind and type. Raises ValueError."""
        taken = set(self._names())
        candidates = [given] if given else [default, *(f"{default}-{type}" for type in types)]
        for candidate in candidates:
            if candidate not in taken:
                return candidate
        raise ValueError(f"controller {candidates[-1]!r} already exists; set another name=…")

    def _check_served(
        self, who: str, kind: Kind, types: Sequence[str], namespaces: Sequence[str]
    ) -> None:
        """Raise ValueError for wrong namespaces, or if another actuator serves the same objects."""
        if isinstance(namespaces, str) or not all(namespaces):
            raise ValueError(f"{who}: namespaces={namespaces!r}: set a list of names")
        if namespaces and not kind.namespaced:
            raise ValueError(f"{who}: {kind.name} objects have no namespace; remove namespaces=…")
        apart = " or namespaces=…" if kind.namespaced else ""
        for other in self.registrations:
            if shared := other.shares(kind, types, namespaces):
                raise ValueError(
                    f"{who}: {other.name} already serves {shared}; remove one, or separate them by "
                    f"type=…{apart}: predicates=… filter triggers, and separate no actuators"
                )
