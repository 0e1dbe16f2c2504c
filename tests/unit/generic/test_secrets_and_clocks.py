"""A wrong wall clock loses no credential, and keeps none that cannot work.

The reference is a manager with a right clock that is trusted: one with a wrong clock, or in the
first minute of a process, trusts and keeps at least the same credentials.
"""

import copy
from datetime import timedelta

import attrs
import pytest
from cryptography import x509
from hypothesis import given
from hypothesis import strategies as st

from actuator.errors import NotFound
from generic.kube import clock as clocks
from generic.kube.clock import WatchedClock, eventual_now, trusted_now
from generic.library.secrets import (
    Authority,
    BasicAuth,
    Certificate,
    SecretRotation,
    SecretsManager,
)
from generic.library.secrets import manager as subject
from tests.support.cluster.clocks import START, Hands
from tests.support.objects.stand_ins import StandIn

pytestmark = pytest.mark.usefixtures("small_authorities")

DAY = 86400.0
HOUR = 3600.0
VALIDITY = timedelta(days=10)
USER = BasicAuth(name="user", validity=VALIDITY)
CA = Authority(name="ca", validity=timedelta(days=100))
SERVER = Certificate(name="server", authority="ca", common_name="s", dns_names=["s"])


class Secrets(StandIn):
    """The Secrets of a namespace, in memory."""

    def __init__(self):
        self.all = {}

    def list(self, _resource, _namespace, label_selector):
        return copy.deepcopy(list(self.all.values()))

    def create(self, _resource, secret):
        name = secret["metadata"]["name"]
        assert name not in self.all
        self.all[name] = copy.deepcopy(secret)
        return secret

    def delete(self, _resource, name, _namespace, uid):
        if self.all.pop(name, None) is None:
            raise NotFound(404, name)


class World:
    """A manager of one user, in a process whose wall clock may be wrong or not yet trusted."""

    def __init__(self):
        self.hands = Hands()
        self.config = USER
        self.rotation = SecretRotation()
        self.secrets = Secrets()
        self.used = None
        """The current credential at the last time with a trusted and right clock."""
        self.restart()
        self.settle()

    def restart(self):
        self.clock = WatchedClock(self.hands)
        trusted_now(self.clock)

    def settle(self):
        """A minute passes."""
        self.wait(61.0)

    def wait(self, seconds):
        self.hands.seconds += seconds
        trusted_now(self.clock)

    def rotate(self):
        if not self.rotation.initiated or not self.rotation.keeps_old:
            self.rotation = SecretRotation(initiated=START + timedelta(seconds=self.hands.seconds))

    def complete(self):
        self.rotation = attrs.evolve(self.rotation, keeps_old=False)
        if self.used and self.used.rotated != self.rotation.stamp:
            self.used = None

    def change(self):
        """The author's configuration changes, at the end of a rotation."""
        self.config = attrs.evolve(self.config, length=self.config.length + 1)
        self.used = None

    def wrong(self, seconds):
        """The clock is wrong for a moment, in which the manager runs."""
        self.hands.ahead = seconds
        self.ensure()
        self.hands.ahead = 0.0
        self.wait(1.0)

    def run(self, secrets, clock):
        """Return the current credential, and the former one if it is trusted; delete the others."""
        manager = SecretsManager(secrets, "n", "provider", clock)
        issued = manager.ensure([attrs.evolve(self.config, rotation=self.rotation)])["user"]
        manager.cleanup()
        return issued.trusted

    def ensure(self):
        """Run the manager, and hold it against the reference and the laws."""
        self.wait(1.0)  # names differ
        before = set(self.secrets.all)
        reference = copy.deepcopy(self.secrets)
        right = copy.copy(self.hands)
        right.ahead = 0.0
        expected = self.run(reference, right)
        current, *former = self.run(self.secrets, self.clock)
        after = set(self.secrets.all)
        same = [k for k in expected if k.checksum == current.checksum]
        trusted = [k.secret_name for k in (current, *former)]
        assert len(set(trusted)) == len(trusted), "a credential is its own former one"
        assert set(trusted) <= after
        assert {k.secret_name for k in same} & before <= set(trusted), "a clock ended trust"
        assert set(reference.all) & before <= after, "a clock deleted a credential"
        now = right.now()
        if self.used:
            is_expired = self.used.valid_until <= now
            assert is_expired or self.used.secret_name in trusted, "the used one is not trusted"
        is_right = self.hands.ahead == 0
        if is_right and expected[1:] and current.secret_name == expected[0].secret_name:
            assert former[0].secret_name == expected[1].secret_name, "another one signs for servers"
        assert not is_right or all(k in expected or k.checksum == current.checksum for k in former)
        if is_right and trusted_now(self.clock) is not None:
            self.used = current
            assert current.issued - timedelta(hours=1) <= now, "it is not valid yet"
            assert now < current.issued + 0.8 * VALIDITY, "it is old"
        elif eventual_now(self.clock) is None and expected[0].secret_name in before:
            assert after <= before, "a clock created a credential"
            assert current == expected[0], "a clock selects another credential"


