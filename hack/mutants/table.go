// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

// Packages with tests.
const (
	compose      = "./internal/compose/..."
	endpoints    = "./functions/tailscaleendpoints/..."
	gateway      = "./functions/tailscalegateway/..."
	machineSets  = "./internal/proxy"
	proxyGroup   = "./functions/tailscaleproxygroup"
	services     = "./functions/tailscaleservices/..."
	tailnet      = "./functions/tailscaletailnet"
	fileProxies  = "internal/proxy/"
	fileGateways = "functions/tailscalegateway/"
)

// mutants are faults that a reviewer could miss in an object that is composed. Those of
// internal/proxy are for the functions' goldens to catch, except for pods, which the provider
// makes.
var mutants = []mutant{
	{"the Role of proxies grants deletion of Machines' status", fileProxies + "rbac.go", `[]string{"get", "patch", "update"}`, `[]string{"delete", "get", "patch", "update"}`, []string{endpoints}},
	{"the Role of proxies grants the state Secrets twice and no config Secret", fileProxies + "rbac.go", `ResourceNames: configs,`, `ResourceNames: o.Machines,`, []string{endpoints}},
	{"the RoleBinding of proxies names an account of another namespace", fileProxies + "rbac.go", `Name: o.Name, Namespace: o.Namespace}}`, `Name: o.Name, Namespace: o.Name}}`, []string{endpoints}},
	{"the ServiceAccount of proxies mounts its token", fileProxies + "rbac.go", `AutomountServiceAccountToken: ptr.To(false)`, `AutomountServiceAccountToken: ptr.To(true)`, []string{endpoints}},
	{"the NetworkPolicy of proxies forbids all egress", fileProxies + "networkpolicy.go", `[]networkingv1.PolicyType{networkingv1.PolicyTypeIngress}`, `[]networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}`, []string{endpoints}},
	{"the NetworkPolicy of proxies admits Envoy Gateway instead of its Envoys", fileProxies + "networkpolicy.go", `"app.kubernetes.io/component": "proxy"`, `"app.kubernetes.io/component": "controller"`, []string{endpoints}},
	{"the governing Service hides pods that are not ready", fileProxies + "network.go", `PublishNotReadyAddresses: true`, `PublishNotReadyAddresses: false`, []string{endpoints}},
	{"the governing Service gets a cluster IP", fileProxies + "network.go", `corev1.ClusterIPNone`, `""`, []string{endpoints}},
	{"the Service of a target leads to the client's port", fileProxies + "target.go", `intstr.FromInt32(p.ProxyPort)`, `intstr.FromInt32(p.Port)`, []string{endpoints}},
	{"the Service of a target has the label of another endpoint", fileProxies + "target.go", `om.Labels[meta.LabelEndpoint] = endpoint`, `om.Labels[meta.LabelEndpoint] = o.Name`, []string{endpoints}},
	{"containerboot runs in the wrong networking mode", fileProxies + "containers.go", `strconv.FormatBool(!o.kernel())`, `strconv.FormatBool(o.kernel())`, []string{machineSets}},
	{"containers of proxies may gain privileges", fileProxies + "containers.go", `AllowPrivilegeEscalation: ptr.To(false)`, `AllowPrivilegeEscalation: ptr.To(true)`, []string{machineSets}},

	{"proxies may read the Secrets of the wrong direction", "functions/tailscaleendpoints/compose.go", `a.Spec.Direction != tailnetv1alpha1.DirectionIngress`, `a.Spec.Direction == tailnetv1alpha1.DirectionIngress`, []string{endpoints}},
	{"clients of an endpoint are ignored", "functions/tailscaleendpoints/pod.go", `if len(t.Clients) == 0 {`, `if len(t.Clients) >= 0 {`, []string{endpoints}},
	{"nothing selects the ProxySet", "functions/tailscaleendpoints/compose.go", `labels[meta.LabelProxySet] = "true"`, `labels[meta.LabelProxySet] = "false"`, []string{endpoints}},
	{"a Service announces gRPC by a name that no mesh knows", "functions/tailscaleendpoints/forwarding/forwarding.go", `"kubernetes.io/h2c"`, `"grpc"`, []string{endpoints}},
	{"targetPort of an endpoint is ignored", "functions/tailscaleendpoints/targets/targets.go", `ptr.Deref(p.TargetPort, p.Port)`, `p.Port`, []string{endpoints}},
	{"a machine of the tailnet is unhealthy though its pod is ready", "functions/tailscaleendpoints/status.go", `if m.Ready || m.Failed && m.Online {`, `if m.Failed && m.Online {`, []string{endpoints}},

	{"an extension may list all Secrets", fileGateways + "extensionpods/pods.go", `Resources: []string{"secrets"}, Verbs: []string{"get", "update"}`, `Resources: []string{"secrets"}, Verbs: []string{"get", "list", "update"}`, []string{gateway}},
	{"an extension runs any image", fileGateways + "extensionpods/extension.go", `image == "" || image == f.InstalledImage`, `image != "" || image == f.InstalledImage`, []string{gateway}},
	{"an extension mounts all keys of a Secret", fileGateways + "extensionpods/pods.go", `, Items: certificateKeys()`, ``, []string{gateway}},
	{"an extension starts without a tailnet that allows it", fileGateways + "extensionpods/extension.go", `v != nil && f.Deployment == nil`, `v != nil && f.Deployment != nil`, []string{gateway}},
	{"the NetworkPolicy of an extension lets the wrong namespace scrape metrics", fileGateways + "extensionpods/pods.go", `ingressRule(nameMetrics, nil, "monitoring")`, `ingressRule(nameMetrics, nil, "default")`, []string{gateway}},
	{"everybody in an extension's pod may read its key", fileGateways + "extensionpods/pods.go", `0o440`, `0o444`, []string{gateway}},
	{"a rollout of an extension stops a pod first", fileGateways + "extensionpods/pods.go", `intstr.FromInt32(0)`, `intstr.FromInt32(1)`, []string{gateway}},
	{"metrics of an extension are balanced over its pods", fileGateways + "extensionpods/pods.go", `s.Spec.ClusterIP = corev1.ClusterIPNone`, `s.Spec.ClusterIP = ""`, []string{gateway}},
	{"a listener is served by the port of another protocol", fileGateways + "front/gateway.go", `return p.Port == l.Port && p.Protocol == transport`, `return p.Port == l.Port && p.Protocol != transport`, []string{gateway}},
	{"hosts of a Gateway's service wait for an approval", fileGateways + "services/compose.go", `ptr.Deref(vip.AutoApprove, true)`, `ptr.Deref(vip.AutoApprove, false)`, []string{gateway}},
	{"the installed extension is required by the wrong label", fileGateways + "read.go", `meta.LabelManagedBy: "Helm"`, `meta.LabelManagedBy: "helm"`, []string{gateway}},

	{"the proxies of another cluster are asked for a path", "functions/tailscaleservices/attachments/attachments.go", `check.Path = ""`, `check.Path = "/"`, []string{services}},
	{"autoApprove of a service is ignored", "functions/tailscaleservices/compose.go", `AutoApprove: t.AutoApprove,`, `AutoApprove: nil,`, []string{services}},
	{"a host that does not serve every port counts", "apis/tailnet/v1alpha1/vipservice_types.go", `return h.Online && h.Configured && h.Approved()`, `return h.Online && h.Approved()`, []string{services}},
	{"proxies of a template are taken for the user's", "functions/tailscaleservices/selection/selection.go", `l[meta.LabelAutoProvisioned] = "true"`, `l[meta.LabelAutoProvisioned] = "false"`, []string{services}},
	{"a Service of another name is required", "functions/tailscaleservices/read.go", `Kind: "Service", Namespace: owner.Namespace, Name: owner.Name}`, `Kind: "Service", Namespace: owner.Namespace, Name: owner.Namespace}`, []string{services}},

	{"proxies of a zone are in no zone", "functions/tailscaleproxygroup/compose.go", `n[corev1.LabelTopologyZone] = m.zone`, `n[corev1.LabelTopologyRegion] = m.zone`, []string{proxyGroup}},
	{"the key of an API key's Secret is ignored", "functions/tailscaletailnet/compose.go", `Key:             s.APIKeySecret.Key,`, `Key:             "",`, []string{tailnet}},

	{"conditions do not reach claims", "internal/compose/conditions.go", `.TargetCompositeAndClaim()`, `.TargetComposite()`, []string{compose, proxyGroup}},
	{"the status has no kind", "internal/compose/reply.go", `range []string{"apiVersion", "kind"} {`, `range []string{"apiVersion"} {`, []string{compose, proxyGroup}},
	{"Crossplane calls again after an hour", "internal/compose/run.go", `RequeueInterval = time.Minute`, `RequeueInterval = time.Hour`, []string{gateway}},
	{"children of a claim are in the namespace of its name", "internal/compose/owner.go", `l[labelClaimName], l[labelClaimNamespace]`, `l[labelClaimNamespace], l[labelClaimName]`, []string{proxyGroup}},
}
