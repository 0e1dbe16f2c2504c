"""docs/tutorial.md: its files and commands work in the order of the page."""

import json
import re
import shlex
import sys
from pathlib import Path

PAGE = (Path(__file__).parents[3] / "docs" / "tutorial.md").read_text()
FILES = re.findall(r"^Create `(\S+)`:\n\n```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
BLOCKS = re.findall(r"^```sh\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)

NOT_INSTALLED = ("boto3", "botocore", "moto", "psycopg", "pymysql")
"""The tutorial installs the extra `rehearsal`, not all of `drill`."""


def test_every_command_of_the_tutorial_works(tmp_path, monkeypatch, command):
    """All but its installation, which the tests of the wheel execute."""
    assert "gardener-actuator[rehearsal]" in PAGE
    monkeypatch.chdir(tmp_path)
    for name in NOT_INSTALLED:
        monkeypatch.setitem(sys.modules, name, None)
    for name, text in FILES:
        Path(name).write_text(text)
    for line in "".join(BLOCKS).splitlines():
        program, *arguments = shlex.split(line)
        assert program == "actuator"
        expected = 1 if "--break" in arguments else 0
        command(*arguments, status=expected)
        if arguments[0] == "drill":
            report = json.loads(Path("report.json").read_text())
            broken = [one["rule"] for one in report["findings"] if one["problems"]]
            assert broken == (["I1"] if expected else [])
            assert len(report["evidence"]["outsideAfter"]) == 3
    assert Path("Dockerfile").exists()
    assert Path("chart", "acme", "Chart.yaml").exists()
