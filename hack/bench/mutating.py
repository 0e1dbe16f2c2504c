"""Our side of the webhook benchmark: hack/bench/peer/webhook makes the same changes."""

from generic import Manager
from generic.library.webhooks import AdmissionRequest, Webhook, mutates
from generic.library.webhooks.edits import ensure, ensure_flag
from generic.library.webhooks.objects import Container, Deployment

SIDE = "bench-side"
"""The label of the Deployments of one process."""


def webhook(side: str) -> Webhook:
    """Return the webhook for the Deployments of one process."""
    labels = {SIDE: side}

    @mutates(Deployment, failure_policy="Fail", name="mutate", object_labels=labels)
    def mutate(request: AdmissionRequest[Deployment]) -> None:
        """Set a label, a flag and a sidecar."""
        request.new.spec.template.metadata.labels["bench"] = "true"
        if container := request.new.pod.container("kube-apiserver"):
            ensure_flag(container.flags, "cloud-provider", "external")
        sidecar = Container(name="sidecar", image="example.org/sidecar:v1", args=["--v=2"])
        ensure(request.new.pod.containers, sidecar)

    return mutate


if __name__ == "__main__":
    manager = Manager.from_args()
    manager.add_webhooks(webhook(manager.options.extension))
    manager.run()
