"""Machine images by capabilities, as Gardener's documentation describes them, and in Go's status.

Sources: Gardener documentation, "CloudProfile Capabilities" (defaults, order, selection), and the
extensions for AWS and OpenStack (shapes of CloudProfileConfig and WorkerStatus, mixed formats).
"""

import copy
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actuator.codec import decode
from actuator.errors import ConfigurationError
from actuator.v1alpha1 import Cluster, Worker
from generic.library.worker import ProviderImage, machine_images, use_images

API_VERSION = "mine.provider.extensions.gardener.cloud/v1alpha1"
ARCHITECTURES = {"architecture": ["amd64", "arm64"]}
AMD = {"architecture": ["amd64"]}
ARM = {"architecture": ["arm64"]}


@attrs.frozen(kw_only=True)
class Image(ProviderImage):
    """As OpenStack's: an id in a region, or a name that is the same in all regions."""

    id: str | None = None
    image: str | None = None
    skip_agreement: bool | None = None


def cluster(*versions, registered=None, types=None):
    """A CloudProfile with versions of one image; `types` are capabilities by machine type."""
    config = {"machineImages": [{"name": "os", "versions": list(versions)}]}
    machine_types = [{"name": name, "capabilities": has} for name, has in (types or {}).items()]
    profile = {"providerConfig": config, "machineTypes": machine_types}
    if registered:
        profile["machineCapabilities"] = [
            {"name": name, "values": values} for name, values in registered.items()
        ]
    meta = {"name": "c"}
    return decode(Cluster, {"metadata": meta, "spec": {"cloudProfile": {"spec": profile}}})


def worker(*pools, kept=None):
    """Pools by architecture and machine type; `kept` are the images of the status."""
    image = {"name": "os", "version": "1"}
    given = [
        {"name": f"p{index}", "machineImage": image, "architecture": arch, "machineType": kind}
        for index, (arch, kind) in enumerate(pools)
    ]
    status = {} if kept is None else {"providerStatus": {"machineImages": copy.deepcopy(kept)}}
    meta = {"name": "w", "namespace": "n"}
    return decode(
        Worker, {"metadata": meta, "spec": {"region": "r", "pools": given}, "status": status}
    )


def chosen(obj, at):
    """The id, or the image for all regions, of each pool."""
    found = use_images(Image, obj, obj.spec.pools, at, API_VERSION)
    return [item.id or item.image for item in found]


def entries(obj):
    return obj.status.provider_status["machineImages"]


def flavor(id, **capabilities):
    return {"capabilities": capabilities, "regions": [{"name": "r", "id": id}]}


def flavors(*those):
    return {"version": "1", "capabilityFlavors": list(those)}


DOCUMENTED = {
    "architecture": ["amd64", "arm64"],
    "machineHostType": ["virtual", "metal"],
    "storageAccess": ["NVMe", "SCSI"],
}
TYPES = {
    "general-medium": {**AMD, "machineHostType": ["virtual"]},
    "metal-medium": {**AMD, "machineHostType": ["metal"], "storageAccess": ["SCSI"]},
    "arm-medium": {**ARM, "machineHostType": ["virtual"]},
}
EXAMPLE = flavors(
    {"image": "amd64-virtual", "capabilities": {**AMD, "machineHostType": ["virtual"]}},
    {"image": "amd64-metal", "capabilities": TYPES["metal-medium"]},
    {"image": "arm64", "capabilities": {**TYPES["arm-medium"], "storageAccess": ["NVMe"]}},
)


def test_the_complete_example_of_the_documentation():
    obj = worker(*((None, kind) for kind in TYPES))
    at = cluster(EXAMPLE, registered=DOCUMENTED, types=TYPES)
    assert chosen(obj, at) == ["amd64-virtual", "amd64-metal", "arm64"]
    assert [entry["capabilities"] for entry in entries(obj)] == [
        capability_flavor["capabilities"] for capability_flavor in EXAMPLE["capabilityFlavors"]
    ], "as Go writes them"
    assert not any("architecture" in entry for entry in entries(obj))


@pytest.mark.parametrize("order", [["NVMe", "SCSI"], ["SCSI", "NVMe"]])
def test_the_order_of_registered_values_decides_among_compatible_flavors(order):
    at = cluster(
        flavors(flavor("b", **AMD, storage=["SCSI"]), flavor("a", **AMD, storage=["NVMe"])),
        registered={**AMD, "storage": order},
        types={"m": AMD},
    )
    assert chosen(worker((None, "m")), at) == ["a" if order[0] == "NVMe" else "b"]


