"""Explain: why an object is stuck, from the API server alone. Read-only.

Read in this order: `facts` (the result), `gather` (one object, or a namespace), `standing`
(with `owners`), `webhooks`, `reader`. A Shoot across garden and seed: `shoot`, `garden`.
Not here: the output for people (`generic.tools.cli.explain_page`).
"""

from generic.tools.explain.facts import Explanation, Overview
from generic.tools.explain.gather import explain, overview

__all__ = ["Explanation", "Overview", "explain", "overview"]
