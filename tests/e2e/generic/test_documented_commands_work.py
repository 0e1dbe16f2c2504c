"""Each command of README, docs, runbooks and samples is executed, here or by a test named here."""

import re
import shlex
from pathlib import Path

import attrs
import click
import pytest
import yaml

from actuator import Actuator, ExternalResource, ProviderConfig, Resource
from actuator.interface import resource_of
from actuator.v1alpha1 import KINDS, Cluster, Infrastructure
from extensions.relations.kinds import Entry, Mirror, Team
from generic.kube.client import connect
from generic.manager.options import Options
from generic.reconciler.orphans import RECORD_KINDS, Orphan
from generic.testing.envtest import Environment
from generic.testing.seed import install
from generic.tools.cli.load import load, load_manager
from generic.tools.cli.main import cli
from tests.support.cluster.harness import FINALIZER, eventually
from tests.support.objects.builders import cluster, infrastructure
from tests.support.objects.present import present
from tests.support.pages.documented import ROOT, commands, shell_lines
from tests.support.pages.kubectl import Kubectl
from tests.support.suite.isolation import isolated

NAMESPACE = "shoot--foobar--crazy-botany"
NAME = "documented"
LEASES = Resource("coordination.k8s.io/v1", "leases")

PLACEHOLDERS = {
    "MODULE:OBJECT": f"{__name__}:extension",
    "EXTENSION": f"{__name__}:extension",
    "MODULE:CLASS": "extensions.relations.kinds:Team",
    "MODULE:REHEARSAL": "tests.support.drills.moving_rehearsal:OneNetwork",
    "NAMESPACE": NAMESPACE,
    "KIND": "infrastructure",
    "NAME": NAME,
    "DIR": "out",
    "REASON": "removed",
    "URL": "https://runbooks.example.org/actuator",
}
"""A placeholder that is not here fails the test, so a new one gets its value."""
PLACEHOLDER = re.compile(r"\b[A-Z]{2,}(?::[A-Z]+)?\b")

TESTED_PAGES = {
    "docs/evidence.md": "api/record/test_record_commands.py",
    "docs/credentials.md": "unit/generic/test_guide_pages.py",
    "docs/development-shoot.md": "e2e/generic/test_dev.py",
    "docs/in-shoot.md": "e2e/generic/test_provider_pages.py",
    "docs/landscape.md": "landscape/test_landscape_tutorial.py",
    "docs/own-rules.md": "unit/generic/test_guide_pages.py",
    "docs/questions.md": "e2e/observe/test_questions.py",
    "docs/realistic-provider.md": "e2e/generic/test_provider_pages.py",
    "docs/testing.md": "e2e/generic/test_testing_kit.py",
    "docs/tutorial.md": "e2e/generic/test_tutorial.py",
}
"""Pages whose commands the test executes, in their order."""

ABBREVIATED = {
    "actuator drain --release": "actuator drain EXTENSION --release --lease NAMESPACE/NAME",
    "actuator drain EXTENSION --release": (
        "actuator drain EXTENSION --release --lease NAMESPACE/NAME"
    ),
    "actuator orphans close": "actuator orphans close NAME --note REASON",
}
"""Sentences about a command, and the complete command that a page shows too."""

STUCK = r"actuator drain (MODULE:OBJECT|EXTENSION)"
"""Exits with 1, because there is an object whose deletion is stuck."""