ONE_ARM = {"architecture": ["arm64"]}
REGIONS = {"other": [{"name": "other", "id": "o"}], "here": [{"name": "r", "id": "x"}]}
CASES = {
    "flavors without registered capabilities": (
        worker(("amd64", "m"), ("arm64", "m")),
        cluster(flavors(flavor("arm", **ARM), flavor("amd", **AMD))),
        ["amd", "arm"],
    ),
    "an omitted architecture is the only registered one": (
        worker((None, "m")),
        cluster(flavors({"image": "g"}), registered=ONE_ARM, types={"m": {}}),
        ["g"],
    ),
    "an older version in a CloudProfile with capabilities": (
        worker(("arm64", "m")),
        cluster(
            {"version": "1", "image": "no", "architecture": "amd64"},
            {"version": "1", "image": "yes", "architecture": "arm64"},
            registered=ARCHITECTURES,
            types={"m": ARM},
        ),
        ["yes"],
    ),
    "the machine type decides, not the pool's older field": (
        worker(("amd64", "m")),
        cluster(flavors(flavor("arm", **ARM)), registered=ARCHITECTURES, types={"m": ARM}),
        ["arm"],
    ),
    "the pool's architecture, if only the architecture counts and the type is unknown": (
        worker(("arm64", "gone")),
        cluster(flavors(flavor("a", **AMD), flavor("b", **ARM)), registered=ARCHITECTURES),
        ["b"],
    ),
    "an image for all regions beside regions that do not match": (
        worker((None, "m")),
        cluster({"version": "1", "image": "global", "regions": REGIONS["other"]}),
        ["global"],
    ),
    "an image for all regions beside an empty list of regions": (
        worker((None, "m")),
        cluster({"version": "1", "image": "global", "regions": []}),
        ["global"],
    ),
    "an image for all regions beside a flavor's regions": (
        worker((None, "m")),
        cluster(flavors({"image": "global", "capabilities": AMD, "regions": REGIONS["other"]})),
        ["global"],
    ),
    "a region that matches comes before the image for all regions": (
        worker((None, "m")),
        cluster({"version": "1", "image": "global", "regions": REGIONS["here"]}),
        ["x"],
    ),
    "a region without an id falls back": (
        worker((None, "m")),
        cluster({"version": "1", "image": "global", "regions": [{"name": "r", "id": ""}]}),
        ["global"],
    ),
    "the architectures of other regions count for the fallback": (
        worker(("arm64", "m"), ("amd64", "m")),
        cluster(
            {
                "version": "1",
                "image": "global",
                "regions": [
                    {"name": "other", "id": "o", "architecture": "arm64"},
                    {"name": "r", "id": "x"},
                ],
            }
        ),
        ["global", "x"],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_image_of_each_shape_of_a_cloud_profile(case):
    obj, at, expected = CASES[case]
    assert chosen(obj, at) == expected


GO = [
    {"name": "os", "version": "1", "id": "ARM", "capabilities": ARM, "later": {"x": [1]}},
    {"name": "os", "version": "1", "id": "AMD", "capabilities": AMD},
]
KEPT: dict[str, Any] = {
    "capabilities, and a CloudProfile that has the image no more": (GO, None, ["AMD", "ARM"]),
    "the same with registered capabilities": (GO, ARCHITECTURES, ["AMD", "ARM"]),
    "an older status, and a CloudProfile with capabilities": (
        [
            {"name": "os", "version": "1", "id": "o-arm", "architecture": "arm64"},
            {"name": "os", "version": "1", "id": "o-amd"},
        ],
        ARCHITECTURES,
        ["o-amd", "o-arm"],
    ),
    "an entry without identity is passed over": (
        [{**GO[1], "id": ""}, *GO],
        None,
        ["AMD", "ARM"],
    ),
}


@pytest.mark.parametrize("case", KEPT)
def test_an_image_of_a_go_extensions_status_is_used_and_kept_whole(case):
    kept, registered, expected = KEPT[case]
    obj = worker(("amd64", "m"), ("arm64", "n"), kept=kept)
    at = cluster(registered=registered, types={"m": AMD, "n": ARM})
    assert chosen(obj, at) == expected
    assert entries(obj) == [item for id in expected for item in kept if item["id"] == id]


@pytest.mark.parametrize("registered", [None, ARCHITECTURES])
def test_unknown_fields_of_the_status_stay_while_the_cloud_profile_has_the_image(registered):
    at = cluster(
        flavors(flavor("new", **ARM), flavor("AMD", **AMD)),
        registered=registered,
        types={"m": AMD, "n": ARM},
    )
    obj = worker(("amd64", "m"), ("arm64", "n"), kept=GO)
    assert chosen(obj, at) == ["AMD", "new"]
    arm = {key: value for key, value in entries(obj)[1].items() if key != "architecture"}
    assert arm == {**GO[0], "id": "new"}


def test_an_unchanged_status_of_go_is_written_back_unchanged():
    older = [{"name": "os", "version": "1", "id": "a", "architecture": "amd64", "later": 1}]
    for kept, version, registered in (
        (older, {"version": "1", "regions": [{"name": "r", "id": "a"}]}, None),
        (GO, flavors(flavor("AMD", **AMD), flavor("ARM", **ARM)), ARCHITECTURES),
    ):
        obj = worker(("arm64", "n"), ("amd64", "m"), kept=kept) if registered else None
        obj = obj or worker(("amd64", "m"), kept=kept)
        chosen(obj, cluster(version, registered=registered, types={"m": AMD, "n": ARM}))
        assert entries(obj) == kept


PROBLEMS = {
    "no flavor fits": (
        worker((None, "m")),
        cluster(flavors(flavor("arm", **ARM))),
        r"spec.pools\[0\].machineImage: os 1 amd64 in r is neither in the CloudProfile nor",
    ),
    "no flavor fits, by more than the architecture": (
        worker((None, "metal-medium")),
        cluster(flavors(EXAMPLE["capabilityFlavors"][0]), registered=DOCUMENTED, types=TYPES),
        r"os 1 amd64 machineHostType=metal storageAccess=SCSI in r is neither",
    ),
    "flavors that nothing distinguishes": (
        worker((None, "m")),
        cluster(flavors(flavor("a", **AMD), flavor("b", **AMD))),
        r"os 1 amd64 in r has several capabilityFlavors that fit equally; correct spec.providerCon",
    ),
    "a machine type that is not in the CloudProfile": (
        worker((None, "gone")),
        cluster(EXAMPLE, registered=DOCUMENTED, types=TYPES),
        r"spec.pools\[0\].machineType: 'gone' is not in the CloudProfile, so its capab.*; add it",
    ),
    "an option is no identity": (
        worker((None, "m")),
        cluster(flavors({"skipAgreement": True, "capabilities": AMD})),
        r"os 1 amd64 in r is neither",
    ),
    "an empty list of architectures": (
        worker((None, "m")),
        cluster(flavors(flavor("a", architecture=[]))),
        r"os 1 amd64 in r is neither",
    ),
    "capabilities of a wrong type": (
        worker((None, "m")),
        cluster(flavors(flavor("a", architecture="amd64"))),
        r"Cluster c: spec.cloudProfile.spec.providerConfig.machineImages: .*capabilities.*; corr",
    ),
    "registered capabilities of a wrong type": (
        worker((None, "m")),
        cluster(EXAMPLE, registered={"architecture": "amd64"}),
        r"Cluster c: spec.cloudProfile.spec.machineCapabilities: .*values.*; correct it",
    ),
}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_a_problem_with_capabilities_is_named(problem):
    obj, at, words = PROBLEMS[problem]
    with pytest.raises(ConfigurationError, match=words):
        chosen(obj, at)
    assert not obj.status.provider_status


def test_the_images_of_a_region_have_their_architecture_and_capabilities():
    at = cluster(EXAMPLE, registered=DOCUMENTED)
    assert [
        (machine_image.architecture, machine_image.capabilities)
        for machine_image in machine_images(Image, at, "r")
    ] == [
        (capability_flavor["capabilities"]["architecture"][0], capability_flavor["capabilities"])
        for capability_flavor in EXAMPLE["capabilityFlavors"]
    ]


NAMES = {"architecture": ["amd64", "arm64"], "host": ["v", "m"], "disk": ["n", "s", "x"]}


def some(values):
    return st.lists(st.sampled_from(values), min_size=1, unique=True)


@st.composite
def worlds(draw):
    """Registered capabilities in any order, flavors, and a machine type."""
    names = draw(st.permutations(list(NAMES)))
    registered = {name: draw(some(NAMES[name])) for name in names}

    def of_one_architecture():
        optional = {name: some(registered[name]) for name in registered if name != "architecture"}
        more = draw(st.fixed_dictionaries({}, optional=optional))
        return {"architecture": [draw(st.sampled_from(registered["architecture"]))], **more}

    images = [of_one_architecture() for _ in range(draw(st.integers(0, 6)))]
    return registered, images, of_one_architecture()


def documented_choice(registered, images, machine):
    """The indexes of the best images, by the documentation's two steps, written plainly.

    1. "compatible if every capability has a non-empty intersection"; an omitted one has all values.
    2. "Compare [...] capability by capability"; the image with the preferred value wins.
    """
    whole = [{**registered, **image} for image in images]
    needed = {**registered, **machine}
    fits = [
        index
        for index, item in enumerate(whole)
        if all(any(value in needed[name] for value in item[name]) for name in registered)
    ]
    ranks = {
        index: [
            value not in whole[index][name]
            for name, values in registered.items()
            for value in values
        ]
        for index in fits
    }
    return [index for index in fits if ranks[index] == min(ranks.values())]


@settings(max_examples=60)
@given(worlds())
def test_law_the_choice_is_the_documented_one(world):
    registered, images, machine = world
    at = cluster(
        flavors(*(flavor(f"i{index}", **image) for index, image in enumerate(images))),
        registered=registered,
        types={"m": machine},
    )
    obj = worker((None, "m"))
    best = documented_choice(registered, images, machine)
    if len(best) == 1:
        assert chosen(obj, at) == [f"i{best[0]}"]
        gone = cluster(registered=registered, types={"m": machine})
        assert chosen(obj, gone) == [f"i{best[0]}"], "the status keeps the same"
    else:
        with pytest.raises(ConfigurationError, match="equally" if best else "neither"):
            chosen(obj, at)


places = st.fixed_dictionaries(
    {},
    optional={
        "id": st.sampled_from(["", "a", "b"]),
        "image": st.sampled_from(["", "c"]),
        "skipAgreement": st.booleans(),
        "architecture": st.sampled_from(["amd64", "arm64"]),
        "capabilities": st.sampled_from([{}, AMD, ARM]),
        "unknown": st.just({"later": 1}),
    },
)
regions = st.lists(
    st.tuples(places, st.sampled_from(["r", "s"])).map(lambda pair: {**pair[0], "name": pair[1]}),
    max_size=2,
)
scopes = st.tuples(places, st.none() | regions).map(
    lambda pair: pair[0] if pair[1] is None else {**pair[0], "regions": pair[1]}
)
versions = st.tuples(scopes, st.none() | st.lists(scopes, max_size=2)).map(
    lambda pair: {**pair[0], "version": "1", "capabilityFlavors": pair[1]}
)
kept_entries = places.map(lambda fields: {**fields, "name": "os", "version": "1"})


@given(
    st.lists(versions, max_size=3),
    st.lists(kept_entries, max_size=3),
    st.sampled_from([None, ARCHITECTURES]),
)
def test_law_no_image_without_identity_or_of_another_architecture(found, kept, registered):
    at = cluster(*found, registered=registered, types={"m": AMD, "n": ARM})
    for arch, kind in (("amd64", "m"), ("arm64", "n")):
        obj = worker((arch, kind), kept=kept)
        try:
            [image] = use_images(Image, obj, obj.spec.pools, at, API_VERSION)
        except ConfigurationError:
            assert entries(obj) == kept
            continue
        assert image.id or image.image
        assert image.architecture == arch
        [entry] = entries(obj)
        again = worker((arch, kind), kept=[entry])
        assert chosen(again, at) == [image.id or image.image], "it stays"
        assert entries(again) == [entry]
        former = [item for item in kept if item.get("id") or item.get("image")]
        former = [item for item in former if _architecture(item) == arch]
        if former and all("unknown" in item for item in former):
            assert entry["unknown"] == {"later": 1}, "a field of the status is lost"


def _architecture(entry):
    of_capabilities = (entry.get("capabilities") or {}).get("architecture")
    return of_capabilities[0] if of_capabilities else entry.get("architecture", "amd64")
