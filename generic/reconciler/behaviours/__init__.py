"""Behaviour of single kinds beyond their data, wrapped around any actuator for them.

An author writes `Actuator[DNSRecord]` like any other; `with_behaviour` adds the wrapper, so that no
author can forget it and the reconciler knows no kind. Read `kinds` (the behaviour of each kind),
then `secret_guard`, `creation`, `user_data`.
"""

from generic.reconciler.behaviours.kinds import with_behaviour

__all__ = ["with_behaviour"]
