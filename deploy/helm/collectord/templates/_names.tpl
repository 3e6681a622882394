{{/* The release's name, with the chart's in it; a service's name has 63 characters. */}}
{{- define "collectord.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "collectord.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "collectord.labels" -}}
{{ include "collectord.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* The service that gives each pod an address. */}}
{{- define "collectord.pods" -}}
{{- include "collectord.name" . }}-pods
{{- end -}}

{{/* collectord.toml. JSON's strings, numbers and lists are TOML's. */}}
{{- define "collectord.settings" -}}
{{- $ours := dict
      "ingest" "0.0.0.0:7710"
      "control" "0.0.0.0:7711"
      "tls_certificate" "/etc/collectord/tls/tls.crt"
      "tls_key" "/etc/collectord/tls/tls.key"
      "token_file" "/etc/collectord/tokens/token"
      "control_token_file" "/etc/collectord/tokens/control_token"
      "adb" "off"
      "usbmux" "off" -}}
{{- if .Values.tls.requireClientCertificate -}}
{{- $_ := set $ours "tls_client_ca" "/etc/collectord/tls/ca.crt" -}}
{{- end -}}
{{- if .Values.metrics.enabled -}}
{{- $_ := set $ours "metrics" "0.0.0.0:7713" -}}
{{- end -}}
{{- with .Values.fleet.database -}}
{{- $_ := set $ours "fleet_database" . -}}
{{- end -}}
{{- if .Values.store.url -}}
{{- $_ := set $ours "store" .Values.store.url -}}
{{- $_ := set $ours "store_endpoint" .Values.store.endpoint -}}
{{- $_ := set $ours "store_region" .Values.store.region -}}
{{- $_ := set $ours "keep_local" .Values.store.keepLocal -}}
{{- end -}}
{{- range $key, $value := .Values.settings -}}
{{- if or (hasKey $ours $key) (has $key (list "root" "web" "metrics" "fleet_database" "fleet_address" "tls_client_ca" "store" "store_endpoint" "store_region" "keep_local")) -}}
{{- fail (printf "settings.%s: the chart sets it; look for its value in values.yaml" $key) -}}
{{- end -}}
{{- $_ := set $ours $key $value -}}
{{- end -}}
{{- range $key, $value := $ours }}
{{ $key }} = {{ toJson $value }}
{{- end }}
{{- end -}}
