"""Wrong inputs of each category: one sentence with the remedy, and the exit status.

Status 2 is for a wrong command line, 3 for a check that could not run, 1 for everything else. Those
that need an API server are in
`tests/api/generic/test_wrong_inputs_of_clusters.py`, wrong provider configurations in
`tests/unit/aws/test_aws_config.py`, those of the testing kit in its own tests.
"""

import pytest

MODULE = """
import attrs
from actuator import Actuator
from actuator.meta import Kind, Object
from actuator.v1alpha1 import Bastion, Infrastructure, Worker
from extensions.local.rehearsal import LocalRehearsal
from generic.testing.rehearsal import Rehearsal

class Network(Actuator[Infrastructure]):
    def reconcile(self, ctx, infrastructure, cluster): ...
    def delete(self, ctx, infrastructure, cluster): ...

class Misspelt(Network):
    def extrnal_resources(self, infrastructure): ...

class Async(Network):
    async def delete(self, ctx, infrastructure, cluster): ...

class WithoutDelete(Actuator[Infrastructure]):
    def reconcile(self, ctx, infrastructure, cluster): ...

class Plain: ...

class Vague(Actuator):
    def reconcile(self, ctx, obj, cluster): ...
    def delete(self, ctx, obj, cluster): ...

class Half(Rehearsal):
    title = "half"

class Alone(LocalRehearsal):
    share = Rehearsal.share

def extension(manager):
    manager.add(Network(), type="mine")

def raising(manager):
    {}["vpc"]

def twice(manager):
    extension(manager)
    extension(manager)

async def asynchronous(manager):
    extension(manager)

def without_manager():
    pass

def hook(manager, **more):
    from generic.library.webhooks import mutates
    declare = mutates(Infrastructure, failure_policy="Fail", name="zone", **more)
    manager.add_webhooks(declare(lambda request: None))

def webhook(manager):
    hook(manager)
    extension(manager)

def two_webhooks(manager):
    hook(manager, namespace_labels={"a": "b"})
    hook(manager, namespace_labels={"a": "b"})

def slow_webhook(manager):
    hook(manager, timeout_seconds=30)

def admission(manager, kind=Bastion, **fields):
    from typing import Annotated
    import attrs
    from actuator import ProviderConfig
    from actuator.meta import Schema
    from generic.library.webhooks.admission import ConfigAdmission

    Zones = attrs.make_class(
        "Zones", {"zone": attrs.field(default="", type=Annotated[str, Schema(**fields)])},
        bases=(ProviderConfig,), kw_only=True, frozen=True,
    )
    manager.add_admission(ConfigAdmission(kind=kind, type="acme", config=Zones))

def pool_admission(manager):
    admission(manager, Worker, immutable=True)

def python_admission(manager):
    admission(manager, Worker, pattern="(?i)a")

nothing = lambda manager: None
number = 5
"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """The author's directory as the current one."""
    (tmp_path / "mine.py").write_text(MODULE)
    (tmp_path / "broken.py").write_text("import nowhere_to_be_found")
    (tmp_path / "raising.py").write_text("\n1 / 0")
    words = "certificates need the package `x`: pip install x"
    text = f"from actuator import ConfigurationError\nraise ConfigurationError({words!r})"
    (tmp_path / "extra.py").write_text(text)
    (tmp_path / "absent.py").write_text("raise ModuleNotFoundError(name='moto.core')")
    (tmp_path / "notyaml").write_text("a: b: c")
    (tmp_path / "flags.yaml").write_text("leader-elect: true")
    (tmp_path / "list.yaml").write_text("- leader-election")
    monkeypatch.chdir(tmp_path)


