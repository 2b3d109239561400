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
Whether a package must not resolve its dependencies: Crossplane parses the tag of a dependency as a
version, and refuses one that is a digest (crossplane/crossplane v2.4.0,
internal/controller/pkg/revision/dependency.go, Resolve: semver.NewVersion(lp.Version)). This is why
a release pins no packages.
*/}}
{{- define "tailscale-gateway.skipDependencies" -}}
{{- if or .Values.packages.digests.provider .Values.packages.digests.function }}true{{ end }}
{{- end }}

{{- /* The common part of the spec of a package. The context is a dict of root, name and digest. */}}
{{- define "tailscale-gateway.package" -}}
{{- $repository := printf "%s/%s" (include "tailscale-gateway.organization" .root) .name -}}
package: {{ if .digest }}{{ $repository }}@{{ .digest }}{{ else }}{{ $repository }}:{{ include "tailscale-gateway.version" .root }}{{ end }}
packagePullPolicy: {{ .root.Values.packages.pullPolicy }}
revisionActivationPolicy: {{ .root.Values.packages.activation }}
revisionHistoryLimit: {{ .root.Values.packages.revisionHistoryLimit }}
{{- with .root.Values.imagePullSecrets }}
packagePullSecrets:
{{- toYaml . | nindent 0 }}
{{- end }}
{{- end }}

{{- /*
The security context of a pod or a container. Crossplane sets its own, with user and group 2000, where
there is none, and none where there is an empty one (crossplane/crossplane v2.4.0,
internal/controller/pkg/runtime/runtime.go, Deployment). The context is a dict of root and context.
*/}}
{{- define "tailscale-gateway.securityContext" -}}
{{- if not .root.Values.fixedUserIDs -}}
{{ toYaml (omit (.context | default dict) "runAsUser" "runAsGroup" "fsGroup") }}
{{- else if .context -}}
{{ toYaml .context }}
{{- end }}
{{- end }}

{{- /*
The common part of the pods of packages, as a pod template that the caller continues with the
containers. Crossplane adds its labels, and the pull secrets of the package. The context is a dict of
root and pod: the values of the package.
*/}}
{{- define "tailscale-gateway.pod" -}}
{{- $securityContext := include "tailscale-gateway.securityContext" (dict "root" .root "context" .pod.podSecurityContext) }}
{{- with .pod }}
{{- if or .podAnnotations .podLabels }}
metadata:
  {{- with .podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .podLabels }}
  labels:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
spec:
  {{- with $securityContext }}
  securityContext:
    {{- . | nindent 4 }}
  {{- end }}
  {{- with .nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{- /* The common part of the containers of packages. The context is that of tailscale-gateway.pod. */}}
{{- define "tailscale-gateway.container" -}}
{{- with .pod.env }}
env:
{{- toYaml . | nindent 0 }}
{{- end }}
resources:
  {{- toYaml .pod.resources | nindent 2 }}
{{- with include "tailscale-gateway.securityContext" (dict "root" .root "context" .pod.securityContext) }}
securityContext:
  {{- . | nindent 2 }}
{{- end }}
{{- end }}