steps = st.one_of(
    st.tuples(st.just("wait"), st.sampled_from([HOUR, 5 * HOUR, DAY, 3 * DAY, 7 * DAY])),
    st.tuples(
        st.just("wrong"),
        st.sampled_from([2 * HOUR, DAY, 2 * DAY, 9 * DAY, 4000 * DAY]).flatmap(
            lambda seconds: st.sampled_from([seconds, -seconds])
        ),
    ),
    st.sampled_from([("restart",), ("settle",), ("rotate",), ("complete",), ("change",)]),
)


def live(sequence):
    world = World()
    for name, *arguments in sequence:
        getattr(world, name)(*arguments)
        world.ensure()
    world.settle()
    world.ensure()


FOUND = [
    [("wrong", 2 * HOUR)],
    [("wrong", DAY), ("wait", HOUR), ("restart",)],
    [("wrong", DAY), ("wait", HOUR), ("wait", DAY)],
    [("wait", HOUR), ("rotate",), ("wrong", 4000 * DAY)],
    [("wait", HOUR), ("rotate",), ("change",), ("wrong", -2 * HOUR)],
    [("wrong", 2 * HOUR), ("change",), ("wrong", 2 * HOUR)],
    [("wrong", -DAY), ("wait", 7 * DAY), ("wrong", -2 * HOUR)],
    [("wrong", 2 * HOUR), ("rotate",), ("wait", DAY), ("wait", 7 * DAY)],
    [("wrong", -DAY), ("wait", 7 * DAY), ("wrong", 2 * HOUR), ("rotate",), ("wrong", -2 * HOUR)],
]
"""Sequences that a version of the code did not survive."""


@pytest.mark.parametrize("sequence", FOUND)
def test_a_sequence_that_was_found_before(sequence):
    live(sequence)


@given(st.lists(steps, max_size=12))
def test_no_clock_loses_a_credential_or_keeps_one_that_cannot_work(sequence):
    live(sequence)


@pytest.mark.parametrize(
    ("planted", "sequence"),
    [
        ("trusted_now", [("wait", HOUR), ("wait", 7 * DAY), ("wait", DAY), ("wrong", DAY)]),
        ("eventual_now", [("wait", HOUR), ("wrong", 9 * DAY)]),
        ("SKEW", [("wrong", 2 * HOUR)]),
    ],
)
def test_the_laws_find_a_manager_that_believes_every_clock(monkeypatch, planted, sequence):
    believes = timedelta(days=9999) if planted == "SKEW" else lambda clock: clock.now()
    monkeypatch.setattr(subject, planted, believes)
    with pytest.raises(AssertionError):
        live(sequence)


def test_a_renewal_waits_no_longer_than_an_hour_for_a_clock_that_is_never_steady():
    world = World()
    world.ensure()
    [first] = world.secrets.all
    world.hands.seconds += 9 * DAY
    began = world.hands.seconds
    while len(world.secrets.all) == 1:
        world.hands.ahead += 6.0
        world.wait(30.0)
        world.run(world.secrets, world.clock)
        assert world.hands.seconds < began + 2 * HOUR
    assert world.hands.seconds > began + clocks.MAX_UNKNOWN_SECONDS - 60
    assert first in world.secrets.all, "the former one is still trusted"


def test_certificates_of_the_future_are_replaced_once_the_clock_is_right():
    hands = Hands()
    clock = WatchedClock(hands)
    trusted_now(clock)
    manager = SecretsManager(Secrets(), "n", "provider", clock)
    for ahead, is_valid in [(2 * DAY, False), (0.0, True)]:
        hands.ahead = ahead
        hands.seconds += 1.0
        trusted_now(clock)
        hands.seconds += 61.0 if is_valid else 1.0
        issued = manager.ensure([CA, SERVER])
        hands.ahead = 0.0
        for pem in (issued["ca"]["ca.crt"], issued["server"]["tls.crt"]):
            start = x509.load_pem_x509_certificate(pem).not_valid_before_utc
            assert (start <= hands.now()) is is_valid
    assert issued["server"].bundle == issued["ca"]["ca.crt"]
