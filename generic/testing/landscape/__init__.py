"""A real Gardener on the embedded cluster, without containers: garden, seed, and real shoots.

`router` and `services` lead Services to local ports; `kubelet` runs pods as processes, by the table
of `images`, with the volumes of `volumes`.

Not here: simulated components for fast tests (`garden`, `resourcemanager`, `machinecontroller`).
"""