FREE = "--metrics-bind-address=0 --health-bind-address=0"
RELATIONS = "extensions.relations.rehearsal:RelationsRehearsal"
MODULES = [
    ("run nowhere:x", 1, "module 'nowhere' not found; install it, or run in its folder"),
    ("run broken:x", 1, "module 'nowhere_to_be_found' not found; install it"),
    (
        "run raising:x",
        1,
        "importing raising failed: ZeroDivisionError: division by zero (raising.py:2)",
    ),
    ("run extra:x", 1, "Error: extra:x: certificates need the package `x`: pip install x"),
    ("run absent:x", 1, "module 'moto.core' not found; pip install 'gardener-actuator[drill]'"),
    ("run mine", 1, "expected MODULE:OBJECT, for example extensions.aws:extension"),
    ("run mine.py:Network", 1, "expected MODULE:OBJECT, for example"),
    ("run mine:Netwrk", 1, "mine has no 'Netwrk'; did you mean 'Network'?"),
    ("rbac mine:missing", 1, "mine has no 'missing'"),
    ("dev nowhere:x", 1, "module 'nowhere' not found; install it, or run in its folder"),
    ("dev mine:Netwrk", 1, "mine has no 'Netwrk'; did you mean 'Network'?"),
    ("dev mine", 1, "expected MODULE:OBJECT, for example extensions.aws:extension"),
    ("crds mine:missing", 1, "mine has no 'missing'"),
]
FUNCTIONS = [
    ("run mine:raising", 1, "mine:raising: KeyError: 'vpc' (mine.py:"),
    (
        "run mine:asynchronous",
        1,
        "mine:asynchronous: async functions are not supported; remove async",
    ),
    ("run mine:nothing", 1, "the function added no actuator to the manager"),
    (
        "run mine:without_manager",
        1,
        "mine:without_manager: the function must take one argument, the Manager",
    ),
    ("run mine:twice", 1, "already serves Infrastructure mine; remove one, or separate them"),
    ("run mine:number", 1, "expected an Actuator or a function of a Manager, got int"),
    ("docs mine:Plain", 1, "expected an Actuator or a function of a Manager, got the class Plain"),
    ("run mine:Vague --type x", 1, "derive it from Actuator[KIND], for example Actuator[Infra"),
    ("run mine:WithoutDelete --type x", 1, "WithoutDelete has no method delete; define delete (/"),
    ("run mine:Misspelt --type x", 1, "did you mean 'external_resources'?"),
    (
        "run mine:Async --type x",
        1,
        "Async.delete is async, but actuators run in worker threads; rem",
    ),
    ("drill mine:extension", 3, "expected a rehearsal MODULE:CLASS, for example extensions.aws."),
    ("drill mine:Network", 3, "expected a rehearsal MODULE:CLASS, for example extensions.aws."),
    ("drill mine:Half", 3, "abstract class Half with"),
    ("explore mine:number", 3, "expected a rehearsal MODULE:CLASS, for example extensions.aws."),
    ("explain ns --extension mine:raising", 1, "mine:raising: KeyError: 'vpc' (mine.py:"),
    ("dev mine:raising", 1, "mine:raising: KeyError: 'vpc' (mine.py:"),
]
FLAGS = [
    ("run mine:Network", 1, "set type=…, or --type on the command line"),
    ("run mine:Network --type=", 1, "set type=…, or --type on the command line"),
    ("run mine:extension --log-level=loud", 2, "'loud' is not one of 'debug', 'info', 'error'"),
    ("run mine:extension --leader-elect", 2, "Did you mean one of: '--leader-election'"),
    ("run mine:extension --leader-election=maybe", 2, "expected true or false, got 'maybe'"),
    ("run mine:extension --force-delete-budget=-3", 2, "expected a number above 0, or none"),
    ("run mine:extension --max-concurrent-reconciles=0", 2, "0 is not in the range x>=1"),
    ("run mine:extension --controllers=y", 2, "'y'; set one of: infrastructure, orphans"),
    ("run mine:extension --config-file=missing.yaml", 2, "cannot read --config-file missing.yaml"),
    ("run mine:extension --config-file=flags.yaml", 2, "unknown flag --leader-elect"),
    ("run mine:extension --config-file=list.yaml", 2, "expected one FLAG: VALUE on each line"),
    ("rbac mine:extension --service-account=y", 2, "expected NAMESPACE/NAME"),
    ("rules --runbook-url docs", 2, "expected https://HOST/PATH, got 'docs'"),
    ("drill --scenario nope", 2, "has no scenario 'nope'; set one of: credentials-revoked"),
    ("drill --all --shoots 2 --scenario migration", 2, "remove the other options"),
    ("drill --scenario take-over", 2, "cannot run take-over: it has no ManagedResources of a Go"),
    ("drill RELATIONS --scenario migration", 2, "cannot run migration: its kinds do not migrate"),
    ("drill RELATIONS --path migrate", 2, "cannot run path migrate: its kinds do not migrate"),
    ("drill mine:Alone --scenario migration", 2, "other processes cannot use its outside world"),
    ("drill --random-seed 3", 2, "--random-seed requires --scenario migration"),
    ("dev mine:extension --leader-elect", 2, "Did you mean one of: '--leader-election'"),
    ("dev mine:extension --context seed", 2, "--context requires --kubeconfig"),
    ("shoot create local --type x", 2, "--type requires --extension"),
    ("shoot create Local", 2, "expected lower-case letters, digits and inner hyphens"),
    ("shoot delete local --timeout=-1", 2, "-1.0 is not in the range x>=0"),
    ("shoot create local --file missing.yaml", 2, "missing.yaml"),
    ("explain ns --type x", 2, "--type requires --extension"),
    ("dance", 2, "No such command 'dance'"),
]
PORTS = [
    (
        "run mine:extension --metrics-bind-address=8080",
        2,
        "set HOST:PORT, :PORT for all interfaces",
    ),
    ("dev mine:extension --metrics-bind-address=8080", 2, "set HOST:PORT, :PORT for all"),
    ("run mine:extension --health-bind-address=localhost", 2, "set HOST:PORT, :PORT for all"),
    ("run mine:extension --metrics-bind-address=:70000", 2, "or 0 to disable"),
]
KUBECONFIGS = [
    (
        "explain ns --kubeconfig missing",
        1,
        "missing does not exist; set --kubeconfig or KUBECONFIG",
    ),
    ("drain mine:extension --kubeconfig notyaml", 3, "cannot load kubeconfig notyaml: mapping val"),
    ("orphans list --kubeconfig list.yaml", 1, "cannot load kubeconfig list.yaml"),
    ("explain ns --kubeconfig .", 2, "is a directory"),
    ("drill --context seed", 2, "set --kubeconfig and --context together"),
    ("drill --contexts notyaml", 2, "or --kubeconfig and --contexts"),
    ("drill --all --kubeconfig notyaml", 2, "or --kubeconfig and --contexts"),
    ("drill --contexts missing --kubeconfig notyaml", 2, "'missing' does not exist"),
    ("drill --resume", 2, "--resume requires --all or --contexts"),
    ("dev mine:extension FREE --kubeconfig missing", 1, "missing does not exist; set --kubeconfig"),
    ("shoot create local", 1, "no `actuator dev` runs in this directory; start it, or set --kub"),
    ("shoot list", 1, "no `actuator dev` runs in this directory; start it, or set --kubeconfig"),
    ("shoot list --kubeconfig notyaml", 1, "cannot load kubeconfig notyaml: mapping val"),
    (
        "explain ns",
        1,
        "/.kube/config does not exist; set --kubeconfig or KUBECONFIG, or start `act",
    ),
    ("env kubeconfig --name missing", 1, "'missing' is not running; run `actuator env up`"),
]
WEBHOOKS = [
    *(
        (
            command,
            1,
            "webhook zone: it has no selector, so every object of its kinds depends on it;",
        )
        for command in ("chart mine:webhook --output out", "run mine:webhook", "rbac mine:webhook")
    ),
    ("run mine:two_webhooks", 1, "webhook 'zone' already exists; set another name=…"),
    ("rbac mine:slow_webhook", 1, "webhook zone: timeout_seconds=30; set 1 to 10 seconds"),
    ("run mine:admission", 1, "Bastion: no object of the garden has a configuration of this kind"),
    ("run mine:pool_admission", 1, "Worker: a field of pools cannot be immutable; remove it"),
    ("run mine:python_admission", 1, "(?i differs between Python and RE2, which the API server"),
    *(
        (
            f"run mine:extension --webhook-config-mode=url --webhook-config-url={host}",
            2,
            "set HOST or HOST:PORT, without a scheme or a path",
        )
        for host in ("https://localhost:9443", "https://localhost", ":9443", "a/b", "2001:db8::1")
    ),
    (
        "chart mine:extension --admission --output out",
        1,
        "only adds admissions and webhooks; use Man",
    ),
    (
        "crds --rehearsal extensions.aws.rehearsal:AwsRehearsal --only x",
        2,
        "no CRD x; set --only to",
    ),
    *((name, 2, "Missing argument 'EXTENSION'") for name in ("drain", "image", "run", "rbac")),
    ("chart --output x", 2, "Missing argument 'EXTENSION'"),
    ("drill --scenario webhooks-down --path delete", 2, "has no scenario 'webhooks-down'; set one"),
]
CRDS = [
    ("crds mine", 1, "expected MODULE:OBJECT, for example"),
    ("crds mine:Network", 1, "expected a subclass of Object with a KIND"),
    ("crds mine:number", 1, "expected a subclass of Object with a KIND"),
    ("explain ns --kind mine:Network", 1, "expected a subclass of Object with a KIND"),
]
PROJECTS = [
    ("new", 2, "expected NAME, for example: actuator new acme"),
    ("new Acme", 2, "invalid name 'Acme': expected at most 30 lower-case letters, digits and hyp"),
    ("new Acme", 2, "and no reserved name; try 'acme'"),
    ("new import", 2, "invalid name 'import'"),
    ("new chart", 2, "invalid name 'chart'"),
    ("new ../acme", 2, "invalid name '../acme'"),
    ("new json", 2, "invalid name 'json'"),
    ("new json", 2, "try 'provider-json'"),
    ("new my_Cloud--2", 2, "try 'my-cloud-2'"),
    ("new 9lives", 2, "try 'provider-9lives'"),
    ("new ___", 2, "try 'provider'"),
    ("new provider-acme-for-the-whole-company", 2, "try 'provider-acme-for-the-whole-co'"),
    ("new generic", 1, "generic is an installed package; choose another name"),
    ("new acme --kind Infrastucture", 2, "kind 'Infrastucture'; did you mean 'Infrastructure'?"),
    ("new acme --kind Peering", 2, "no kind 'Peering'; define it with --own-kind"),
    ("new acme --own-kind peering", 2, "invalid kind 'peering': expected a name such as Peering"),
    ("new acme --own-kind Cluster", 2, "invalid kind 'Cluster'"),
    ("new acme --own-kind None", 2, "invalid kind 'None'"),
    ("new acme --kind Worker --kind Worker", 2, "two modules would be called 'worker'; rename a"),
    ("new acme --own-kind CLOUD", 2, "two modules would be called 'cloud'; rename a kind"),
    ("new acme --own-kind Webhooks --webhooks", 2, "two modules would be called 'webhooks'; re"),
    ("new --kind Worker --update", 2, "--update reads the name and the kinds from the project"),
    ("new acme --own-kind Peering --admission", 2, "no kind has a configuration in Shoots; add "),
    ("new acme --kind BackupEntry --admission", 2, "no kind has a configuration in Shoots; add "),
    ("new acme --own-kind Webhooks", 2, "two modules would be called 'webhooks'; rename a kind"),
    ("new acme --own-kind Worker", 2, "Worker is a kind of Gardener; set it with --kind"),
    ("new acme --output .", 1, "is not empty; set another folder with --output"),
    ("new acme --update", 2, "--update reads the name and the kinds from the project"),
    ("new --update", 1, "no readable .actuator-new.yaml: run --update in a project of actuator n"),
]


@pytest.mark.parametrize(
    ("line", "status", "words"),
    [
        pytest.param(*row, id=f"{category}-{row[0]}")
        for category, rows in {
            "module": MODULES,
            "function": FUNCTIONS,
            "flag": FLAGS,
            "port": PORTS,
            "kubeconfig": KUBECONFIGS,
            "webhook": WEBHOOKS,
            "crd": CRDS,
            "project": PROJECTS,
        }.items()
        for row in rows
    ],
)
def test_a_wrong_input_gets_one_sentence_and_its_exit_status(command, line, status, words):
    arguments = line.replace("RELATIONS", RELATIONS).replace("FREE", FREE).split(" ")
    done = command(*arguments, status=status)
    error = done.stderr.splitlines()[-1]
    assert done.stdout == ""
    assert error.startswith("Error: ")
    assert words in error
    assert "Traceback" not in done.stderr
