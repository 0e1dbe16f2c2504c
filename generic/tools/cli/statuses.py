"""The exit statuses of commands, and their errors, each one sentence.

0: success. 1: failure, or the negative answer of a command that checks something. 2: wrong usage.
3: a command that checks something could not. 130: interrupted.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import click

from actuator.errors import ActuatorError, ApiError
from generic.kube.printable import echo
from generic.kube.refusals import explained
from generic.library.programs.errors import EnvtestError

_COULD_NOT = 3
_CHECK_SERVER = "check that the server in the kubeconfig{} is the right one and runs"
_SET_AUTHORITY = "set the certificate-authority of the server in the kubeconfig"
_REMEDIES = {
    "Forbidden": "grant this permission, or select another user with --kubeconfig and --context",
    "Unauthorized": "renew the credentials in the kubeconfig",
    "APIServerUnavailable": _CHECK_SERVER.format(""),
}


class CheckCommand(click.Command):
    """A command that checks something: it raises `No` for its negative answer."""

    def invoke(self, ctx: click.Context) -> Any:
        """See Command. Errors end it with a status of their own."""
        with reported(_COULD_NOT):
            return super().invoke(ctx)


class No(click.ClickException):
    """The negative answer of a Check, with the exit status 1."""

    def show(self, file: Any = None) -> None:
        """Print the reason, unless it is printed already ("")."""
        if self.message:
            echo(f"Error: {self.message}", err=True)


@contextmanager
def reported(status: int = 1) -> Iterator[None]:
    """Print an error as one sentence, and exit with `status` unless it has another one."""
    try:
        yield
    except click.ClickException as error:
        _print(error.show)
        sys.exit(error.exit_code)
    except click.exceptions.Abort:
        _print(partial(echo, "interrupted", err=True))
        sys.exit(130)
    except ModuleNotFoundError as error:
        from generic.tools.extras import installation

        if not (remedy := installation(error.name)):
            raise
        other = ", or use -o json" if error.name == "rich" else ""
        text = f"Error: this command needs the package `{error.name}`: {remedy}{other}"
        _print(partial(echo, text, err=True))
        sys.exit(status)
    except (ActuatorError, ApiError, EnvtestError) as error:
        text = with_remedy(error) if isinstance(error, ApiError) else str(error)
        lines = isinstance(error, EnvtestError)
        _print(partial(echo, f"Error: {text}", err=True, lines=lines))
        sys.exit(status)
    except BrokenPipeError:  # the reader ended, such as `head`
        drop_output()
        sys.exit(status)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _print(partial(echo, f"Error: {where}{error.strerror or error}", err=True))
        sys.exit(status)


def drop_output() -> None:
    """Print nothing more, because the reader ended (Python documentation, "Note on SIGPIPE")."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)


def _print(show: Callable[[], object]) -> None:
    """Print an error. If its reader ended too, the exit status remains."""
    try:
        show()
    except BrokenPipeError:
        drop_output()


def with_remedy(error: ApiError) -> str:
    """Return the message with the remedy of a command, which names a server without an answer."""
    import ssl  # loaded if there was a request

    from generic.kube.client import NoAnswer

    remedies = dict(_REMEDIES)
    if isinstance(error.__cause__, ssl.SSLCertVerificationError):
        remedies["APIServerUnavailable"] = _SET_AUTHORITY
    elif isinstance(error, NoAnswer) and error.server:
        remedies["APIServerUnavailable"] = _CHECK_SERVER.format(f", {error.server},")
    return explained(error, **remedies)
