"""The dashboards are what Grafana's own types say a dashboard is."""

import json
import shutil

import pytest
from harness import missing

from generic.tools.monitoring import dashboard_files
from hack.dashboards.typecheck import installed

NAME = "deletion-outcomes"


@pytest.fixture(scope="module")
def types():
    if shutil.which("npm") is None:
        missing("no npm on PATH: install Node.js")
    with installed() as found:
        yield found


def test_each_dashboard_is_well_typed(types):
    assert types.problems(dashboard_files()) == []


def panel(board, type):
    return next(panel for panel in board["panels"] if panel["type"] == type)


def misspelt_key(board):
    board["panels"][0]["tittle"] = "x"


def unknown_word(board):
    panel(board, "stat")["options"]["colorMode"] = "colour"


def wrong_type(board):
    panel(board, "timeseries")["gridPos"]["w"] = "8"


def option_of_another_panel(board):
    panel(board, "bargauge")["options"]["graphMode"] = "area"


def unknown_style(board):
    panel(board, "timeseries")["fieldConfig"]["defaults"]["custom"]["drawStyle"] = "dotty"


def unknown_panel(board):
    board["panels"][1]["type"] = "gauge-ish"


@pytest.mark.parametrize(
    ("plant", "says"),
    [
        (misspelt_key, "tittle"),
        (unknown_word, '"colour"'),
        (wrong_type, "Type 'string' is not assignable to type 'number'"),
        (option_of_another_panel, "graphMode"),
        (unknown_style, '"dotty"'),
        (unknown_panel, '"gauge-ish"'),
    ],
)
def test_a_fault_is_noticed(types, plant, says):
    board = json.loads(dashboard_files()[NAME])
    plant(board)
    assert says in " ".join(types.problems({NAME: json.dumps(board)}))
