"""The errors of the embedded cluster and of program builds."""


class EnvtestError(Exception):
    """The embedded cluster cannot be built, found, started or reached; the text has the reason."""


class BinariesNotFound(EnvtestError):
    """No way to get a program of the cluster works; the text lists the ways."""


class BuildFailed(EnvtestError):
    """`go build` failed; the text has the end of its output."""


class StartFailed(EnvtestError):
    """A process of the cluster ended early or was not ready in time; the text has its log file."""
