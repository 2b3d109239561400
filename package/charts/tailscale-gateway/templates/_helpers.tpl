{{- /*
Copyright 2026 The Tailscale Gateway Authors
SPDX-License-Identifier: Apache-2.0
*/ -}}

{{- define "tailscale-gateway.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: tailscale-gateway
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- /* The public path of the packages: their dependencies name it, wherever they are pulled from. */}}
{{- define "tailscale-gateway.organization" -}}ghcr.io/tailscale-gateway{{- end }}

{{- define "tailscale-gateway.version" -}}{{ .Values.packages.version | default (printf "v%s" .Chart.AppVersion) }}{{- end }}

{{- define "tailscale-gateway.configuration" -}}
configuration-tailscale-gateway{{ if eq .Values.packages.flavour "claims" }}-claims{{ end }}
{{- end }}

{{- /*
An image that a binary names by itself, where it is not the public one. The context is a dict of
root, name and image.
*/}}
{{- define "tailscale-gateway.image" -}}
{{- if .image }}{{ .image }}
{{- else if ne .root.Values.registry (include "tailscale-gateway.organization" .root) -}}
{{ .root.Values.registry }}/{{ .name }}:{{ include "tailscale-gateway.version" .root }}
{{- end }}
{{- end }}

{{- /* The common part of the spec of a package. The context is a dict of root and name. */}}
{{- define "tailscale-gateway.package" -}}
package: {{ include "tailscale-gateway.organization" .root }}/{{ .name }}:{{ include "tailscale-gateway.version" .root }}
packagePullPolicy: {{ .root.Values.packages.pullPolicy }}
revisionActivationPolicy: {{ .root.Values.packages.activation }}
revisionHistoryLimit: {{ .root.Values.packages.revisionHistoryLimit }}
{{- with .root.Values.imagePullSecrets }}
packagePullSecrets:
{{- toYaml . | nindent 0 }}
{{- end }}
{{- end }}

{{- /* Where pods of a package run. The context is the values of the package. */}}
{{- define "tailscale-gateway.scheduling" -}}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}
