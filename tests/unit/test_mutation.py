"""The comparison of surviving mutants with the reviewed list."""

import pytest

from hack.mutation import Survivor, accepted, judge, place_of, survivor_of

DIFF = """# generic.reconciler.track.x\u01c1Budget\u01c1remaining__mutmut_2: survived
--- generic/reconciler/track.py
+++ generic/reconciler/track.py
@@ -1,3 +1,3 @@
 def remaining(self, now: float) -> float:
-    return max(0.0, self.until - now)
+    return max(1.0, self.until - now)
"""
SURVIVOR = Survivor(
    "generic.reconciler.track.Budget.remaining",
    "return max(0.0, self.until - now)",
    "return max(1.0, self.until - now)",
)


@pytest.mark.parametrize(
    ("name", "function"),
    [
        (
            "generic.reconciler.track.x\u01c1Budget\u01c1remaining__mutmut_2",
            "generic.reconciler.track.Budget.remaining",
        ),
        (
            "generic.controller.workqueue.x\u01c1WorkQueue\u01c1_add__mutmut_12",
            "generic.controller.workqueue.WorkQueue._add",
        ),
        ("generic.reconciler.failure.x_classify__mutmut_8", "generic.reconciler.failure.classify"),
        ("generic.reconciler.failure.x__next__mutmut_1", "generic.reconciler.failure._next"),
    ],
)
def test_a_survivor_has_the_name_of_its_function_and_the_changed_line(name, function):
    found = survivor_of(name, DIFF)
    assert (found.function, found.before, found.after) == (
        function,
        SURVIVOR.before,
        SURVIVOR.after,
    )


def test_only_a_difference_between_survivors_and_list_is_a_problem():
    assert list(judge([SURVIVOR], {SURVIVOR: "equivalent"})) == []
    [unlisted] = judge([SURVIVOR], {})
    assert unlisted.startswith("generic/reconciler/track.py:")
    assert unlisted.endswith(f"{SURVIVOR.before} -> {SURVIVOR.after}: no test notices this")
    [outdated] = judge([], {SURVIVOR: "equivalent"})
    assert "remove it" in outdated


def test_each_listed_mutant_is_of_a_line_that_exists():
    assert accepted()
    lost = [survivor for survivor in accepted() if place_of(survivor).endswith(":0")]
    assert lost == []
