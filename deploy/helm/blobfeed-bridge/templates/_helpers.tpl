{{- define "bridge.fullname" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 63 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "bridge.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
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
