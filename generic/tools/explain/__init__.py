"""Explain: why an object is stuck, from the API server alone. Nothing in here writes anything.

Read in this order: `facts` (what can be said), `gather` (one object, or a namespace), `standing`
(with `decision` and `owners`), `webhooks` and `records` (one part each), `reader`.
`generic.tools.cli.explain_page` shows it to people.
"""

from generic.tools.explain.facts import Explanation, Overview
from generic.tools.explain.gather import explain, overview

__all__ = ["Explanation", "Overview", "explain", "overview"]
