"""`actuator rules` and `actuator dashboards`: print files for Prometheus and Grafana."""

from pathlib import Path

import click
import yaml

from actuator.errors import ConfigurationError
from actuator.meta import Raw
from generic.tools.monitoring import (
    GROUPS,
    dashboard_files,
    prometheus_rule,
    rule_file,
    service_monitor,
)

_RUNBOOKS = "docs/runbooks"


def _labels(
    _ctx: click.Context, _option: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    pairs = [value.partition("=") for value in values]
    if any(not key or not equals for key, equals, _ in pairs):
        raise click.BadParameter("expected KEY=VALUE, for example prometheus=seed")
    return {key: value for key, _, value in pairs}


def _print(*manifests: Raw) -> None:
    click.echo(yaml.safe_dump_all(manifests, sort_keys=False, width=10_000), nl=False)


@click.command()
@click.option(
    "--operator",
    "name",
    metavar="NAME",
    help="Print a PrometheusRule and a ServiceMonitor for the Prometheus operator; NAME is that of "
    "`actuator chart --name NAME`.",
)
@click.option(
    "--label",
    "labels",
    multiple=True,
    callback=_labels,
    help="Label KEY=VALUE that a Prometheus selects.  [default: prometheus=seed]",
)
@click.option(
    "--runbook-url",
    default=_RUNBOOKS,
    show_default=True,
    help="URL prefix of the runbooks of the alerts.",
)
def rules(name: str | None, labels: dict[str, str], runbook_url: str) -> None:
    """Print the recording rules and alerts as a Prometheus rule file."""
    if name is None:
        _print(rule_file(GROUPS, runbook_url))
        return
    found_by = labels or {"prometheus": "seed"}
    _print(prometheus_rule(GROUPS, runbook_url, name, found_by), service_monitor(name, found_by))


@click.command()
@click.argument("name", required=False)
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder to write all dashboards into; existing files are replaced.",
)
def dashboards(name: str | None, output: Path | None) -> None:
    """Print the dashboard NAME as JSON for Grafana; without NAME, list the dashboards.

    No real Grafana has loaded them in our tests: their queries run against a real Prometheus.
    """
    files = dashboard_files()
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        for stem, text in files.items():
            path = output / f"{stem}.json"
            path.write_text(text)
            click.echo(path)
    elif name is None:
        click.echo("\n".join(files))
    elif name not in files:
        raise ConfigurationError(f"unknown dashboard {name!r}; set one of: {', '.join(files)}")
    else:
        click.echo(files[name], nl=False)
