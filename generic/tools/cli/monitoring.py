"""`actuator rules` and `actuator dashboards`: print files for Prometheus and Grafana."""

import json
from pathlib import Path

import click

from actuator.errors import ConfigurationError
from actuator.meta import Raw
from generic.tools.monitoring import GROUPS, RUNBOOKS, boards, rule_file
from generic.tools.monitoring.plutono import plutono
from generic.tools.packaging.chart import yaml_text


def _url(_ctx: click.Context, _option: click.Parameter, value: str) -> str:
    if not value.startswith(("https://", "http://")):
        raise click.BadParameter(f"expected https://HOST/PATH, got {value!r}")
    return value


@click.command()
@click.option(
    "--runbook-url",
    default=RUNBOOKS,
    show_default=True,
    callback=_url,
    help="URL of the folder with the runbooks of the alerts.",
)
def rules(runbook_url: str) -> None:
    """Print the recording rules and alerts as a Prometheus rule file.

    `actuator chart` writes them as objects for Gardener and for a Prometheus operator.
    """
    click.echo(yaml_text(rule_file(GROUPS, runbook_url)), nl=False)


@click.command()
@click.argument("name", required=False)
@click.option(
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder to write all dashboards into; existing files are replaced.",
)
@click.option(
    "--plutono",
    "source",
    metavar="DATASOURCE",
    help="Write them for Plutono (schema 27), with this data source, for example prometheus-seed.",
)
def dashboards(name: str | None, output: Path | None, source: str | None) -> None:
    """Print the dashboard NAME as JSON for Grafana; without NAME, list the dashboards.

    No Grafana or Plutono has loaded them in our tests: their queries run in a real Prometheus.
    """
    files = {stem: _text(board, source) for stem, board in boards().items()}
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


def _text(board: Raw, source: str | None) -> str:
    return json.dumps(plutono(board, source) if source else board, indent=1) + "\n"
