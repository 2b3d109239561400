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
Certificates made by Helm, as JSON of server and clients, each with ca, cert and key in
base64. They are made when there are none in the cluster, or none for these names. Clients
have an authority of their own: those of a release that knew none come to what is there,
and what the servers show stays. Whatever is made is kept for the other templates of this run.
*/}}
{{- define "extension.certificates" -}}
{{- if not (hasKey .Values "madeCertificates") }}
{{- $name := include "extension.name" . }}
{{- $names := include "extension.dnsNames" . | fromJsonArray }}
{{- $server := include "extension.keptCertificate" (dict "root" . "name" (printf "%s-tls" $name) "for" (join "," $names)) | fromJson }}
{{- if not $server }}
{{- $ca := genCA $name 3650 }}
{{- $made := genSignedCert $name nil $names 3650 $ca }}
{{- $server = dict "ca" (b64enc $ca.Cert) "cert" (b64enc $made.Cert) "key" (b64enc $made.Key) }}
{{- end }}
{{- $clients := dict }}
{{- range list (include "extension.hooksClient" .) (include "extension.edsClient" .) }}
{{- $_ := set $clients . (include "extension.keptCertificate" (dict "root" $ "name" . "for" .) | fromJson) }}
{{- end }}
{{- if has dict (values $clients) }}
{{- $ca := genCAWithKey (printf "%s-clients" $name) 3650 (genPrivateKey "ecdsa") }}
{{- range $client := keys $clients | sortAlpha }}
{{- $made := genSignedCertWithKey $client nil (list $client) 3650 $ca (genPrivateKey "ecdsa") }}
{{- $_ := set $clients $client (dict "ca" (b64enc $ca.Cert) "cert" (b64enc $made.Cert) "key" (b64enc $made.Key)) }}
{{- end }}
{{- end }}
{{- $_ := set .Values "madeCertificates" (dict "server" $server "clients" $clients) }}
{{- end }}
{{- .Values.madeCertificates | toJson }}
{{- end }}

{{- /* What a Secret of the cluster has that was made for these names. Empty if there is none. */}}
{{- define "extension.keptCertificate" -}}
{{- $out := dict }}
{{- $old := lookup "v1" "Secret" .root.Release.Namespace .name }}
{{- if and $old (eq (dig "metadata" "annotations" "gateway.tailscale.com/dns-names" "" $old) .for) }}
{{- $data := $old.data | default dict }}
{{- if and (hasKey $data "ca.crt") (hasKey $data "tls.crt") (hasKey $data "tls.key") }}
{{- $out = dict "ca" (index $data "ca.crt") "cert" (index $data "tls.crt") "key" (index $data "tls.key") }}
{{- end }}
{{- end }}
{{- $out | toJson }}
{{- end }}

{{- /*
What Envoy Gateway's certificate, and what Envoys', is for. The Secrets that they are in are
called the same.
*/}}
{{- define "extension.hooksClient" -}}{{ include "extension.name" . }}-client{{- end }}
{{- define "extension.edsClient" -}}{{ include "extension.name" . }}-envoy{{- end }}

{{- /* An image is named by its tag, or by what it is. */}}
{{- define "extension.image" -}}
{{- with .Values.image.digest -}}
{{ $.Values.image.repository }}@{{ . }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default (printf "v%s" .Chart.AppVersion) }}
{{- end }}
{{- end }}

{{- /* Who may ask, if neither certificates nor the network say so? */}}
{{- define "extension.check" -}}
{{- range $name, $what := dict "hooks" "an answer has the private keys of Gateways" "eds" "endpoints of all targets are told" }}
{{- if and (not (index $.Values $name).clientCertificates) (not $.Values.networkPolicy.enabled) }}
{{- fail (printf "%s.clientCertificates and networkPolicy.enabled are both false: any pod of the cluster could ask, and %s. Leave one of them true" $name $what) }}
{{- end }}
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
