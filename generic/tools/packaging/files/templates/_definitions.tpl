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
