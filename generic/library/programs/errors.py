"""What the embedded cluster raises."""


class EnvtestError(Exception):
    """The embedded cluster cannot be built, found, started or reached; the text says why."""


class BinariesNotFound(EnvtestError):
    """None of the ways to come by a program of the cluster works; the text names the ways."""


class BuildFailed(EnvtestError):
    """`go build` ended with an error; the text carries the end of its output."""


class StartFailed(EnvtestError):
    """A process of the cluster ended early or was not ready in time; the text names its log."""
