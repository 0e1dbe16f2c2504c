"""The error of the embedded cluster, and of finding and building programs."""


class EnvtestError(Exception):
    """A program, or the embedded cluster, cannot be found, built, started or reached.

    The text has the reason: the ways to install it, the end of its output, or its log file.
    """
