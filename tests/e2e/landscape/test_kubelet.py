"""Pods of a real cluster run as local processes, and stay in their folders."""

from __future__ import annotations

from harness import eventually


def test_a_deployment_becomes_available_and_its_service_leads_to_it(place):
    place.config("settings", ready="yes", colour="blue")
    place.service("web")
    volumes = [{"name": "settings", "configMap": {"name": "settings"}}]
    mounts = [{"name": "settings", "mountPath": "/etc/settings"}]
    env = [{"name": "WHERE", "value": "/etc/settings/colour"}]
    args = ["--config=/etc/settings", "--of=$(WHERE)"]
    place.deploy("web", {"args": args, "env": env, "volumeMounts": mounts}, volumes=volumes)
    place.wait_available("web")
    state = eventually(lambda: place.ask("web"))
    assert state["files"] == {"ready": "yes", "colour": "blue"}
