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
Certificates made by Helm, as JSON of server and clients, each with ca, cert and key in
base64. They are created when there are none in the cluster, or none for these names. Clients
have a separate CA: an upgrade from a release without client certificates adds them, and keeps
the servers' certificates. New certificates are stored for the other templates of this run.
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
DNS names in the client certificates of Envoy Gateway and of Envoys, which are also the names
of their Secrets.
*/}}
{{- define "extension.hooksClient" -}}{{ include "extension.name" . }}-client{{- end }}
{{- define "extension.edsClient" -}}{{ include "extension.name" . }}-envoy{{- end }}

{{- /* An image has a tag or a digest. */}}
{{- define "extension.image" -}}
{{- with .Values.image.digest -}}
{{ $.Values.image.repository }}@{{ . }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default (printf "v%s" .Chart.AppVersion) }}
{{- end }}
{{- end }}

{{- /* Without certificates and NetworkPolicy, any pod could connect. */}}
{{- define "extension.check" -}}
{{- range $name, $what := dict "hooks" "responses contain the private keys of Gateways" "eds" "responses contain the endpoints of all targets" }}
{{- if and (not (index $.Values $name).clientCertificates) (not $.Values.networkPolicy.enabled) }}
{{- fail (printf "%s.clientCertificates and networkPolicy.enabled are both false: any pod of the cluster could connect, and %s. Set one of them to true" $name $what) }}
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
