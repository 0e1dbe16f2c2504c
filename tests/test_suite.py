"""What the tests themselves have to keep to; `make check` asks before CI collects them."""

from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent


def test_every_module_has_a_name_of_its_own():
    """The folders are no packages: of two modules of one name pytest imports the first twice."""
    names = Counter(path.name for path in HERE.rglob("*.py") if path.name != "conftest.py")
    assert [name for name, count in names.items() if count > 1] == []
