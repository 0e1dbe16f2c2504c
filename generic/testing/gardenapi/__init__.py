"""The garden's types as CRDs, for `actuator dev`, drills and tests. It is not gardener-apiserver.

`kinds` makes them with the fields of `schemas.yaml`, `labels` sets the labels by which
admissions select objects, `install` brings them into a cluster. Unknown fields are kept. Not here:
a real garden (`generic.testing.landscape`), and the steps of gardenlet (`generic.testing.garden`).
"""
