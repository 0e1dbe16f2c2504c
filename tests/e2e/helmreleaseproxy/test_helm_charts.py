"""HelmChartProxy: one release for each Target it means; Targets wait for their releases."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest

from actuator import RequeueAfter
from actuator.cluster import FORCE_DELETION
from actuator.codec import decode
from actuator.errors import Invalid
from extensions.helmreleaseproxy.helmchartproxy import HelmCharts, _name
from extensions.helmreleaseproxy.kinds import HelmReleaseProxy
from extensions.helmreleaseproxy.order import force
from extensions.helmreleaseproxy.targets import guard_of
from tests.support.cluster.harness import eventually
from tests.support.samples.helm import CHARTS, RELEASES, TARGETS, with_user


def guard(near, release="note-t"):
    """The guard of a release."""
    return guard_of(near.get(RELEASES, release)["metadata"]["uid"])


def test_a_chart_goes_to_the_targets_that_the_selector_means_and_leaves_with_their_labels(
    near, way, serve, namespace
):
    serve()
    near.target("one", env="prod")
    near.target("two", env="test")
    near.chart(targetSelector={"env": "prod"}, values={"text": "first"})
    eventually(lambda: near.is_ready(CHARTS, "note"))
    assert way.text(namespace, "note") == "first"
    assert near.get(CHARTS, "note")["status"]["targets"] == 1
    [owner] = near.get(RELEASES, "note-one")["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("HelmChartProxy", "note", True)
    assert near.finalizers(TARGETS, "one") == [guard(near, "note-one")]
    assert near.is_gone(RELEASES, "note-two")
    assert near.finalizers(TARGETS, "two") == []

    near.patch(TARGETS, "one", {"metadata": {"labels": {"env": "test"}}})
    eventually(lambda: near.is_gone(RELEASES, "note-one"))
    eventually(lambda: near.finalizers(TARGETS, "one") == [])
    assert way.text(namespace, "note") is None

    near.patch(TARGETS, "two", {"metadata": {"labels": {"env": "prod"}}})
    eventually(lambda: way.text(namespace, "note") == "first")
    assert near.finalizers(TARGETS, "two") == [guard(near, "note-two")]


def test_a_change_of_the_values_is_an_upgrade_of_each_release(near, way, serve, namespace):
    serve()
    near.target()
    near.chart(values={"text": "first"})
    eventually(lambda: near.is_ready(CHARTS, "note"))
    near.patch(CHARTS, "note", {"spec": {"values": {"text": "second"}}})
    eventually(lambda: way.text(namespace, "note") == "second")
    eventually(lambda: near.is_ready(CHARTS, "note"))
    assert way.revisions(namespace, "note") == ["superseded", "deployed"]
    assert near.get(RELEASES, "note-t")["status"]["revision"] == 2


def test_a_target_that_is_deleted_first_lives_until_its_releases_are_uninstalled(
    near, way, serve, namespace
):
    serve()
    near.target()
    near.chart()
    eventually(lambda: near.is_ready(CHARTS, "note"))
    way.proxy.go_down()
    near.delete(TARGETS, "t")
    eventually(lambda: near.says(RELEASES, "note-t", "NoAnswer"))
    eventually(lambda: near.says(CHARTS, "note", "NoAnswer", "note-t"))
    assert near.finalizers(TARGETS, "t") == [guard(near)]
    way.proxy.come_back()
    eventually(lambda: near.is_gone(TARGETS, "t"))
    eventually(lambda: near.is_gone(RELEASES, "note-t"))
    assert way.revisions(namespace, "note") == []
    eventually(lambda: near.is_ready(CHARTS, "note"))
    assert near.orphans() == []


def test_a_deleted_chart_is_uninstalled_before_it_goes(near, way, serve, namespace):
    serve()
    near.target()
    near.chart()
    eventually(lambda: near.is_ready(CHARTS, "note"))
    near.delete(CHARTS, "note")
    eventually(lambda: near.is_gone(CHARTS, "note"))
    assert near.is_gone(RELEASES, "note-t")
    assert near.finalizers(TARGETS, "t") == []
    assert way.revisions(namespace, "note") == []


def test_a_force_deletion_releases_the_target_and_records_the_remaining_release(
    near, way, serve, namespace, far
):
    serve()
    near.target()
    near.chart(values={"text": "stays"})
    eventually(lambda: near.is_ready(CHARTS, "note"))
    near.kubeconfig("t", with_user(far.kubeconfig.read_bytes(), token="revoked"))
    near.delete(CHARTS, "note")
    eventually(lambda: near.says(CHARTS, "note", "note-t"))
    assert not near.is_gone(RELEASES, "note-t")
    near.force(CHARTS, "note")
    eventually(lambda: near.is_gone(CHARTS, "note"))
    assert near.is_gone(RELEASES, "note-t")
    assert near.finalizers(TARGETS, "t") == []
    assert near.orphans() == [("Helm::Release", f"{namespace}/note@{namespace}/t")]
    assert way.text(namespace, "note") == "stays"


def test_taken_and_invalid_names_are_reported(near, serve):
    near.target()
    near.release("note-t")
    near.chart()
    near.chart("up", chart="../secrets")
    near.chart("option", releaseName="--post-renderer")
    near.chart("circle", dependsOn=["circle"])
    serve()
    eventually(lambda: near.says(CHARTS, "note", "note-t", "remove it, or rename one of them"))
    eventually(lambda: near.says(CHARTS, "up", "spec.chart", "no name of a chart"))
    eventually(lambda: near.says(CHARTS, "option", "spec.releaseName"))
    eventually(lambda: near.says(CHARTS, "circle", "spec.dependsOn"))
    for name in ("up-t", "option-t", "circle-t"):
        assert near.is_gone(RELEASES, name)


def test_a_target_that_cannot_have_its_release_stops_no_other_one(near, serve):
    """With names of any length; one of the Targets has a release of another owner."""
    names = ["a" * 242, "b" * 64, "c" * 63, "note", "z"]
    for name in names:
        near.target(name)
    near.release("note-note")
    near.chart()
    serve()
    others = [_name("note", name) for name in names if name != "note"]
    eventually(lambda: not any(near.is_gone(RELEASES, name) for name in others))
    eventually(lambda: near.says(CHARTS, "note", "note-note", "remove it, or rename one of them"))
    eventually(lambda: any(near.is_ready(RELEASES, name) for name in others))  # of one cluster
    near.delete(CHARTS, "note")
    eventually(lambda: near.is_gone(CHARTS, "note"))
    assert all(near.is_gone(RELEASES, name) for name in others)


def test_releases_are_forced_also_where_their_chart_does_not_come_to_it(near, way, serve):
    class Hanging(HelmCharts):
        """Its force_delete comes to nothing."""

        def force_delete(self, ctx, obj, cluster):
            raise RequeueAfter(60, "Never mind")

    serve(of_charts=Hanging)
    near.target()
    near.chart()
    eventually(lambda: near.is_ready(CHARTS, "note"))
    way.proxy.go_down()
    near.delete(CHARTS, "note")
    eventually(lambda: near.says(RELEASES, "note-t", "NoAnswer"))
    near.force(CHARTS, "note")
    eventually(lambda: near.is_gone(RELEASES, "note-t"))
    assert [type for type, _ in near.orphans()] == ["Helm::Release"]


def test_a_release_of_the_same_name_and_another_uid_is_not_forced(near):
    old = decode(HelmReleaseProxy, near.release())
    near.delete(RELEASES, "alone")
    new = decode(HelmReleaseProxy, near.release())
    assert old.metadata.uid != new.metadata.uid
    ctx = SimpleNamespace(client=near.admin, log=logging.getLogger(__name__))
    with pytest.raises(Invalid, match=r"metadata\.uid"):
        force(ctx, old)
    assert near.get(RELEASES, "alone")["metadata"].get("annotations") is None
    force(ctx, new)
    assert near.get(RELEASES, "alone")["metadata"]["annotations"] == {FORCE_DELETION: "true"}
