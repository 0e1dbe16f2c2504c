"""Repeat, alone, the few tests that failed while eight processes shared the machine: for `.ci/run`.

A wait for a real server can take longer than a test allows while many servers run. A defect fails
alone as well. The tests are named, so that their cause is looked for. Tests of `tests/unit`, which
wait for nothing, are not repeated.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

FAILED = Path(".pytest_cache", "v", "cache", "lastfailed")
MAX_REPEATED = 3
PURE = "tests/unit/"


def refusal(failed: Sequence[str]) -> str:
    """Return why these failed tests are not repeated, or an empty text. They are pytest's ids."""
    if not failed:
        return "pytest failed, and no test did"
    if len(failed) > MAX_REPEATED:
        return f"{len(failed)} tests failed; at most {MAX_REPEATED} are repeated"
    for test in failed:
        if test.startswith(PURE):
            return f"{test} needs no server; it is not repeated"
        if "::" not in test:
            return f"{test} cannot be imported"
    return ""


def main() -> int:
    """Return the status of the repetition in the current folder, or 1 if nothing is repeated."""
    failed = sorted(json.loads(FAILED.read_text())) if FAILED.exists() else []
    if reason := refusal(failed):
        print(reason, file=sys.stderr)
        return 1
    print("failed beside other tests, repeated alone:", *failed, sep="\n  ", flush=True)
    return subprocess.run([sys.executable, "-m", "pytest", *failed], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
