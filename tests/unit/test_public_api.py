"""Names that authors import from `actuator` and `generic` are a promise."""

import inspect
import subprocess
import sys
from importlib import import_module

import pytest

import actuator
import generic

PROMISED = [
    "Actuator",
    "ActuatorError",
    "ApiError",
    "Client",
    "Clock",
    "Cluster",
    "Condition",
    "ConditionedStatus",
    "ConfigurationError",
    "Context",
    "DefaultSpec",
    "DefaultStatus",
    "ErrorCode",
    "ExternalResource",
    "FieldProblem",
    "Kind",
    "LastError",
    "LastOperation",
    "Object",
    "ObjectMeta",
    "Permission",
    "ProviderConfig",
    "Provisioned",
    "ReadyReasons",
    "RequeueAfter",
    "Resource",
    "Result",
    "SeedObjects",
    "ShootUnreachable",
]


def test_the_promised_names_are_all_there_and_no_others():
    assert actuator.__all__ == PROMISED


def test_they_are_sorted():
    assert sorted(actuator.__all__) == actuator.__all__


@pytest.mark.parametrize("name", PROMISED)
def test_each_says_what_it_is(name):
    """A docstring of its own: not inherited, not the signature that a decorator writes."""
    promised = vars(getattr(actuator, name))
    written = inspect.cleandoc(promised.get("__doc__") or "")
    assert len(written.split()) >= 3, f"{name} has no docstring"


@pytest.mark.parametrize("name", PROMISED)
def test_each_lives_in_the_contract(name):
    assert getattr(actuator, name).__module__.startswith("actuator.")


COMPOSED = [
    "Manager",
    "Options",
    "Rehearsal",
    "RehearsedShoot",
    "Watch",
    "finalizer",
    "owns",
    "watches",
]
LIBRARY = {
    "backupentry": "CREATED_BY GenericBackupEntry folder_of technical_id_and_uid",
    "bastion": "Range ingress_problems ingress_ranges",
    "charts": "Chart find_helm helm_environment render said_of_chart",
    "controlplane": "GenericControlPlane Manifests Part Situation checksum_of",
    "healthchecks": "Check HealthChecks HealthContext HealthReconciler HealthResult HealthStatus "
    "daemon_set deployment machines managed_resource stateful_set wants_check",
    "imagevector": "ImageSource ImageVector is_in_range load_images",
    "managedresources": "GARBAGE_COLLECTABLE GO_LIBRARY MANAGED_RESOURCES NO_CLEANUP ORIGIN "
    "PERMISSIONS SEED_CLASS SEED_FINALIZER SHOOT_FINALIZER GroupKind ManagedObject ManagedResource "
    "ManagedResourceSpec ManagedResourceStatus SecretName check_deleted delete "
    "deploy_for_seed deploy_for_shoot is_deployed is_healthy set_keep_objects update "
    "wait_until_healthy",
    "foreach": "for_each",
    "manifests": "MAX_LABEL MAX_NAME manifest manifest_of shortened",
    "references": "GARBAGE_COLLECTABLE PREFIX digest make_unique references_to with_references",
    "secrets": "PERMISSIONS Authority BasicAuth Certificate Config Issued Rotation RsaKey "
    "SecretsManager ShootAccess StaticTokens TokenUser Usage generic_kubeconfig_name rotation_of",
    "seedobjects": "check_deleted delete ensure permission",
    "worker": "AMD64 GenericWorker MachineGroup ProviderImage autoscaler_annotations hash_of "
    "in_zone machine_images pool_field pool_hash share_of_zone technical_id_of use_images "
    "user_data",
    "workload_identity": "WorkloadIdentity workload_identity",
}
TESTING = {
    "assertions": "assert_rehearsal",
    "fixtures": "Seed ShootSettings ShootUnderTest",
    "recording": "RecordingClient RecordingContext",
}


@pytest.mark.parametrize("module", TESTING)
def test_the_names_for_tests_of_authors_are_all_there_and_no_others(module):
    found = import_module(f"generic.testing.{module}")
    assert found.__all__ == TESTING[module].split()
    assert all(hasattr(found, name) for name in found.__all__)


def test_the_names_of_generic_are_all_there_and_no_others():
    assert generic.__all__ == COMPOSED


@pytest.mark.parametrize("name", COMPOSED)
def test_each_name_of_generic_is_imported_on_first_use(name):
    assert inspect.getdoc(getattr(generic, name))


@pytest.mark.parametrize("module", LIBRARY)
def test_the_names_of_the_library_are_all_there_and_no_others(module):
    found = import_module(f"generic.library.{module}")
    assert found.__all__ == LIBRARY[module].split()
    assert all(hasattr(found, name) for name in found.__all__)


LOADED = """
import sys
before = set(sys.modules)
from generic import Manager
print(*(set(sys.modules) - before))
"""


def test_importing_a_manager_loads_what_every_manager_needs_and_no_more():
    done = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, check=True
    )
    loaded = done.stdout.split()
    assert "generic.kube.informer" in loaded
    on_demand = ("generic.testing", "generic.tools", "generic.library", "actuator.v1alpha1")
    on_demand += ("click", "kubernetes", "yaml")
    assert [name for name in loaded if name.startswith(on_demand)] == []
    assert len(loaded) <= 350
