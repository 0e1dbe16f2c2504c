"""The documentation site: `make docs`. Pages of the reference are generated from the code.

The root of the sources is the root of the repository, so that a relative link works on the site and
in the repository alike. A fence `{generated} NAME` inserts what the function `NAME` returns.
"""

import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from inspect import isclass, isroutine
from pathlib import Path
from types import ModuleType

import attrs
import click
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective

import actuator
from hack.public_api import assigned_attributes, constructor, fields, internal, members, plain

project = "gardener-actuator"
author = "The gardener-actuator authors"
copyright = author
root_doc = "docs/index"
include_patterns = ["docs/**.md", "extensions/*/README.md", "*.md"]
exclude_patterns = ["README.md", "dist", "build", "tests", "hack", ".*"]
extensions = ["sphinx.ext.autodoc", "sphinx_click", "myst_parser"]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
highlight_language = "none"  # of fences without a language
smartquotes = False  # `--` in a help text is no dash
default_role = "literal"  # docstrings write `names` as Markdown does
suppress_warnings = ["ref.python"]  # `type` in an annotation is no field of that name
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_default_options = {"undoc-members": True}

html_theme = "furo"
html_title = project
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_extra_path = ["start"]  # the page that leads from / to the start page
html_use_index = False  # the search finds each name; a table of all is too wide
html_copy_source = False
html_show_sphinx = False


class Generated(SphinxDirective):
    """Inserts the Markdown that a function of this module returns."""

    required_arguments = 1
    optional_arguments = 20

    def run(self) -> list[nodes.Node]:
        """Call the function with the other arguments, and parse the result."""
        name, *arguments = self.arguments
        return self.parse_text_to_nodes(globals()[name](*arguments))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    cells = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(_cell(one) for one in row) + " |" for row in cells)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def api(module: str) -> str:
    """Return the documentation of all public names of a module."""
    return "\n".join(["```{eval-rst}", *_documented(import_module(module)), "```"])


def _documented(module: ModuleType) -> Iterator[str]:
    own = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    ]
    elsewhere = () if module is actuator else actuator.__all__
    for name in sorted({*getattr(module, "__all__", own)}.difference(elsewhere)):
        value = getattr(module, name)
        if isclass(value) and value.__name__ == name:
            yield f".. autoclass:: {module.__name__}.{name}"
            promised = [*fields(value), *members(value)]
            assigned = _undocumented(value)
            yield f"   :members: {', '.join(name for name in promised if name not in assigned)}"
            yield ""
            yield from (f"   .. py:attribute:: {name}" for name in promised if name in assigned)
        elif isroutine(value):
            yield f".. autofunction:: {module.__name__}.{name}"
        else:
            yield f".. py:data:: {module.__name__}.{name}\n"
            yield from (f"   {line}" for line in _text_below(module.__name__, name))
        yield ""


def _undocumented(cls: type) -> set[str]:
    """Return the attributes that methods assign without a text below them."""
    ours = [base for base in cls.__mro__ if base.__module__.startswith(("actuator.", "generic."))]
    described = {
        name
        for base in ours
        for owner, name in _constants(base.__module__)
        if owner == base.__name__
    }
    return {*assigned_attributes(cls)} - described


def _text_below(package: str, name: str) -> Sequence[str]:
    """Return the text that describes this constant in one of the package's modules."""
    found = [module for module in sorted(sys.modules) if module.startswith(package)]
    texts = (_constants(module).get(("", name)) for module in found)
    return next((text for text in texts if text), ())


def _constants(module: str) -> Mapping[tuple[str, str], list[str]]:
    return ModuleAnalyzer.for_module(module).find_attr_docs()


def metrics() -> str:
    """Return a table of the metrics of a manager."""
    from generic.manager.orphans.keeper import Keeper
    from generic.serving.metrics import Metrics

    shown = Metrics(oldest_terminating=1)
    shown.show_streams((), lambda _: ())
    Keeper((), shown.registry)
    shown.webhooks(())
    collectors = map(vars, vars(shown.registry)["_collector_to_names"])
    labels = {one["_name"]: one["_labelnames"] for one in collectors if "_labelnames" in one}
    rows = []
    for one in sorted(shown.registry.collect(), key=lambda one: one.name):
        name = f"`{one.name}{'_total' if one.type == 'counter' else ''}`"
        by = ", ".join(labels.get(one.name) or vars(one).get("_labelnames", ()))
        more = f"; labels: `{by}`" if by else ""
        rows.append((name, f"{one.documentation} *{one.type.capitalize()}{more}*"))
    return table(("metric", "meaning"), rows)


