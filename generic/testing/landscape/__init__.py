"""A real Gardener on the embedded cluster, without containers: garden, seeds, and real shoots.

Start with `landscape`, which runs all of it. `garden` has Gardener's control plane, `admission` its
webhooks, `seed` a gardenlet with its cluster. `programs` builds
Gardener's components as one program, `clusters` the clusters under garden and seeds. `router` and
`services` lead Services to local ports; `kubelet` runs pods as processes, by the table of `images`,
with the volumes of `volumes`. Simulated are operators (`operators`), and the nodes of shoots
(`shoots`, `nodes`, `kubeletport`). `podwrites` has the writes that kubelet and nodes share.
`gardenobjects`, `seedobjects` and the files in `manifests` are data.

Not here: simulated components for fast tests (`garden`, `resourcemanager`, `machinecontroller`).
"""
