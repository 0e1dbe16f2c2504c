"""docs/tutorial.md: its files and commands work in the order of the page."""

import json
import re
import shlex
import sys
from pathlib import Path

from tests.support.objects.present import present

PAGE = (Path(__file__).parents[3] / "docs" / "tutorial.md").read_text()
FILES = re.findall(r"^Create `(\S+)`:\n\n```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
BLOCKS = re.findall(r"^```sh\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)

KEY = present(re.search(r'VALID_KEY = "(.+)"', PAGE))[1].encode()
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
            broken = [finding["rule"] for finding in report["findings"] if finding["problems"]]
            assert broken == (["I1"] if expected else [])
            assert len(report["evidence"]["resourcesAfter"]) == 3
            written = [path for path in Path().rglob("report.*") if path.is_file()]
            assert {path.suffix for path in written} >= {".html", ".json"}
            assert [path for path in written if KEY in path.read_bytes()] == [], "shows the key"
    assert Path("Dockerfile").exists()
    assert Path("chart", "acme", "Chart.yaml").exists()
