{{- define "bridge.name" -}}
{{- .Values.nameOverride | default .Chart.Name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{- /* 53 leaves room for the suffix of the dashboard's name. */}}
{{- define "bridge.fullname" -}}
{{- $name := include "bridge.name" . }}
{{- $full := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) }}
{{- .Values.fullnameOverride | default $full | trunc 53 | trimSuffix "-" }}
{{- end }}

{{- define "bridge.selector" -}}
app.kubernetes.io/name: {{ include "bridge.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "bridge.labels" -}}
{{ include "bridge.selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "bridge.serviceAccount" -}}
{{- if .Values.serviceAccount.create }}{{ .Values.serviceAccount.name | default (include "bridge.fullname" .) }}{{ else }}{{ required "serviceAccount.name: name one that exists, or set serviceAccount.create" .Values.serviceAccount.name }}{{ end }}
{{- end }}

{{- /* HTTPS for the server that has a certificate. */}}
{{- define "bridge.scheme" -}}
{{- $scheme := "HTTP" }}
{{- range .Values.files }}{{ if eq .setting "HTTP_CERT_FILE" }}{{ $scheme = "HTTPS" }}{{ end }}{{ end }}
{{- $scheme }}
{{- end }}

{{- /* The names of the Service, besides what the settings allow. */}}
{{- define "bridge.hosts" -}}
{{- $name := printf "%s.%s" (include "bridge.fullname" .) .Release.Namespace }}
{{- list $name (printf "%s.svc" $name) (printf "%s.svc.cluster.local" $name) (.Values.settings.HTTP_HOSTS | default "") | compact | join "," }}
{{- end }}

{{- define "bridge.image" -}}
{{- if .Values.image.digest }}{{ printf "%s@%s" .Values.image.repository .Values.image.digest }}{{ else }}{{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) }}{{ end }}
{{- end }}