DRILL = "e2e/generic/test_drill.py::"
SAME_FORM = "here, for another rehearsal: test_the_rehearsals_of_samples_exist"
ELSEWHERE = {
    r"actuator drill": DRILL + "test_the_drill_passes_and_its_report_proves_it",
    r"actuator drill --scenario take-over MODULE:REHEARSAL": DRILL
    + "test_a_take_over_is_rehearsed_and_every_rule_holds",
    r"actuator drill --scenario webhooks-down MODULE:REHEARSAL": DRILL
    + "test_no_failing_webhook_blocks_a_force_deletion",
    r"actuator drill --scenario migration": (
        "e2e/generic/test_drill_migration.py::test_shoots_move_while_managers_are_killed"
    ),
    r"actuator drill --kubeconfig FILE --context NAME MODULE:REHEARSAL": DRILL
    + "test_the_remedy_for_a_missing_crd_helps_and_the_drill_serves_its_own_shoots_only",
    r"actuator drill (--kubeconfig .*)?--contexts( .*)?": (
        "e2e/generic/test_drills_in_seeds.py"
        "::test_seeds_are_drilled_after_an_interruption_and_an_altered_index_is_found"
    ),
    r"actuator crds --rehearsal MODULE:CLASS": DRILL
    + "test_the_remedy_for_a_missing_crd_helps_and_the_drill_serves_its_own_shoots_only",
    r"actuator drill --all MODULE:REHEARSAL": (
        "e2e/generic/test_drill_all.py::test_each_round_holds_and_has_a_report"
    ),
    r"actuator drill --path NAME( MODULE:REHEARSAL)?": (
        "e2e/generic/test_drill_paths.py::test_shoots_are_retried_and_the_report_names_the_path"
    ),
    r"actuator drill extensions\.(aws|local)\..*everything-fails": (
        "e2e/generic/test_drill_everything.py"
        "::test_shoots_with_all_kinds_go_and_the_record_and_the_outside_agree"
    ),
    r"actuator drill .*everything-fails .*:CertificateRehearsal": (
        "api/certificate/test_certificate.py"
        "::test_force_deletions_are_rehearsed_and_every_rule_holds"
    ),
    r"actuator drill .*everything-fails .*:(Azure|NetworkFilter)Rehearsal": SAME_FORM,
    r"actuator drill --scenario dependency-left": SAME_FORM,
    r"actuator drill extensions\.NAME\.rehearsal:REHEARSAL": SAME_FORM,
    r"actuator drill .*:DatabaseRehearsal": (
        "e2e/externaldatabase/test_database_rehearsal.py::test_a_drill_leaves_databases_and_reports_them"
    ),
    r"actuator drill .*:HelmReleaseProxyRehearsal": (
        "e2e/helmreleaseproxy/test_helm_rehearsal.py"
        "::test_a_drill_in_which_the_targets_are_deleted_first_leaves_nothing"
    ),
    r"actuator explore(.* --kind Infrastructure)?": (
        "e2e/generic/test_explorer.py"
        "::test_a_network_on_aws_survives_sampled_kills_and_each_request_is_a_point"
    ),
    r"actuator explore \[?MODULE:REHEARSAL\]?…?": (
        "e2e/generic/test_explorer.py::test_the_local_network_survives_every_kill"
    ),
    r"actuator run( .*:extension| MODULE:OBJECT)?": (
        "e2e/generic/test_chart_under_gardener.py"
        "::test_a_chart_without_hooks_and_crds_gets_ready_and_serves_the_lives_of_shoots"
    ),
    r"actuator dev( .*)?": "e2e/generic/test_dev.py::test_every_command_of_the_page_works",
    r"actuator new --update": (
        "unit/generic/test_new.py::test_two_updates_keep_each_line_of_the_author"
    ),
    r"actuator new --update --abort": (
        "unit/generic/test_new.py::test_an_update_with_conflicts_is_aborted_and_other_work_stays"
    ),
    r"actuator new acme --in-shoot": (
        "e2e/generic/test_new_projects.py::test_the_drill_of_each_variant_is_green_untouched"
    ),
    r"actuator new (--update --admission|--add-kind .*)": (
        "unit/generic/test_new.py"
        "::test_kinds_are_added_as_if_the_project_had_them_from_the_beginning"
    ),
    r"actuator new (NAME|acme) --kind .*": (
        "e2e/generic/test_new_projects.py::test_every_command_of_the_page_works"
    ),
    r"actuator new( acme)?": (
        "e2e/generic/test_new_projects.py::test_every_command_of_the_page_works"
    ),
    r"actuator explain NAMESPACE/shoot/NAME( --garden-kubeconfig .*)?": (
        "api/generic/test_explain_shoot.py"
        "::test_a_shoot_whose_deletion_is_stuck_is_explained_across_garden_and_seed"
    ),
    r"actuator shoot create NAME": "e2e/generic/test_dev.py::test_every_command_of_the_page_works",
    r"actuator landscape (up|shoot|status|down)": (
        "landscape/test_landscape_tutorial.py::test_each_command_of_the_page_works_as_printed"
    ),
    r"actuator drill --landscape": (
        "landscape/test_landscape_drill.py::test_a_drill_with_a_real_gardener_holds"
    ),
    r"actuator record drills .*": (
        "api/record/test_record_list.py"
        "::test_a_file_that_is_no_report_is_named_and_others_are_listed"
    ),
    r"actuator record summary": (
        "api/record/test_record_commands.py::test_each_command_of_the_page_works_as_printed"
    ),
    r"actuator env (up|down|kubeconfig)": (
        "e2e/envtest/test_env_command.py::test_up_kubeconfig_down"
    ),
}
"""The test that executes a command which takes too long here, starts servers or does not end."""

