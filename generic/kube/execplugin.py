"""Exec plugins of kubeconfigs: the programs that print a user's credentials.

Not by the package `kubernetes`, which waits for a plugin forever. Source of the format: Kubernetes
documentation, "Client Authentication (v1)". Not here: which kubeconfig has a plugin (`kubeconfig`),
and when it runs again (`access`).
"""

import base64
import json
import os
import signal
import subprocess
import sys
from typing import Any

import attrs

from actuator.errors import ConfigurationError
from actuator.meta import parse_time
from generic.kube.kubeconfig import InlineKubeconfig, LocalKubeconfig
from generic.kube.printable import one_line

PLUGIN_SECONDS = 60.0
PERSON_SECONDS = 300.0
"""The time limit where the plugin may ask a person at the terminal to log in."""
_MAX_REASON = 1000
_MIN_VALUE = 8
"""Minimum characters of a value that is hidden; shorter ones are parts of other words."""
_CLUSTER = ("server", "tls-server-name", "proxy-url")


def run_plugin(found: LocalKubeconfig) -> LocalKubeconfig:
    """Return the kubeconfig with the credentials of its plugin.

    Raises ConfigurationError: one sentence without the plugin's arguments and environment.
    """
    plugin, folder, cluster = found.plugin or ({}, "", {})
    try:
        status = _status(_output(plugin, folder, _cluster(found.inline, cluster)), plugin)
        inline, expires = _credentials(found.inline, status)
    except (OSError, ValueError, TypeError, LookupError, AttributeError) as error:
        why = one_line(error)[:_MAX_REASON]
        raise ConfigurationError(
            f"{found.name}: no credentials: {why}; install the program, or correct the entry "
            "`exec` of the user"
        ) from error
    return attrs.evolve(found, inline=inline, expires=expires)


def _output(plugin: dict[str, Any], folder: str, cluster: dict[str, Any]) -> bytes:
    """Run the plugin and return what it printed. Raises ValueError, OSError and TypeError."""
    if not plugin.get("command"):
        raise ValueError("exec: missing command")
    asks = plugin.get("interactiveMode") != "Never" and sys.stdin is not None and sys.stdin.isatty()
    more = {"cluster": cluster} if plugin.get("provideClusterInfo") else {}
    spec = {"interactive": asks, **more}
    info = {"apiVersion": plugin.get("apiVersion"), "kind": "ExecCredential", "spec": spec}
    process = subprocess.Popen(
        [plugin["command"], *(plugin.get("args") or [])],
        stdin=None if asks else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=None if asks else subprocess.PIPE,
        cwd=folder or None,
        env={
            **os.environ,
            **{item["name"]: item["value"] for item in plugin.get("env") or []},
            "KUBERNETES_EXEC_INFO": json.dumps(info),
        },
        process_group=None if asks else 0,  # only the terminal's group can read from it
    )
    limit = PERSON_SECONDS if asks else PLUGIN_SECONDS
    with process:
        try:
            printed, errors = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:  # it names the arguments
            why = f"exec: {plugin['command']} did not return within {limit:.0f} s"
            raise ValueError(why) from None
        finally:
            if process.returncode is None:
                os.kill(process.pid if asks else -process.pid, signal.SIGKILL)
    if process.returncode:
        reason = _hidden((errors or b"").decode(errors="replace").strip(), plugin)
        raise ValueError(f"exec: {plugin['command']} returned {process.returncode}. {reason}")
    return printed


def _hidden(text: str, plugin: dict[str, Any]) -> str:
    """Return the text without the plugin's arguments and environment, which it may quote."""
    values: dict[str, str] = dict.fromkeys(plugin.get("args") or [], "argument")
    values |= {item["value"]: item["name"] for item in plugin.get("env") or []}
    for value in sorted(values, key=len, reverse=True):
        if len(value) >= _MIN_VALUE:
            text = text.replace(value, f"<{values[value]}>")
    return text


def _cluster(inline: InlineKubeconfig, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the cluster as a plugin expects it, with the CA itself instead of its file."""
    cluster = {key: fields[key] for key in _CLUSTER if fields.get(key)}
    if inline.ca:
        cluster["certificate-authority-data"] = base64.b64encode(inline.ca).decode()
    for extension in fields.get("extensions") or []:
        if extension["name"] == "client.authentication.k8s.io/exec":
            cluster["config"] = extension["extension"]
    return cluster


def _status(printed: bytes, plugin: dict[str, Any]) -> dict[str, Any]:
    """Return the status of a printed ExecCredential. Raises ValueError, which quotes none of it."""
    try:
        document = json.loads(printed)
        version = document["apiVersion"]
        status = document["status"]
    except (ValueError, TypeError, LookupError):
        raise ValueError("exec: cannot decode the output, expected an ExecCredential") from None
    if version != plugin.get("apiVersion"):
        raise ValueError("exec: the apiVersion of the output is not the one of the kubeconfig")
    return dict(status or {})


def _credentials(inline: InlineKubeconfig, status: dict[str, Any]) -> tuple[InlineKubeconfig, str]:
    """Return the token or certificate of a status, and when it expires."""
    token = status.get("token")
    certificate = status.get("clientCertificateData")
    if not token and not (certificate and status.get("clientKeyData")):
        raise ValueError("exec: missing token, or clientCertificateData with clientKeyData")
    if certificate:
        key = status["clientKeyData"].encode()
        inline = attrs.evolve(inline, certificate=certificate.encode(), key=key)
    expires = status.get("expirationTimestamp") or ""
    if expires:
        parse_time(expires)
    return attrs.evolve(inline, token=token or ""), expires
