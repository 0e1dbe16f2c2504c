"""What some kinds do beyond their data, wrapped around whatever actuator serves them.

An author writes `Actuator[DNSRecord]` like any other; `with_behaviour` puts the wrapper around
it, so that no author can forget it, and the reconciler knows no kind. Read `kinds` (which kind
has which), then `secret_guard`, `creation`, `user_data`.
"""

from generic.reconciler.behaviours.kinds import with_behaviour

__all__ = ["with_behaviour"]