NO_BUILDER = "not executed: no builder of images here; CI runs it, and test_image.py its steps"
GARDEN = "not executed: no garden here; unit/landscape/test_installation_guide.py checks the files"
HELM = (
    "e2e/generic/test_chart_with_helm.py::"
    "test_the_first_release_owns_the_definition_and_updates_it_and_no_other_does"
)
PROGRAMS = {
    r"pip install( -e '\.\[drill\]')?": "the first command of every target of Makefile",
    r"pip install .*gardener-actuator.*": (
        "api/generic/test_installed.py"
        "::test_the_wheel_runs_with_its_requirements_and_each_extra_adds_its_commands"
    ),
    r"pip install -e '\.\[dev\]'": "not executed: it asks a package index for pytest, ruff, mypy",
    r"export DATABASES_.*": "e2e/generic/test_chart_under_gardener.py",
    r"export KUBECONFIG=\$\(actuator env kubeconfig\)": (
        "e2e/envtest/test_env_command.py::test_up_kubeconfig_down"
    ),
    r"docker build .*": NO_BUILDER,
    r"docker push .*": NO_BUILDER,
    r"docker buildx imagetools inspect .*": NO_BUILDER,
    r"uv pip compile .*": "not executed: it asks a package index; hack/lock.py runs the same",
    r"helm uninstall( --no-hooks)?": HELM,
    r"make .*": "Makefile",
    r"python -m hack\.bench\.hanging": "Makefile",
    r"python -m hack\.public_api": "unit/test_public_api.py::test_the_public_api_is_as_pinned",
    r"\.venv/bin/python -m hack\.bench\.run .*": "Makefile",
    r"python -m pytest -p generic\.testing\.envtest\.pytest_plugin": "every test: pyproject.toml",
    r"python tests/support/programs/upgrade\.py .*": (
        "api/generic/test_upgrade.py::test_objects_of_an_earlier_version_come_to_their_end"
    ),
    r"go run .*actionlint.*": "not executed: it asks a module proxy; test_workflows.py checks",
    r"kubectl (get|describe)": "the name of a command",
    r"kubectl config get-contexts --output name": "not executed: it asks no server",
    r"kubectl exec .*": "not executed: no pods; unit/generic/test_operator_pages.py runs sh -c",
    r"kubectl apply -f (DIR/controllerregistration|cloudprofile|shoot)\.yaml": GARDEN,
    r"kubectl get controllerinstallations": GARDEN,
    r"kubectl actuator( .*)?": ("unit/generic/test_kubectl_plugin.py::test_usage_names_the_plugin"),
    r"kubectl label namespace NAMESPACE pod-security\.kubernetes\.io/enforce=restricted": (
        "api/generic/test_chart.py::test_the_pods_are_admitted_in_a_namespace_for_restricted_ones"
    ),
    r"kubectl delete --force": (
        "api/generic/test_finalizer_facts.py"
        "::test_a_forced_deletion_of_kubectl_waits_for_finalizers_too"
    ),
}
"""Commands of other programs: the test that executes them, or why none does."""

