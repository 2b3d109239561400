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
Kubernetes tells each pod the address of a Service that was there before it; Helm
makes Services before Deployments. In brackets, for it may be of either family.
*/}}
{{- define "extension.edsTarget" -}}
{{- $var := printf "%s-eds" (include "extension.name" .) | upper | replace "-" "_" }}
{{- .Values.eds.target | default (printf "[$(%s_SERVICE_HOST)]:$(%s_SERVICE_PORT)" $var $var) }}
{{- end }}

{{- /*
Certificates made by Helm, as JSON of ca, cert and key, each in base64. They are made
when there are none in the cluster, or none for these names. Whatever is made is kept
for the other templates of this run.
*/}}
{{- define "extension.certificates" -}}
{{- if not (hasKey .Values "madeCertificates") }}
{{- $names := include "extension.dnsNames" . | fromJsonArray }}
{{- $old := lookup "v1" "Secret" .Release.Namespace (printf "%s-tls" (include "extension.name" .)) }}
{{- $made := dict }}
{{- if and $old (eq (dig "metadata" "annotations" "gateway.tailscale.com/dns-names" "" $old) (join "," $names)) }}
{{- $made = dict "ca" (index $old.data "ca.crt") "cert" (index $old.data "tls.crt") "key" (index $old.data "tls.key") }}
{{- else }}
{{- $ca := genCA (include "extension.name" .) 3650 }}
{{- $server := genSignedCert (include "extension.name" .) nil $names 3650 $ca }}
{{- $made = dict "ca" (b64enc $ca.Cert) "cert" (b64enc $server.Cert) "key" (b64enc $server.Key) }}
{{- end }}
{{- $_ := set .Values "madeCertificates" $made }}
{{- end }}
{{- .Values.madeCertificates | toJson }}
{{- end }}

{{/* Names of Secrets with client certificates, by namespace. */}}
{{- define "extension.clientCertificates" -}}
{{- $by := dict }}
{{- range .Values.clientCertificates }}
{{- $_ := set $by .namespace (append (get $by .namespace | default list) .name | uniq | sortAlpha) }}
{{- end }}
{{- toYaml $by }}
{{- end }}
