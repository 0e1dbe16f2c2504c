"""Sample extensions: each folder is one that an author could copy out; none imports another."""

import actuator  # noqa: F401 - an author's own `extensions` is found too: `actuator.shared_names`