SHOOT = """
apiVersion: core.gardener.cloud/v1beta1
kind: Shoot
metadata: {name: mine, namespace: garden-dev}
spec:
  provider:
    type: documented
    infrastructureConfig: {apiVersion: example.org/v1, kind: DocumentedConfig, size: 2}
  extensions:
  - type: certificate-service
    providerConfig:
      apiVersion: certificate.extensions.gardener.cloud/v1alpha1
      kind: CertificateConfig
---
apiVersion: core.gardener.cloud/v1beta1
kind: Shoot
metadata: {name: other, namespace: garden-dev}
spec:
  provider:
    type: aws
    infrastructureConfig:
      apiVersion: aws.provider.extensions.gardener.cloud/v1alpha1
      kind: InfrastructureConfig
      networks:
        vpc: {cidr: 10.250.0.0/16}
        zones:
        - name: eu-west-1a
          workers: 10.250.0.0/19
          public: 10.250.32.0/20
          internal: 10.250.48.0/20
"""


@attrs.frozen(kw_only=True)
class DocumentedConfig(ProviderConfig):
    """The configuration of the extension in the place of MODULE:OBJECT."""

    api_version: str = "example.org/v1"
    kind: str = "DocumentedConfig"
    size: int = 1


class Documented(Actuator[Infrastructure, DocumentedConfig]):
    """Says that its external resource is deleted."""

    def reconcile(self, ctx, obj, cluster): ...
    def delete(self, ctx, obj, cluster): ...

    def external_resources(self, obj):
        return [ExternalResource(type="vpc", id="1")]

    def still_exists(self, resource):
        return False


def extension(manager):
    manager.add(Documented(), type="documented")


def shown():
    """The commands that this module answers for, each once."""
    found = {}
    for page, text in commands():
        if page not in TESTED_PAGES:
            first, *others = text.split(" / ")  # of a group: orphans list / verify / close
            group = first.rpartition(" ")[0]
            found.update(dict.fromkeys([first, *(f"{group} {other}" for other in others)]))
    return list(found)


def other_lines():
    """The lines of other programs, and their input."""
    found = {line: given for page, line, given in shell_lines() if page not in TESTED_PAGES}
    return list(found.items())


def filled(text):
    """The command with values in the place of placeholders; `[…]…` is used once."""
    return PLACEHOLDER.sub(lambda found: PLACEHOLDERS[found[0]], re.sub(r"[\[\]…]", "", text))


def matching(table, text):
    """The value of the row whose pattern is the command, or None."""
    return next((value for row, value in table.items() if re.fullmatch(row, text)), None)


def is_only_named(text):
    """Whether it is the name of a group, or of a command that requires arguments."""
    command: click.Command = cli
    words = text.split()[1:]
    while isinstance(command, click.Group) and words:
        command = present(command.get_command(click.Context(command), words.pop(0)))
    required = any(param.required for param in command.params)
    return not words and (isinstance(command, click.Group) or required)


def arguments_of(text):
    """The arguments to execute a command with, in less time where it has options for that."""
    text = text.partition(" > ")[0]
    words = shlex.split(filled(text))[1:]
    if is_only_named(text):
        words += ["--help"]
    elif words[0] == "drill":
        words += ["--shoots", "1"]
    elif words[0] == "drain" and "--release" not in words:
        words += ["--timeout", "0"]
    return words


def problem_of(command, text):
    """Execute a command; return the problem, or None."""
    try:
        done = command(*arguments_of(text), status=1 if re.fullmatch(STUCK, text) else 0)
    except AssertionError as error:  # another exit status
        return str(error)
    if "Traceback" in done.stdout + done.stderr:
        return f"{done.stdout[-1000:]}{done.stderr[-1000:]}"
    return None if done.stdout or done.stderr else "no output"


EXECUTED = [text for text in shown() if text not in ABBREVIATED and not matching(ELSEWHERE, text)]
"""Not those that another test executes."""
DRILLS = [text for text in EXECUTED if text.startswith("actuator drill")]


