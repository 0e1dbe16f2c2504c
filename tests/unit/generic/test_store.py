"""The store against a model of the API server: writes of others, our writes, watch events."""

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from actuator import Resource
from generic.kube.headers import Event, EventType, Request, header
from generic.kube.store import Store

NAMES = st.sampled_from(["a", "b", "c"])
Versioned = dict[str, tuple[str, int]]


class ServerAndStore(RuleBasedStateMachine):
    """An API server's objects and its watch, which may lag; our store beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.store: Store[Any] = Store(Resource("v1", "things"), header)
        self.version = 10
        self.live: dict[str, dict[str, Any]] = {}
        self.watch: list[tuple[EventType, dict[str, Any]]] = []
        self.ours: set[int] = set()
        self.highest: Versioned = {}
        """The newest version of each object that the store showed since the last list."""
        self.read: dict[str, str] = {}
        self.known_dead: set[str] = set()
        self.shown: dict[str, str] = {}
        """The names of the uids with an ADDED event, but for those replaced since."""
        self.deleted_uids: list[str] = []
        self.backup: tuple[dict[str, dict[str, Any]], int] = {}, self.version
        self.uids = 0

    def next_version(self) -> int:
        self.version += 1
        return self.version

    def put(self, name: str, kind: EventType, **meta: Any) -> dict[str, Any]:
        version = self.next_version()
        self.uids += 1  # versions are used again after a restore, uids are not
        old = self.live.get(name, {"metadata": {"uid": f"uid-{self.uids}"}})["metadata"]
        obj = {
            "apiVersion": "v1",
            "kind": "Thing",
            "metadata": {
                **old,
                "name": name,
                "namespace": "n",
                "resourceVersion": str(version),
                **meta,
            },
        }
        self.live[name] = obj
        self.watch.append((kind, obj))
        return obj

    @rule(name=NAMES)
    def others_write(self, name: str) -> None:
        self.put(name, EventType.MODIFIED if name in self.live else EventType.ADDED)

    @rule(name=NAMES)
    def others_delete(self, name: str) -> None:
        if name in self.live:
            gone = self.put(name, EventType.DELETED)
            del self.live[name]
            assert gone["metadata"]["name"] == name

    @rule(name=NAMES)
    def we_write(self, name: str) -> None:
        entry = self.store.get(Request("n", name))
        live = self.live.get(name)
        if live is not None and entry and entry.header.uid == live["metadata"]["uid"]:
            obj = self.put(name, EventType.MODIFIED)
            self.ours.add(self.version)
            entry, event = self.store.written(copied(obj))
            assert event.own
            assert entry.header.resource_version == self.version

    @rule(name=NAMES)
    def we_take_the_last_finalizer_off(self, name: str) -> None:
        entry = self.store.get(Request("n", name))
        live = self.live.get(name)
        if live is not None and entry and entry.header.uid == live["metadata"]["uid"]:
            obj = self.put(name, EventType.DELETED, deletionTimestamp="now")
            self.ours.add(self.version)
            del self.live[name]
            self.store.written(copied(obj))
            self.known_dead.add(entry.header.uid)

    @rule(name=NAMES)
    def we_read(self, name: str) -> None:
        if entry := self.store.get(Request("n", name)):
            self.read[name] = entry.header.uid

    @rule(name=NAMES)
    def a_read_version_is_deleted(self, name: str) -> None:
        uid = self.read.get(name)
        live = self.live.get(name)
        if uid and (live is None or live["metadata"]["uid"] != uid):
            entry = self.store.get(Request("n", name))
            self.store.forget(Request("n", name), uid)
            if entry and entry.header.uid == uid:
                self.known_dead.add(uid)
            else:
                assert self.store.get(Request("n", name)) is entry

    @precondition(lambda self: self.watch)
    @rule()
    def the_watch_goes_on(self) -> None:
        kind, obj = self.watch.pop(0)
        request = Request("n", obj["metadata"]["name"])
        version = version_of(obj)
        known = self.store.get(request)
        if kind is EventType.DELETED:
            event = self.store.observe_deleted(copied(obj))
            self.keep_reported(event)
            if known is not None and known.header.uid == obj["metadata"]["uid"]:
                assert event is not None
                assert event.type is EventType.DELETED
            return
        event = self.store.observe(copied(obj))
        self.keep_reported(event)
        if event is not None:
            assert event.own == (version in self.ours)
            assert event.new is not None
            assert event.new.resource_version == version
        elif version not in self.ours and known is not None:
            assert version_of_entry(known) == (obj["metadata"]["uid"], version)

    @rule(name=NAMES, write=st.booleans(), gone=st.booleans())
    def the_watch_is_lost_and_everything_listed(self, name: str, write: bool, gone: bool) -> None:
        self.store.begin_list()
        listed = [copied(obj) for obj in self.live.values()]
        version = self.version
        self.watch.clear()
        if write:  # after the list was made, before it is read
            self.we_write(name)
        if gone:
            self.we_read(name)
            self.others_write(name)
            self.others_delete(name)
            self.a_read_version_is_deleted(name)
        for obj in listed:
            self.keep_reported(self.store.observe(obj, relisted=True))
        events = self.store.prune(
            [Request("n", obj["metadata"]["name"]) for obj in listed], version
        )
        assert all(event.type is EventType.DELETED for event in events)
        for event in events:
            self.keep_reported(event)
        self.highest.clear()
        if not self.watch:
            self.assert_equal()

    @rule()
    def etcd_is_backed_up(self) -> None:
        self.backup = dict(self.live), self.version

    @rule(names=st.lists(NAMES, max_size=6))
    def etcd_is_restored(self, names: list[str]) -> None:
        """Objects are written since: with versions that others, or they themselves, had before."""
        before = {request.name: head.uid for request, head in self.store.headers()}
        self.live = dict(self.backup[0])
        self.version = self.backup[1]
        for name in names:
            self.put(name, EventType.MODIFIED, annotations={"restore": str(self.uids)})
        self.ours.clear()
        self.read.clear()
        self.known_dead.clear()
        told, gone = self.list_again()
        live = {obj["metadata"]["uid"] for obj in self.live.values()}
        assert sorted(gone) == sorted(uid for n, uid in before.items() if n not in self.live)
        assert live - set(before.values()) <= told, "objects that exist again are shown"
        self.deleted_uids = []
        self.shown = {o["metadata"]["uid"]: n for n, o in self.live.items()}

    def list_again(self) -> tuple[set[str], list[str]]:
        """Return the uids with an event, and those with a DELETED event."""
        self.store.begin_list()
        self.watch.clear()
        self.highest.clear()
        events = [self.store.observe(copied(o), relisted=True) for o in self.live.values()]
        listed = [Request("n", name) for name in self.live]
        lost = self.store.prune(listed, self.version)
        told = {event.new.uid for event in events if event is not None and event.new is not None}
        return told, [e.old.uid for e in lost if e.old is not None and not e.own]

    def keep_reported(self, event: Event[Any] | None) -> None:
        if event is None:
            return
        if event.type is EventType.DELETED:
            assert event.old is not None
            assert event.own == (event.old.uid in self.known_dead)
            self.deleted_uids.append(event.old.uid)
        elif event.type is EventType.ADDED:
            assert event.new is not None
            name = event.request.name
            gone = self.deleted_uids
            self.shown = {u: n for u, n in self.shown.items() if n != name or u in gone}
            self.shown[event.new.uid] = name

    @invariant()
    def no_object_is_replaced_by_an_older_version_of_itself(self) -> None:
        for request, head in self.store.headers():
            uid, version = self.highest.get(request.name, (head.uid, 0))
            assert uid != head.uid or head.resource_version >= version
            self.highest[request.name] = (head.uid, head.resource_version)

    @invariant()
    def a_deleted_object_does_not_come_back(self) -> None:
        assert not self.known_dead & {head.uid for _, head in self.store.headers()}

    @invariant()
    def a_watch_that_is_up_to_date_leaves_the_store_equal_to_the_server(self) -> None:
        if not self.watch:
            self.assert_equal()

    def teardown(self) -> None:
        while self.watch:
            self.the_watch_goes_on()
        self.assert_equal()
        live = {obj["metadata"]["uid"] for obj in self.live.values()}
        told = [uid for uid in self.deleted_uids if uid in self.shown]
        assert sorted(told) == sorted(self.shown.keys() - live), (
            "each that is gone is told of, once"
        )

    def assert_equal(self) -> None:
        live = {
            name: (o["metadata"]["uid"], version_of(o), o["metadata"].get("annotations", {}))
            for name, o in self.live.items()
        }
        stored = {
            r.name: (h.uid, h.resource_version, dict(h.annotations))
            for r, h in self.store.headers()
        }
        assert stored == live
        assert {request.name for request in self.store.requests("n")} == set(live)


def copied(obj: dict[str, Any]) -> dict[str, Any]:
    return {**obj, "metadata": {**obj["metadata"], "managedFields": [{}]}}


def version_of(obj: dict[str, Any]) -> int:
    return int(obj["metadata"]["resourceVersion"])


def version_of_entry(entry: Any) -> tuple[str, int]:
    return entry.header.uid, entry.header.resource_version


TestTheStoreFollowsTheServer = ServerAndStore.TestCase
TestTheStoreFollowsTheServer.settings = settings(
    max_examples=150, stateful_step_count=30, deadline=None
)


def thing(name: str, version: int, uid: str = "uid-1") -> dict[str, Any]:
    meta = {"name": name, "namespace": "n", "uid": uid, "resourceVersion": str(version)}
    return {"apiVersion": "v1", "kind": "Thing", "metadata": meta}


def test_a_list_replaces_newer_objects_because_etcd_may_have_been_restored() -> None:
    store: Store[Any] = Store(Resource("v1", "things"), header)
    store.observe(thing("a", 900))
    store.observe(thing("b", 901, "uid-2"))
    event = store.observe(thing("a", 500), relisted=True)
    assert event is not None
    assert event.type is EventType.MODIFIED
    [deleted] = store.prune([Request("n", "a")], 500)
    assert (deleted.type, deleted.request.name) == (EventType.DELETED, "b")
    entry = store.get(Request("n", "a"))
    assert entry is not None
    assert entry.header.resource_version == 500


def test_an_old_deletion_does_not_take_a_new_object_of_the_same_name() -> None:
    store: Store[Any] = Store(Resource("v1", "things"), header)
    store.observe(thing("a", 5, "new"))
    assert store.observe_deleted(thing("a", 4, "old")) is None
    assert [request for request, _ in store.headers()] == [Request("n", "a")]


def test_an_old_object_that_is_gone_does_not_take_a_new_one_of_the_same_name() -> None:
    store: Store[Any] = Store(Resource("v1", "things"), header)
    store.observe(thing("a", 5, "new"))
    store.forget(Request("n", "a"), "old")
    assert [request for request, _ in store.headers()] == [Request("n", "a")]


def test_a_list_changes_nothing_that_we_wrote_since_it_began() -> None:
    store: Store[Any] = Store(Resource("v1", "things"), header)
    store.observe(thing("a", 10))
    store.begin_list()
    store.written(thing("a", 15))
    assert store.observe(thing("a", 12), relisted=True) is None
    assert store.prune([], 12) == []
    entry = store.get(Request("n", "a"))
    assert entry is not None
    assert entry.header.resource_version == 15
    store.begin_list()
    assert store.observe(thing("a", 12), relisted=True) is not None  # etcd was restored


def test_a_buried_object_that_a_restored_etcd_brings_back_is_seen_again() -> None:
    store: Store[Any] = Store(Resource("v1", "things"), header)
    store.observe(thing("a", 900))
    last = thing("a", 901)
    last["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    store.written(last)
    assert store.get(Request("n", "a")) is None
    assert store.observe(thing("a", 500), relisted=True) is None
    store.begin_list()
    assert store.observe(thing("a", 500), relisted=True) is not None


def test_a_compressed_store_returns_the_same_json_in_less_memory() -> None:
    obj = {**thing("a", 5), "spec": {"text": "x" * 5_000, "é": [1, None]}}
    plain: Store[Any] = Store(Resource("v1", "things"), header)
    compressed: Store[Any] = Store(Resource("v1", "things"), header, compressed=True)
    for store in (plain, compressed):
        store.observe(copied(obj))
    entry = plain.get(Request("n", "a"))
    other = compressed.get(Request("n", "a"))
    assert entry is not None
    assert other is not None
    assert (other.header, other.raw) == (entry.header, entry.raw)
    assert len(other.stored) < len(entry.stored) / 10
    gone = compressed.observe_deleted(copied(obj))
    assert gone is not None
    assert gone.last == entry.raw


def deleting(obj: dict[str, Any], *finalizers: str) -> dict[str, Any]:
    meta = {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": [*finalizers]}
    return {**obj, "metadata": {**obj["metadata"], **meta}}


@pytest.mark.parametrize(
    ("known", "answer", "kept", "is_own", "has_before"),
    [
        (thing("a", 5), thing("a", 6), 6, True, True),
        (thing("a", 7), thing("a", 6), 7, True, True),
        (None, thing("a", 6), None, True, False),
        (thing("a", 5), thing("a", 6, "new"), 6, True, False),
        (thing("a", 5), deleting(thing("a", 6), "x"), 6, True, True),
        (thing("a", 5), deleting(thing("a", 6)), None, False, True),
        (thing("a", 5, "new"), deleting(thing("a", 4)), 5, False, False),
        (None, deleting(thing("a", 6)), None, False, False),
    ],
    ids=[
        *("newer", "older than the watch", "not yet seen", "another object of the name"),
        *("deleting with a finalizer", "deleted", "an old object is deleted", "unknown deleted"),
    ],
)
def test_an_answer_to_our_write_is_stored_unless_the_watch_is_ahead(
    known: dict[str, Any] | None,
    answer: dict[str, Any],
    kept: int | None,
    is_own: bool,
    has_before: bool,
) -> None:
    store: Store[Any] = Store(Resource("v1", "things"), header)
    if known is not None:
        store.observe(known)
    entry, event = store.written(answer)
    now = store.get(Request("n", "a"))
    assert (now and now.header.resource_version) == kept
    assert store.is_own(Request("n", "a"), version_of(answer)) is is_own
    assert (event.type, event.own, event.new) == (EventType.MODIFIED, True, entry.header)
    assert (event.old is not None) is has_before


@pytest.mark.parametrize(
    ("known", "seen", "relisted", "type", "kept", "is_late"),
    [
        (None, thing("a", 5), False, EventType.ADDED, 5, False),
        (thing("a", 5), thing("a", 6), False, EventType.MODIFIED, 6, False),
        (thing("a", 5), thing("a", 5), False, None, 5, False),
        (thing("a", 5), thing("a", 4), False, EventType.MODIFIED, 5, True),
        (thing("a", 5), thing("a", 4), True, EventType.MODIFIED, 4, False),
        (thing("a", 5), thing("a", 5), True, None, 5, False),
        (thing("a", 5), thing("a", 6, "new"), False, EventType.ADDED, 6, False),
        (thing("a", 5), thing("a", 5, "new"), False, EventType.ADDED, 5, False),
    ],
    ids=[
        *("new", "newer", "the same", "older", "older in a list", "the same in a list"),
        *("another object", "another object of an equal version"),
    ],
)
def test_an_observed_object_is_stored_and_delivered_by_its_version(
    known: dict[str, Any] | None,
    seen: dict[str, Any],
    relisted: bool,
    type: EventType | None,
    kept: int,
    is_late: bool,
) -> None:
    store: Store[Any] = Store(Resource("v1", "things"), header)
    if known is not None:
        store.observe(known)
    event = store.observe(seen, relisted=relisted)
    now = store.get(Request("n", "a"))
    assert now is not None
    assert now.header.resource_version == kept
    if type is None:
        assert event is None
    else:
        assert event is not None
        assert (event.type, event.late, event.relisted) == (type, is_late, relisted)
