"""Text for people, without the control characters of tenants."""

import json


def printable(text: str, keep: str = "") -> str:
    r"""Escape characters without a glyph as JSON does (ESC: \u001b), but not those in `keep`."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else json.dumps(c)[1:-1] for c in text)


def one_line(error: BaseException) -> str:
    """Return the text of an error in one line, or the name of its type."""
    return " ".join(str(error).split()) or type(error).__name__


def echo(text: object, *, err: bool = False, lines: bool = False) -> None:
    """Print one line, or several `lines`, to standard output or to standard error."""
    import click  # 12 modules that a manager without a command line does not need

    click.echo(printable(str(text), keep="\n" if lines else ""), err=err)
