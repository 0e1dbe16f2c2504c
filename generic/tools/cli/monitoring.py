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
        raise click.BadParameter("write KEY=VALUE, like prometheus=seed")
    return {key: value for key, _, value in pairs}


def _print(*manifests: Raw) -> None:
    click.echo(yaml.safe_dump_all(manifests, sort_keys=False, width=10_000), nl=False)


@click.command()
@click.option(
    "--operator",
    "name",
    metavar="NAME",
    help="For the Prometheus operator: a PrometheusRule, and a ServiceMonitor of the Service that "
    "`actuator chart --name NAME` makes.",
)
@click.option(
    "--label",
    "labels",
    multiple=True,
    callback=_labels,
    help="KEY=VALUE on both, by which a Prometheus finds them.  [default: prometheus=seed]",
)
@click.option(
    "--runbook-url",
    default=_RUNBOOKS,
    show_default=True,
    help="What the addresses of the alerts' runbooks begin with.",
)
def rules(name: str | None, labels: dict[str, str], runbook_url: str) -> None:
    """Prints the recording rules and alerts, as a rule file of Prometheus."""
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
    help="Folder to write all into; what is there under the same names is replaced.",
)
def dashboards(name: str | None, output: Path | None) -> None:
    """Prints the dashboard NAME, JSON for Grafana; without NAME, which ones there are.

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
        raise ConfigurationError(f"there is no dashboard {name!r}; there are {', '.join(files)}")
    else:
        click.echo(files[name], nl=False)
