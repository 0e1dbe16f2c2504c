"""Repositories: charts pulled by helm from OCI registries and HTTP repositories.

Servers are always verified. Users choose them, so until a server has authenticated itself all
errors have one text, as for Targets, and redirects to plain HTTP are not followed. Credentials are
rebuilt from a Secret, because Docker's format can also name programs. Which chart a spec may name
is checked before (`charts`).
"""

import base64
import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from actuator import ActuatorError, Base64, ConfigurationError, Context, ErrorCode, NotFound
from extensions.helmreleaseproxy.helm import Helm, Unreachable
from extensions.helmreleaseproxy.kinds import ChartSpec, HelmReleaseProxy

_FAILURES = {
    r"version \"[^\"\n]*\" not found in |(?m:: not found$)|: 404 ": Unreachable(
        "ChartNotFound",
        "there is no such version; correct spec.version, chartName or repoURL",
        ErrorCode.ERR_CONFIGURATION_PROBLEM,
    ),
    r"(code|:) 40[13]\b|credential not found": Unreachable(
        "RegistryRefuses",
        "the registry refuses; set spec.credentials to a Secret that it accepts",
        ErrorCode.ERR_INFRA_UNAUTHENTICATED,
    ),
    "": Unreachable(
        "RegistryNoAnswer",
        "the registry does not answer, is not trusted, or sends too much; check spec.repoURL",
        ErrorCode.ERR_INFRA_DEPENDENCIES,
    ),
}
"""Patterns of helm's output; the first that matches counts."""


@contextmanager
def chart_of(helm: Helm, charts: Path, ctx: Context, obj: HelmReleaseProxy) -> Iterator[Path]:
    """Return the path of the object's chart; a pulled one is deleted afterwards.

    Raises ActuatorError if it cannot be pulled, ConfigurationError for wrong credentials, ApiError.
    """
    spec = obj.spec
    if not spec.repo_url:
        yield charts.absolute() / spec.chart
        return
    source = [spec.chart_name, "--repo", spec.repo_url]
    if spec.repo_url.startswith("oci:"):
        source = [f"{spec.repo_url.rstrip('/')}/{spec.chart_name}"]
    with tempfile.TemporaryDirectory(prefix="actuator-chart-") as folder:
        arguments = [*source, "--version", spec.version, "--destination", folder]
        answer = helm.run(ctx, _private(ctx, obj), ["pull", *arguments])
        pulled = list(Path(folder).glob("*.tgz"))
        if not answer.ok or len(pulled) != 1:
            raise _error(ctx, spec, answer.errors)
        yield pulled[0]


def _private(ctx: Context, obj: HelmReleaseProxy) -> Mapping[str, bytes]:
    """Return the private files of helm: the credentials for the registry, if there are any."""
    given = obj.spec.credentials
    host = urlsplit(obj.spec.repo_url).netloc
    if given is None:
        return {}
    try:
        secret = ctx.secret(given.secret.name, obj.metadata.namespace)
        config = registry_config(Base64(secret["data"][given.key]).decode_bytes(), host)
    except NotFound:
        why = "it does not exist; create it"
    except (KeyError, TypeError, ValueError, RecursionError):
        why = f"set {given.key} to a config.json of Docker with `auth` for {host} in `auths`"
    else:
        return {"HELM_REGISTRY_CONFIG": config}
    raise ConfigurationError(f"spec.credentials: Secret {given.secret.name}: {why}")


def registry_config(content: bytes, host: str) -> bytes:
    """Return Docker's config.json with the one entry for `host`, and without programs.

    Raises KeyError, TypeError, ValueError or RecursionError if it has none.
    """
    auth = json.loads(content)["auths"][host]["auth"]
    if b":" not in base64.b64decode(auth, validate=True):
        raise ValueError("no user and password")
    return json.dumps({"auths": {host: {"auth": auth}}}).encode()


def _error(ctx: Context, spec: ChartSpec, errors: str) -> ActuatorError:
    ctx.log.debug("helm cannot pull", extra={"fields": {"because": errors[-500:]}})
    said = errors.partition("Error: ")[2]  # not the trace of a helm without memory
    why = next(found for pattern, found in _FAILURES.items() if re.search(pattern, said))
    text = f"cannot pull chart {spec.chart_name} {spec.version} from {spec.repo_url}: {why.text}"
    return ActuatorError(text, codes=[why.code], reason=why.reason)
