{{- /*
Copyright 2026 The Tailscale Gateway Authors
SPDX-License-Identifier: Apache-2.0
*/ -}}

{{- define "extension.name" -}}{{ .Values.fullnameOverride | default .Chart.Name }}{{- end }}

{{- define "extension.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "extension.labels" -}}
{{ include "extension.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: tailscale-gateway
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "extension.envoyGatewayNamespace" -}}{{ .Values.envoyGateway.namespace | default .Release.Namespace }}{{- end }}

{{- /* Names of the Services, shortest first, as clients may know them. */}}
{{- define "extension.dnsNames" -}}
{{- $out := list }}
{{- range $service := list (include "extension.name" .) (printf "%s-eds" (include "extension.name" .)) }}
{{- $of := printf "%s.%s" $service $.Release.Namespace }}
{{- $out = concat $out (list $of (printf "%s.svc" $of) (printf "%s.svc.%s" $of $.Values.certificates.clusterDomain)) }}
{{- end }}
{{- $out | toJson }}
{{- end }}

{{- /* The name in the certificate that Envoys check: they dial an address. */}}
{{- define "extension.edsServerName" -}}
{{ include "extension.name" . }}-eds.{{ .Release.Namespace }}.svc
{{- end }}

{{- /*
Kubernetes sets variables with the address of a Service in pods that are created after it; Helm
creates Services before Deployments. The brackets are for IPv6 addresses.
*/}}
{{- define "extension.edsTarget" -}}
{{- $var := printf "%s-eds" (include "extension.name" .) | upper | replace "-" "_" }}
{{- .Values.eds.target | default (printf "[$(%s_SERVICE_HOST)]:$(%s_SERVICE_PORT)" $var $var) }}
{{- end }}

{{- /*
How certificates are created. Argo CD passes the APIs of the cluster to helm template. Without
them, helm template knows only those of Kubernetes.
*/}}
{{- define "extension.certificatesMode" -}}
{{- if ne .Values.certificates.mode "Auto" -}}
{{ .Values.certificates.mode }}
{{- else if .Capabilities.APIVersions.Has "cert-manager.io/v1" -}}
CertManager
{{- else -}}
Job
{{- end }}
{{- end }}

{{- /* The Job that creates certificates and renews them, for a Job and a CronJob. */}}
{{- define "extension.certificatesJob" -}}
{{- $name := include "extension.name" . -}}
template:
  {{- /* No Service, budget or affinity selects these pods. */}}
  {{- include "extension.pod" (dict "root" . "name" (printf "%s-certificates" .Chart.Name)) | trim | nindent 2 }}
    serviceAccountName: {{ $name }}-certificates
    # A failed pod and its log stay; the Job starts another one.
    restartPolicy: Never
    {{- /* The pods of the Deployment wait for this one, so their affinity to pods is not its own. */}}
    {{- with .Values.affinity.nodeAffinity }}
    affinity:
      nodeAffinity:
        {{- toYaml . | nindent 8 }}
    {{- end }}
    containers:
    - name: certificates
      image: {{ include "extension.image" . }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args:
      - --write-certificates={{ $name }}
      - --certificate-names={{ include "extension.dnsNames" . | fromJsonArray | join "," }}
      env:
      - name: POD_NAMESPACE
        valueFrom:
          fieldRef:
            fieldPath: metadata.namespace
      {{- include "extension.container" . | nindent 6 }}
{{- end }}

{{- /*
The common part of pods, as a pod template that the caller continues with the rest of the spec. The
context is a dict of root and name: the value of the label app.kubernetes.io/name.
*/}}
{{- define "extension.pod" -}}
metadata:
  labels:
    app.kubernetes.io/name: {{ .name }}
    app.kubernetes.io/instance: {{ .root.Release.Name }}
    app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
    app.kubernetes.io/part-of: tailscale-gateway
    app.kubernetes.io/managed-by: {{ .root.Release.Service }}
    {{- with .root.Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .root.Values.podAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- with include "extension.securityContext" (dict "root" .root "context" .root.Values.podSecurityContext) }}
  securityContext:
    {{- . | nindent 4 }}
  {{- end }}
  {{- with .root.Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .root.Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .root.Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .root.Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}

{{- /* The common part of containers. */}}
{{- define "extension.container" -}}
resources:
  {{- toYaml .Values.resources | nindent 2 }}
{{- with include "extension.securityContext" (dict "root" . "context" .Values.securityContext) }}
securityContext:
  {{- . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* The security context of a pod or a container. The context is a dict of root and context. */}}
{{- define "extension.securityContext" -}}
{{- $context := .context }}
{{- if and $context (not .root.Values.fixedUserIDs) }}
{{- $context = omit $context "runAsUser" "runAsGroup" "fsGroup" }}
{{- end }}
{{- with $context }}
{{- toYaml . }}
{{- end }}
{{- end }}

{{- /*
DNS names in the client certificates of Envoy Gateway and of Envoys, which are also the names
of their Secrets.
*/}}
{{- define "extension.hooksClient" -}}{{ include "extension.name" . }}-client{{- end }}
{{- define "extension.edsClient" -}}{{ include "extension.name" . }}-envoy{{- end }}

{{- /*
An image has a tag or a digest. The digest of a release is not a value: "helm upgrade --reuse-values"
would keep that of the previous chart.
*/}}
{{- define "extension.image" -}}
{{- $released := index .Chart.Annotations "gateway.tailscale.com/extension-digest" }}
{{- with .Values.image.digest | default (ternary "" $released (ne .Values.image.tag "")) -}}
{{ $.Values.image.repository }}@{{ . }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default (printf "v%s" .Chart.AppVersion) }}
{{- end }}
{{- end }}

{{/* Names of Secrets with client certificates, by namespace. */}}
{{- define "extension.clientCertificates" -}}
{{- $by := dict }}
{{- range .Values.clientCertificates }}
{{- $_ := set $by .namespace (append (get $by .namespace | default list) .name | uniq | sortAlpha) }}
{{- end }}
{{- toYaml $by }}
{{- end }}
