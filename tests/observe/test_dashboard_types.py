"""The dashboards are what Grafana's own types say a dashboard is."""

import json
import os
import shutil

import pytest

from generic.monitoring import dashboard_files
from hack.dashboards.typecheck import installed

NAME = "deletion-outcomes"


@pytest.fixture(scope="module")
def types():
    if shutil.which("npm") is None:
        say = pytest.fail if os.environ.get("CI") else pytest.skip
        say("no npm on PATH: install Node.js")
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
    "plant",
    [
        misspelt_key,
        unknown_word,
        wrong_type,
        option_of_another_panel,
        unknown_style,
        unknown_panel,
    ],
)
def test_a_fault_is_noticed(types, plant):
    board = json.loads(dashboard_files()[NAME])
    plant(board)
    assert types.problems({NAME: json.dumps(board)})
