{{- define "valiant.name" -}}
{{ if contains "valiant" .Release.Name }}{{ .Release.Name }}{{ else }}{{ .Release.Name }}-valiant{{ end }}
{{- end }}

{{- define "valiant.selector" -}}
app.kubernetes.io/name: valiant
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "valiant.labels" -}}
{{ include "valiant.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{- define "valiant.metadata" -}}
metadata:
  name: {{ include "valiant.name" .root }}{{ with .suffix }}-{{ . }}{{ end }}
  labels: {{- include "valiant.labels" . | nindent 4 }}
{{- end }}

{{- define "valiant.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{- define "valiant.nobody" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "valiant.hardened" -}}
readOnlyRootFilesystem: true
allowPrivilegeEscalation: false
capabilities: {drop: [ALL]}
{{- end }}

{{- /* What every pod of ours begins with. */ -}}
{{- define "valiant.pod" -}}
enableServiceLinks: false # else the service's name puts a VALIANT_PORT of another meaning into the environment
automountServiceAccountToken: false
securityContext: {{- include "valiant.nobody" . | nindent 2 }}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{- /* What every container of ours ends with: image, environment, folders. */ -}}
{{- define "valiant.container" -}}
image: {{ include "valiant.image" .root | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
envFrom:
  {{- range prepend .root.Values.moreSecrets .root.Values.existingSecret }}
  - secretRef: {name: {{ . }}}
  {{- end }}
{{- with mergeOverwrite (dict) .root.Values.env (.env | default dict) }}
env:
  {{- range $name, $value := . }}
  - {name: {{ $name }}, value: {{ kindIs "string" $value | ternary $value (toJson $value) | quote }}} # JSON: 1073741824, not 1.073741824e+09
  {{- end }}
{{- end }}
securityContext: {{- include "valiant.hardened" . | nindent 2 }}
resources: {{- toYaml .resources | nindent 2 }}
volumeMounts:
  - {name: data, mountPath: /var/lib/valiant}
  - {name: tmp, mountPath: /tmp}
{{- end }}

{{- /* A folder of the pod alone: memory, the node's disk, or a volume that is made and deleted with the pod. */ -}}
{{- define "valiant.folders" -}}
- name: data
  {{- with .claim }}
  ephemeral:
    volumeClaimTemplate:
      spec:
        accessModes: [ReadWriteOnce]
        {{- with .storageClassName }}
        storageClassName: {{ . }}
        {{- end }}
        resources: {requests: {storage: {{ .size }}}}
  {{- else }}
  emptyDir: {{- toYaml . | nindent 4 }}
  {{- end }}
- {name: tmp, emptyDir: {}}
{{- end }}

{{- define "valiant.scheduling" -}}
{{- range $name := list "nodeSelector" "tolerations" "affinity" }}
{{- with index $ $name }}
{{ $name }}: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end }}
