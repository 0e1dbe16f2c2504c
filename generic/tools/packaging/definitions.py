"""CustomResourceDefinitions as templates of a chart: Orphan's, and those of the author's own kinds.

gardenlet and gardener-operator render `templates/` only, and without a cluster (Gardener,
`pkg/chartrenderer`). Every definition is kept when the chart is removed, because its objects would
be deleted with it; gardener-resource-manager reads one annotation, Helm the other.

All extensions share the definition of Orphan, and Helm refuses an object that another release
owns. So a template looks up the owner, as the value `crds` says. Under Gardener `lookup` finds
nothing, and the definition is always part of the ManagedResource.
"""

from __future__ import annotations

from collections.abc import Iterator

from actuator.meta import GROUP, Object
from generic.kube.crds import crd
from generic.manager.manager import Manager
from generic.reconciler.orphans import Orphan
from generic.tools.packaging.text import literal_text

__all__ = ["DEFAULT", "definition_templates"]

DEFAULT = "auto"
_KEPT = {"resources.gardener.cloud/keep-object": "true", "helm.sh/resource-policy": "keep"}
_INCLUDED = """\
{{- /* "true" where this release installs the CustomResourceDefinition of that name. */ -}}
{{- define "actuator.installsDefinition" -}}
{{- $release := .root.Release -}}
{{- if eq .root.Values.crds "always" -}}
true
{{- else if eq .root.Values.crds "auto" -}}
{{- $found := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" .name -}}
{{- $owner := dig "metadata" "annotations" dict $found -}}
{{- $name := get $owner "meta.helm.sh/release-name" -}}
{{- $namespace := get $owner "meta.helm.sh/release-namespace" -}}
{{- if or (not $found) (and (eq $name $release.Name) (eq $namespace $release.Namespace)) -}}
true
{{- end -}}
{{- else if ne .root.Values.crds "never" -}}
{{- fail (printf "crds: expected auto, always or never, got %v" .root.Values.crds) -}}
{{- end -}}
{{- end -}}
"""


def definition_templates(manager: Manager) -> Iterator[tuple[str, str]]:
    """The path and the text of each template: a helper, and one per CustomResourceDefinition.

    Gardener brings its own kinds; the manager's others are the author's.
    """
    yield "templates/_definitions.tpl", _INCLUDED
    classes: list[type[Object]] = [Orphan]
    classes += (one.cls for one in manager.registrations)
    classes += (one.checks.cls for one in manager.health_checks)
    for cls in dict.fromkeys(one for one in classes if one.KIND.group != GROUP):
        manifest = crd(cls)
        manifest["metadata"]["annotations"] = _KEPT
        name = manifest["metadata"]["name"]
        condition = f'include "actuator.installsDefinition" (dict "root" $ "name" "{name}")'
        text = f"{{{{- if {condition} }}}}\n{literal_text(manifest)}{{{{- end }}}}\n"
        yield f"templates/crd-{name}.yaml", text
