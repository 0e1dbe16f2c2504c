"""`actuator rules` and `actuator dashboards`: print files for Prometheus and Grafana."""

from pathlib import Path

import click

from actuator.errors import ConfigurationError
from generic.tools.monitoring import (
    GROUPS,
    RUNBOOKS,
    dashboard_files,
    prometheus_rule,
    rule_file,
    service_monitor,
)
from generic.tools.packaging.chart import yaml_text


def _labels(
    _ctx: click.Context, _option: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    pairs = [value.partition("=") for value in values]
    if any(not key or not equals for key, equals, _ in pairs):
        raise click.BadParameter("expected KEY=VALUE, for example prometheus=seed")
    return {key: value for key, _, value in pairs}


def _url(_ctx: click.Context, _option: click.Parameter, value: str) -> str:
    if not value.startswith(("https://", "http://")):
        raise click.BadParameter(f"expected https://HOST/PATH, got {value!r}")
    return value


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
    default=RUNBOOKS,
    show_default=True,
    callback=_url,
    help="URL of the folder with the runbooks of the alerts.",
)
def rules(name: str | None, labels: dict[str, str], runbook_url: str) -> None:
    """Print the recording rules and alerts as a Prometheus rule file."""
    if name is None:
        click.echo(yaml_text(rule_file(GROUPS, runbook_url)), nl=False)
        return
    found_by = labels or {"prometheus": "seed"}
    rule = prometheus_rule(GROUPS, runbook_url, name, found_by)
    click.echo(yaml_text(rule, service_monitor(name, found_by)), nl=False)


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
