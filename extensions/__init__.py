"""Sample extensions. An author can copy each folder on its own; none imports another."""

import actuator  # noqa: F401 - an author's `extensions` is importable: `actuator.shared_names`
