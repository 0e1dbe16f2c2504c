"""The garden's types as CRDs, for `actuator dev`, drills and tests. It is not gardener-apiserver.

`kinds` makes them with the fields of `schemas.yaml`; all other fields are kept. The policies of
`labels.yaml` set the labels by which admissions select objects. `install` brings both into a
cluster. Not here: a real garden (`generic.testing.landscape`), and the steps of gardenlet
(`generic.testing.garden`).
"""
