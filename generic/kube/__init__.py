"""Talks to the Kubernetes API server: requests, caches, watches and patches.

Start reading at `client` (requests, sent by `transport`), then `informer` (list and watch), `store`
(the cache) and `writer` (writes that enter the cache). `finalizers` and `patches` build patches
that test what they change. `documents`, `headers` and `errorinfo` turn untrusted input into bounded
data; `kubeconfig` reads credentials, `access` renews them, `remote` connects to shoots and the
garden.

Not here: queues and workers (`generic.controller`), and any decision about an object
(`generic.reconciler`). This room imports no other room.
"""
