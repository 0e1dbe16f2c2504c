{{- /* The Prometheus that reads the objects for monitoring of this release: `seed` or `garden` (Gardener's),
`operator` (of a Prometheus operator), or nothing. */ -}}
{{- define "actuator.prometheus" -}}
{{- $gardener := .Values.gardener | default dict -}}
{{- $flavour := .Values.monitoring.flavour | toString -}}
{{- if not (has $flavour (list "auto" "gardener" "prometheus-operator" "none")) -}}
{{- fail (printf "monitoring.flavour: expected auto, gardener, prometheus-operator or none, got %s" $flavour) -}}
{{- else if eq $flavour "prometheus-operator" -}}
operator
{{- else if or (eq $flavour "gardener") (and (eq $flavour "auto") $gardener (not $gardener.selfHostedShootCluster)) -}}
{{- if ($gardener.runtimeCluster).enabled }}garden{{ else }}seed{{ end -}}
{{- end -}}
{{- end -}}

{{- /* The metadata of an object that the given Prometheus selects. Gardener's select objects of all namespaces by
this label, and the name begins with theirs (Gardener documentation, "Logging and Monitoring for Extensions"). */ -}}
{{- define "actuator.selected" -}}
name: {{ if ne .prometheus "operator" }}{{ .prometheus }}-{{ end }}@NAME@
namespace: {{ .root.Release.Namespace }}
labels:
  {{- include "actuator.labels" .root | nindent 2 }}
  {{- if ne .prometheus "operator" }}
  prometheus: {{ .prometheus }}
  {{- else }}
  {{- range $label, $value := .root.Values.monitoring.labels }}
  {{ $label }}: {{ $value | quote }}
  {{- end }}
  {{- end }}
{{- end -}}

{{- /* The metadata of a dashboard, without its name. Plutono reads ConfigMaps in the namespace garden by the label of its
cluster, which is that of the garden where a garden's runtime cluster is a seed, too (Gardener documentation, "Logging
and Monitoring for Extensions"; `pkg/component/observability/plutono`). The Grafana of a Prometheus operator reads
the label `grafana_dashboard` (documentation of kube-prometheus-stack). */ -}}
{{- define "actuator.dashboard" -}}
namespace: {{ eq .prometheus "operator" | ternary .root.Release.Namespace "garden" }}
labels:
  {{- include "actuator.labels" .root | nindent 2 }}
  {{- if eq .prometheus "operator" }}
  grafana_dashboard: "1"
  {{- else }}
  dashboard.monitoring.gardener.cloud/garden: "true"
  {{- if eq .prometheus "seed" }}
  dashboard.monitoring.gardener.cloud/seed: "true"
  {{- end }}
  {{- end }}
{{- end -}}
