"""Machine images of pools: the CloudProfile's, else those that the status keeps while in use."""

import attrs
import pytest

from actuator.codec import decode
from actuator.errors import ConfigurationError, ErrorCode
from actuator.v1alpha1 import Cluster, Worker
from generic.library.worker import ProviderImage, machine_images, use_images

API_VERSION = "mine.provider.extensions.gardener.cloud/v1alpha1"


@attrs.frozen(kw_only=True)
class Image(ProviderImage):
    id: str


def by_region(id, region="here", **more):
    return {"name": region, "id": id, **more}


def listed(version, *regions, name="linux"):
    return {"name": name, "versions": [{"version": version, "regions": list(regions)}]}


def cluster(*images):
    profile = {"spec": {"providerConfig": {"machineImages": list(images), "other": 1}}}
    return decode(Cluster, {"metadata": {"name": "c"}, "spec": {"cloudProfile": profile}})


def worker(*pools, kept=None):
    given = [
        {"name": f"p{index}", "machineImage": {"name": "linux", "version": version}, **more}
        for index, (version, more) in enumerate(pools)
    ]
    status = {} if kept is None else {"providerStatus": kept}
    meta = {"name": "worker", "namespace": "ns"}
    spec = {"region": "here", "pools": given}
    return decode(Worker, {"metadata": meta, "spec": spec, "status": status})


def used(obj, *images):
    found = use_images(Image, obj, obj.spec.pools, cluster(*images), API_VERSION)
    return [image.id for image in found]


ARM = {"architecture": "arm64"}


def test_the_images_of_a_region_are_found_by_name_version_and_architecture():
    images = [
        listed("1", by_region("elsewhere", "there"), by_region("arm", **ARM), by_region("amd")),
        listed("2", by_region("new", odd=1)),
        listed("1", by_region("other"), name="other"),
    ]
    assert used(worker(("1", {}), ("2", {}), ("1", ARM)), *images) == ["amd", "new", "arm"]
    assert [
        machine_image.id for machine_image in machine_images(Image, cluster(*images), "there")
    ] == ["elsewhere"]


def test_an_image_without_regions_is_for_all_of_them():
    everywhere = {"version": "1", "id": "global", "architecture": "arm64"}
    images = [{"name": "linux", "versions": [everywhere]}]
    assert machine_images(Image, cluster(*images), "here") == [
        Image(name="linux", version="1", architecture="arm64", id="global")
    ]


def test_the_status_keeps_the_images_of_all_pools_once_and_other_fields():
    obj = worker(("1", {}), ("1", {}), ("2", ARM), kept={"technicalID": "x", "kind": "Kept"})
    used(obj, listed("1", by_region("a")), listed("2", by_region("b", **ARM)))
    assert obj.status.provider_status == {
        "apiVersion": API_VERSION,
        "kind": "Kept",
        "technicalID": "x",
        "machineImages": [
            {"name": "linux", "version": "1", "id": "a"},
            {"name": "linux", "version": "2", "id": "b", "architecture": "arm64"},
        ],
    }


def test_an_image_that_the_cloud_profile_drops_is_used_until_no_pool_uses_it():
    obj = worker(("1", {}), ("2", {}))
    assert used(obj, listed("1", by_region("old")), listed("2", by_region("b"))) == ["old", "b"]
    assert used(obj, listed("2", by_region("b"))) == ["old", "b"]
    assert used(obj, listed("1", by_region("mended")), listed("2", by_region("b")))[0] == "mended"
    kept = obj.status.provider_status
    later = worker(("2", {}), kept=kept)
    assert used(later, listed("2", by_region("b"))) == ["b"]
    gone = worker(("1", {}), kept=later.status.provider_status)
    with pytest.raises(ConfigurationError, match=r"machineImage: linux 1 amd64 in here is neither"):
        used(gone, listed("2", by_region("b")))


def test_a_status_of_a_go_extension_is_read():
    image = {"name": "linux", "version": "1", "id": "go", "architecture": "amd64", "new": {}}
    kept = {"apiVersion": API_VERSION, "kind": "WorkerStatus", "machineImages": [image]}
    assert used(worker(("1", {}), kept=kept)) == ["go"]


NO_ID = {"name": "linux", "version": "1"}
PROBLEMS = {
    "no image of that name": (
        (worker(("9", {})), listed("1", by_region("a"))),
        r"^Worker ns/worker: spec.pools\[0\].machineImage: linux 9 amd64 in here is nei.*; add ",
    ),
    "no image of that architecture": (
        (worker(("1", {}), ("1", ARM)), listed("1", by_region("a"))),
        r"spec.pools\[1\].machineImage: linux 1 arm64 in here",
    ),
    "a pool without image": (
        (worker(("1", {"machineImage": None})),),
        r"spec.pools\[0\].machineImage: expected an image, got none; set it in the Shoot",
    ),
    "an entry without the provider's field": (
        (worker(("1", {})), listed("1", {"name": "here"})),
        r"spec.pools\[0\].machineImage: linux 1 amd64 in here is neither",
    ),
    "an entry with a wrong type in the provider's field": (
        (worker(("1", {})), listed("1", by_region(5))),
        r"Cluster c: spec.cloudProfile.spec.providerConfig.machineImages: .*id.*; correct it",
    ),
    "an entry that is no object": (
        (worker(), "linux"),
        r"Cluster c: spec.cloudProfile.spec.providerConfig.machineImages: expected an object",
    ),
    "an image of the status without the provider's field": (
        (worker(("1", {}), kept={"machineImages": [NO_ID]}),),
        r"spec.pools\[0\].machineImage: linux 1 amd64 in here is neither",
    ),
    "a status that is no list of images": (
        (worker(kept={"machineImages": ["linux"]}),),
        r"Worker ns/worker: status.providerStatus.machineImages: .*object.*; correct it",
    ),
}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_problem_is_named_with_object_and_field_and_changes_no_status(problem):
    (obj, *images), words = PROBLEMS[problem]
    before = obj.status.provider_status
    with pytest.raises(ConfigurationError, match=words) as caught:
        used(obj, *images)
    assert caught.value.codes == (ErrorCode.ERR_CONFIGURATION_PROBLEM,)
    assert obj.status.provider_status == before