def alerts() -> str:
    """Return a table of the alerts, each with its runbook."""
    from generic.tools.monitoring import ALERTS, never_scraped, runbook_of

    rows = []
    for one in (*ALERTS, never_scraped("EXTENSION")):
        name = f"[{one['alert']}](/docs/runbooks/{runbook_of(one['alert'])}.md)"
        delay = f", after {one['for']}" if "for" in one else ""
        when = f"*Severity: {one['labels']['severity']}{delay}*"
        rows.append((name, f"{one['annotations']['summary']} {when}"))
    return table(("alert", "meaning"), rows)


def expressions(kind: str) -> str:
    """Return the expressions of all rules of that kind: `alert` or `record`."""
    from generic.tools.monitoring import ALERTS, RECORDINGS

    rules = RECORDINGS if kind == "record" else ALERTS
    labels = [" ".join(one.get("labels", {}).values()) for one in rules]
    names = [f"`{one[kind]}` {text}" for one, text in zip(rules, labels, strict=True)]
    shown = zip(names, rules, strict=True)
    return "\n\n".join(f"{name}\n\n```text\n{one['expr']}\n```" for name, one in shown)


def flags() -> str:
    """Return a table of the flags of a manager."""
    from generic.manager.flags import FLAGS, PREFIX

    shown = [one for one in FLAGS if isinstance(one, click.Option) and not one.hidden]
    rows = []
    for one in shown:
        default = one.to_info_dict()["default"]
        effect = f"{one.help}{'' if default in {None, ''} else f' Default: `{default}`.'}"
        rows.append((f"`{one.opts[0]}`<br>`{PREFIX}_{one.name.upper()}`", effect))
    return table(("flag, environment variable", "effect"), rows)


def promised_constructor(
    _app: Sphinx, kind: str, _name: str, obj: object, _options: object, _given: str, _returned: str
) -> tuple[str, None] | None:
    """Return the constructor without the parameters for the framework itself."""
    if kind != "class" or not isclass(obj) or not internal(obj):
        return None
    found = constructor(obj)
    return (plain(found) if found else ""), None


def describe_options(
    _app: Sphinx, kind: str, name: str, _obj: object, _options: object, lines: list[str]
) -> None:
    """Describe the settings of a manager with the help texts of their flags."""
    from generic.manager.options import Options

    owner, _, field = name.rpartition(".")
    if kind == "attribute" and owner == "generic.Options":
        lines[:] = [attrs.fields_dict(Options)[field].metadata.get("help", *lines[:1])]


def inline_drawings(app: Sphinx, tree: nodes.document, _name: str) -> None:
    """Put each SVG into its page, where it takes the colours of the light or dark theme."""
    for image in list(tree.findall(nodes.image)):
        if image["uri"].endswith(".svg"):
            drawing = Path(app.srcdir, image["uri"]).read_text()
            image.replace_self(nodes.raw("", drawing, format="html"))


def write_report(app: Sphinx, error: Exception | None) -> None:
    """Write the report of the drill in drill.json, and its picture if a browser is installed."""
    from generic.testing.drill.evidence import Evidence
    from generic.testing.drill.judge import judge
    from generic.testing.drill.page import page
    from generic.testing.drill.report import read_json, write_text

    if app.builder.format != "html":
        return
    evidence, _ = read_json(Path(app.confdir, "drill.json"), Evidence)
    report, browser = Path(app.outdir, "report.html"), shutil.which("chromium")
    write_text(report, page(evidence, judge(evidence)))
    if browser and not error:
        from playwright.sync_api import sync_playwright

        with sync_playwright() as playwright:
            tab = playwright.chromium.launch(executable_path=browser).new_page()
            tab.set_viewport_size({"width": 1280, "height": 1250})
            tab.goto(report.as_uri())
            tab.screenshot(path=Path(app.outdir, "_images", "drill.png"))


def setup(app: Sphinx) -> None:
    """Register the directive and the drawings."""
    app.connect("build-finished", write_report)
    app.connect("autodoc-process-docstring", describe_options)
    app.connect("autodoc-process-signature", promised_constructor)
    app.add_directive("generated", Generated)
    app.connect("doctree-resolved", inline_drawings)
