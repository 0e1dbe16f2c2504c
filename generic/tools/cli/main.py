"""The command `actuator` and its subcommands."""

from collections.abc import Sequence

import click
from click.shell_completion import CompletionItem

from actuator.errors import ActuatorError
from generic.tools.cli.statuses import reported

_COMMANDS = {
    "new": ("new", "Write the project of an extension."),
    "run": ("run", "Run an extension against a cluster."),
    "dev": ("dev", "Develop an extension: run it with a shoot, and reload it."),
    "shoot": ("shoot", "Create, change and delete shoots of `actuator dev`."),
    "drill": ("drill", "Rehearse a force deletion and check its invariants."),
    "explore": ("explore", "Crash-test the manager at every API call."),
    "explain": ("explain", "Explain why an object is stuck."),
    "stuck": ("stuck", "List everything under deletion in a seed."),
    "orphans": ("orphans", "List, verify and close recorded external resources."),
    "record": ("record", "List, export and verify records of force deletions."),
    "drain": ("drain", "Check for objects that still carry the extension's finalizer."),
    "env": ("env", "Start and stop the embedded cluster."),
    "landscape": ("landscape", "Run a real Gardener, without containers."),
    "rbac": ("install", "Print the roles that an extension needs."),
    "crds": ("install", "Print CustomResourceDefinitions."),
    "docs": ("configuration", "Print the documentation of configurations."),
    "validate": ("configuration", "Validate configurations in manifests."),
    "rules": ("monitoring", "Print recording rules and alerts for Prometheus."),
    "dashboards": ("monitoring", "Print dashboards for Grafana."),
    "image": ("chart", "Write the Dockerfile of an extension."),
    "chart": ("chart", "Write the Helm chart and registration of an extension."),
    "completion": ("install", "Print the completion script of a shell."),
}
"""The module of each command, in this package, and its summary."""


class LazyGroup(click.Group):
    """Loads a command's module when the command is used, so that `--help` is fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the order of use."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command, or None."""
        if cmd_name not in _COMMANDS:
            return None
        from importlib import import_module

        try:
            module = import_module(f"{__package__}.{_COMMANDS[cmd_name][0]}")
        except (ActuatorError, ModuleNotFoundError):
            if ctx.resilient_parsing:  # completion: an error would be text at the prompt
                return None
            raise
        command: click.Command = getattr(module, cmd_name)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return the commands and options that begin so, without loading any command."""
        found = [
            (name, text) for name, (_, text) in _COMMANDS.items() if name.startswith(incomplete)
        ]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(CompletionItem(name, help=text) for name, text in found), *options]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands, without loading any of them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])


@click.group(cls=LazyGroup)
@click.version_option(package_name="gardener-actuator", message="%(version)s")
def cli() -> None:
    """Develop, run and test Gardener-style extensions."""


def main(args: Sequence[str] | None = None, name: str | None = None) -> None:
    """Run the command line; exit with a status of `statuses`."""
    with reported():
        from generic.tools.package_conflicts import check_packages

        check_packages()
        given = None if args is None else list(args)
        cli.main(args=given, prog_name=name, standalone_mode=False)


def kubectl() -> None:
    """Run the command line as the plugin `kubectl actuator`."""
    main(name="kubectl actuator")