def test_each_table_has_only_rows_that_are_needed():
    every = shown()
    lines = [line for line, _ in other_lines()]
    for table, texts in ((ELSEWHERE, every), (PROGRAMS, lines), (ABBREVIATED, every)):
        for row in table:
            assert any(text == row or re.fullmatch(row, text) for text in texts), row
    assert set(ABBREVIATED.values()) <= set(every)
    for short, full in ABBREVIATED.items():
        assert set(short.split()) <= set(full.split())
    used = {found for text in EXECUTED for found in PLACEHOLDER.findall(text)}
    assert used == set(PLACEHOLDERS)
    assert len(EXECUTED) > 40


def test_a_command_with_an_unknown_placeholder_fails():
    with pytest.raises(KeyError, match="TEAPOT"):
        filled("actuator explain TEAPOT/NAME")


@pytest.mark.parametrize(("page", "file"), TESTED_PAGES.items())
def test_a_page_is_read_by_its_test(page, file):
    assert f'"{Path(page).name}"' in (ROOT / "tests" / file).read_text()


@pytest.mark.parametrize("named", sorted({*ELSEWHERE.values(), *PROGRAMS.values()}))
def test_each_named_test_exists(named):
    file, _, test = named.partition("::")
    if file.endswith(".py"):
        assert re.search(rf"def {test or 'test_.*'}\(", (ROOT / "tests" / file).read_text())


@pytest.mark.parametrize("text", [text for text in shown() if matching(ELSEWHERE, text)])
def test_the_named_test_has_the_options_of_the_command(text):
    named = matching(ELSEWHERE, text)
    if named == SAME_FORM:
        return
    code = (ROOT / "tests" / named.partition("::")[0]).read_text()
    program, *words = re.sub(r"[\[\]…]", "", PLACEHOLDER.sub("", text)).split()
    assert program in ("actuator", "kubectl")
    assert [word for word in words if ":" not in word and word not in code] == []


def test_the_targets_of_make_exist():
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    used = [line.split()[1] for line, _ in other_lines() if line.startswith("make ")]
    assert used
    assert set(used) <= set(targets)


def test_the_rehearsals_of_samples_exist():
    """With the scenarios of their commands; a command without a rehearsal has that of AWS."""
    drills = [text for text in shown() if text.startswith(("actuator drill", "actuator explore"))]
    assert len(drills) > 5
    for text in drills:
        words = text.split()
        named = [word for word in words if re.match(r"extensions\.[a-z]", word)]
        rehearsal = load(*(named or ["extensions.aws.rehearsal:AwsRehearsal"]))()
        if "--scenario" in words and "MODULE:REHEARSAL" not in words:
            scenario = words[words.index("--scenario") + 1]
            assert scenario in {*rehearsal.scenarios, "migration"}


@pytest.fixture
def world(borrowed, tmp_path, monkeypatch):
    """A seed with an object whose deletion is stuck, an Orphan and a Lease, as an administrator."""
    with Environment() as environment:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("KUBECONFIG", str(environment.kubeconfig))
        monkeypatch.setenv("RELATIONS_REGISTER", str(tmp_path / "register.sqlite"))
        monkeypatch.setenv("LOCAL_OUTSIDE", str(tmp_path / "outside"))
        Path("shoot.yaml").write_text(SHOOT)
        install(environment, [*KINDS, Cluster, *RECORD_KINDS, Team, Mirror, Entry])
        client = connect(environment.kubeconfig)
        kubectl = Kubectl(client)
        for item in (NAMESPACE, "shop", "monitoring"):
            kubectl.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": item}})
        put_up(client, kubectl)
        yield client, kubectl
        kubectl.undo()


