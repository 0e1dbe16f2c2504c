"""HTML reports from the Jinja2 templates in `templates`; every value is escaped.

Import this module where a report is made: it needs `jinja2`, of the extra `rehearsal`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from actuator.errors import ConfigurationError
from generic.kube.printable import printable
from generic.testing.drill.judge import Finding

try:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
except ImportError as error:
    raise ConfigurationError(
        "reports need the package `jinja2`: pip install 'gardener-actuator[rehearsal]'"
    ) from error


_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def render(template: str, findings: Sequence[Finding], **values: Any) -> str:
    """Render the template `TEMPLATE.html` with the findings and these values.

    `report.html` documents the values that every page needs; all are untrusted plain text.
    """
    page = _TEMPLATES.get_template(f"{template}.html").render(findings=findings, **values)
    return printable(page, keep="\n")
