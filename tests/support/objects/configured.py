"""Calls an actuator as the framework does: with the configuration of the object."""

from __future__ import annotations

from typing import Any

from actuator.cluster import Cluster
from actuator.interface import Actuator, FieldProblem, WrappedActuator, config_class
from actuator.meta import Object
from actuator.provider_config import Configurations
from generic.testing.recording import RecordingContext


class Configured(WrappedActuator):
    """Gives the Context of each call the configurations of its object."""

    def _around(self, operation: str, work: Any, ctx: Any, obj: Any, cluster: Any) -> Any:
        ctx.configurations = Configurations(config_class(self), obj)
        return work(ctx, obj, cluster)

    def validate(self, ctx: Any, obj: Any, cluster: Any) -> list[FieldProblem]:
        configurations = ctx.configurations = Configurations(config_class(self), obj)
        return configurations.problems() or list(self.inner.validate(ctx, obj, cluster))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class ConfiguredContext(RecordingContext):
    configurations: Configurations

    @property
    def config(self) -> Any:
        return self.configurations.get()

    @config.setter
    def config(self, _: Any) -> None: ...


def problems_of_object(
    actuator: Actuator[Any], obj: Object, cluster: Cluster | None = None
) -> list[FieldProblem]:
    """The problems for which the framework does not reconcile an object."""
    return Configured(actuator).validate(ConfiguredContext(), obj, cluster or Cluster())
