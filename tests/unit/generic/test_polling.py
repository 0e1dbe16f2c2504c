"""Simulated controllers continue after any error, and no error of theirs is hidden."""

import threading

from actuator.errors import ApiError
from generic.testing.polling import polling
from tests.support.cluster.harness import eventually


def test_polling_goes_on_after_every_error_and_reports_an_unexpected_one_once(monkeypatch):
    reported = []
    rounds: list[int] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: reported.append(str(args.exc_value)))

    def poll():
        rounds.append(len(rounds))
        if len(rounds) == 1:
            raise ApiError(503, "try again")
        if len(rounds) < 5:
            raise ValueError("the key exists")

    with polling(poll, "simulated", every=0.01):
        assert eventually(lambda: len(rounds) > 6)
    assert reported == ["the key exists"]