def put_up(client, kubectl):
    """Create the objects of the world."""
    kubectl.apply(cluster(NAMESPACE))
    obj = infrastructure(NAMESPACE, "documented", NAME, finalizers=[FINALIZER])
    kubectl.apply(obj)
    client.delete(resource_of(Infrastructure.KIND), NAME, NAMESPACE)
    metadata = {"name": NAME, "namespace": NAMESPACE}
    kubectl.apply({"apiVersion": LEASES.api_version, "kind": "Lease", "metadata": metadata})
    kubectl.apply(orphan(NAME, Infrastructure.KIND, "documented"))
    kubectl.apply(orphan("entry", Entry.KIND, "relations"))


def orphan(name, kind, type):
    """An open Orphan about a resource that is deleted.

    It belongs to another shoot than the command for AWS names, which would ask AWS about it.
    """
    released = {"apiVersion": kind.api_version, "kind": kind.name, "namespace": NAMESPACE}
    return {
        "apiVersion": Orphan.KIND.api_version,
        "kind": Orphan.KIND.name,
        "metadata": {"name": name},
        "spec": {
            "resourceType": "any",
            "id": "1",
            "object": {**released, "name": NAME, "uid": "1", "type": type},
            "shoot": "shoot--foobar--other",
            "reason": "ForceDeleted",
            "recordedAt": "2026-11-22T10:00:00Z",
        },
    }


def once(texts):
    """The commands without those that are equal when they are filled, in a fixed order."""
    return list({filled(text): text for text in reversed(EXECUTED) if text in texts}.values())


def changes(text):
    """The order: a command that changes an object runs after those that read it."""
    return [word in text for word in ("--release", " close")]


def test_each_command_works_on_a_seed(world, command):
    texts = sorted(once(set(EXECUTED) - set(DRILLS)), key=changes)
    failed = [f"{text}\n{problem}" for text in texts if (problem := problem_of(command, text))]
    assert not failed, "\n\n".join(failed)


@pytest.mark.long
@pytest.mark.timeout(1800)  # --all holds two dozen drills, one after another
@pytest.mark.parametrize("text", once(DRILLS))
def test_each_drill_works(text, command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert problem_of(command, text) is None


@pytest.fixture
def relations(world):
    """The manager of the sample whose page shows the effects of its objects."""
    options = Options(metrics_bind_address="0", health_bind_address="0")
    with isolated():
        manager = load_manager("extensions.relations:extension", (), options)
    manager.start()
    yield
    manager.stop()


def documented_manifests():
    """The complete manifests in the pages of samples."""
    for page in sorted(ROOT.glob("extensions/*/README.md")):
        for text in re.findall(r"^```yaml\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
            found = yaml.safe_load(text)
            if "apiVersion" in found:
                yield found


def output_of(command, text):
    """The output of a command in a pipe; a loop executes it once for each of its words."""
    if loop := re.fullmatch(r"for (\w+) in (.*); do (.*); done", text):
        variable, words, body = loop.groups()
        each = (body.replace(f"${variable}", word) for word in words.split())
        return "---\n".join(output_of(command, item) for item in each)
    return command(*arguments_of(text)).stdout


def execute(line, given, command, kubectl):
    """Execute a line with a pipe, or of another program."""
    text, _, target = line.partition(" | ")
    text, _, file = text.partition(" > ")
    words = shlex.split(filled(target or line))
    if file:
        assert list(yaml.safe_load_all(output_of(command, text)))
    elif target:
        assert words[0] == "kubectl"
        kubectl(words[1:], output_of(command, text))
    elif words[0] == "kubectl":
        eventually(lambda: kubectl(words[1:], given) is None, seconds=10)
    else:
        assert words[:2] == ["python", "-c"], f"{line}: add the line to PROGRAMS"
        exec(words[2])


def test_each_line_with_a_pipe_or_kubectl_works(world, relations, command):
    """First the lines that install something."""
    _, kubectl = world
    lines = [line for line in other_lines() if matching(PROGRAMS, line[0]) is None]
    piped = [line for line in lines if " | " in line[0] or " > " in line[0]]
    for line, given in piped:
        execute(line, given, command, kubectl)
    for manifest in documented_manifests():
        kubectl.apply(manifest)
    for line, given in lines:
        if (line, given) not in piped:
            execute(line, given, command, kubectl)
    assert len(lines) > 20
