{{- /* The parts that the pods of the Deployment and of the drain hook have in common. */ -}}

{{- define "actuator.labels" -}}
app.kubernetes.io/name: "@NAME@"
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "actuator.metadata" -}}
name: "@NAME@"
namespace: {{ .Release.Namespace }}
labels:
  {{- include "actuator.labels" . | nindent 2 }}
  high-availability-config.resources.gardener.cloud/type: {{ .Values.webhooks | empty | ternary "controller" "server" }}
{{- end -}}

{{- /* A restricted pod, without its containers (Kubernetes, "Pod Security Standards"). What
gardener-operator injects in the garden runtime cluster is used where it is there. */ -}}
{{- define "actuator.pod" -}}
serviceAccountName: "@NAME@"
priorityClassName: {{ ((.Values.gardener).runtimeCluster).priorityClassName | default .Values.priorityClassName }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile:
    type: RuntimeDefault
volumes:
- name: tmp
  emptyDir: {}
- name: images
  configMap:
    name: "@NAME@"
{{- end -}}

{{- /* Several replicas are on different nodes and zones, where that is possible: nodes can lack the label of a
zone. Under Gardener, its webhook replaces this ("High Availability of Deployed Components"). */ -}}
{{- define "actuator.spread" -}}
{{- if gt (int .Values.replicas) 1 }}
topologySpreadConstraints:
{{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
- topologyKey: {{ . }}
  maxSkew: 1
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels:
      {{- include "actuator.labels" $ | nindent 6 }}
{{- end }}
{{- end }}
{{- end -}}

{{- /* A container of the extension's image, without its name, command and arguments. */ -}}
{{- define "actuator.container" -}}
{{- $tag := toJson .Values.image.tag | trimAll `"` -}}
image: {{ .Values.image.repository }}{{ ternary "@" ":" (hasPrefix "sha256:" $tag) }}{{ $tag }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
env: {{ include "actuator.env" . }}
resources: {{ toJson .Values.resources }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
volumeMounts:
- name: tmp
  mountPath: /tmp
- name: images
  mountPath: /images
{{- end -}}

{{- /* The ports of a container that runs a manager, and its probes. */ -}}
{{- define "actuator.serving" -}}
ports:
- name: metrics
  containerPort: {{ .Values.metricsPort }}
  protocol: TCP
- name: health
  containerPort: {{ .Values.healthPort }}
  protocol: TCP
{{- with .Values.webhooks }}
- name: webhooks
  containerPort: {{ .serverPort }}
  protocol: TCP
{{- end }}
livenessProbe:
  httpGet:
    path: /healthz
    port: health
  initialDelaySeconds: 5
  timeoutSeconds: 5
  failureThreshold: 3
  periodSeconds: 20
readinessProbe:
  httpGet:
    path: /readyz
    port: health
  initialDelaySeconds: 5
  timeoutSeconds: 5
  failureThreshold: 3
  periodSeconds: 10
{{- end -}}

{{- /* glibc's settings without the names that values.yaml sets, its entries, and the image vector. */ -}}
{{- define "actuator.env" -}}
{{- $rest := dict @MALLOC@ -}}
{{- range .Values.env }}{{ $rest = omit $rest .name }}{{ end -}}
{{- $env := list -}}
{{- range $name, $value := $rest }}{{ $env = append $env (dict "name" $name "value" $value) }}{{ end -}}
{{- $own := dict "name" "IMAGEVECTOR_OVERWRITE" "value" "/images/images_overwrite.yaml" -}}
{{- toJson (append (concat $env (.Values.env | default list)) $own) -}}
{{- end -}}

{{- /* The names that a value of values.yaml lists; installations in the runtime cluster have their own. */ -}}
{{- define "actuator.listed" -}}
{{- $values := .root.Values -}}
{{- if (($values.gardener).runtimeCluster).enabled }}{{ $values = $values.runtimeCluster }}{{ end -}}
{{- join "," (get $values .value) -}}
{{- end -}}
