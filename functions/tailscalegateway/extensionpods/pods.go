// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package extensionpods

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
)

const (
	// extensionRole grants the permissions of such an extension in its namespace, except for its
	// Lease. It is installed together with the permission of Crossplane to bind it
	// (package/charts/tailscale-gateway).
	extensionRole = "tailscale-gateway:gateway-extension"

	// tlsPath is the path of the certificate, and tlsVolume its volume.
	tlsPath   = "/etc/tailscale-gateway/tls"
	tlsVolume = "tls"

	// drainSeconds is how long a terminating pod still answers calls.
	drainSeconds = 5

	// extensionUser is the user ID that runs the binary.
	extensionUser = 2000
)

// envoyGatewayLabels are the labels of Envoy Gateway's pods, and envoyLabels those of its proxies.
var (
	envoyGatewayLabels = map[string]string{"control-plane": "envoy-gateway"}
	envoyLabels        = map[string]string{meta.LabelManagedBy: meta.ManagedByEnvoyGateway, "app.kubernetes.io/component": "proxy"}
)

// serviceAccount returns the account of the pods. Its label makes the provider create their Secrets.
func (e *Extension) serviceAccount() *corev1.ServiceAccount {
	out := &corev1.ServiceAccount{ObjectMeta: e.objectMeta("")}
	out.Labels[meta.LabelExtension] = e.Owner.Name
	return out
}

// leaseRole returns the Role with which replicas elect a writer, with one Lease, and store their
// certificates, in two Secrets. Permissions by name cannot cover the creation of an object, and who
// may create any Secret may have a token of any ServiceAccount written into one. This function cannot
// compose the Secrets, because Crossplane would pass the private keys to it: the provider creates
// them (internal/controller/extension).
func (e *Extension) leaseRole() *rbacv1.Role {
	leases := func(verbs []string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{coordinationv1.GroupName}, Resources: []string{"leases"}, Verbs: verbs, ResourceNames: names}
	}
	return &rbacv1.Role{
		ObjectMeta: e.objectMeta(suffixLease),
		Rules: []rbacv1.PolicyRule{
			leases([]string{"create"}),
			leases([]string{"get", "update"}, names.ExtensionLease(e.Gateway.Ref.Name)),
			{APIGroups: []string{corev1.GroupName}, Resources: []string{"secrets"}, Verbs: []string{"get", "update"}, ResourceNames: []string{names.ExtensionCertificates(e.Name), names.ExtensionClient(e.Name)}},
		},
	}
}

// roleBinding returns a binding that grants a role's permissions to the account, in the namespace
// only.
func (e *Extension) roleBinding(suffix string, role rbacv1.RoleRef) *rbacv1.RoleBinding {
	role.APIGroup = rbacv1.GroupName
	return &rbacv1.RoleBinding{
		ObjectMeta: e.objectMeta(suffix),
		RoleRef:    role,
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: e.Name, Namespace: e.Owner.Namespace}},
	}
}

// service returns a Service of all pods. The one for metrics has no cluster IP: each pod is
// scraped.
func (e *Extension) service(suffix string) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: e.objectMeta(suffix),
		Spec:       corev1.ServiceSpec{IPFamilyPolicy: ptr.To(corev1.IPFamilyPolicyPreferDualStack), Selector: e.selector()},
	}
	port := corev1.ServicePort{Name: "grpc-" + nameHooks, Port: portHooks, TargetPort: intstr.FromString(nameHooks)}
	switch suffix {
	case suffixHooks:
		// Envoy Gateway's pods may run on nodes without a pod of the extension.
		s.Spec.InternalTrafficPolicy = ptr.To(corev1.ServiceInternalTrafficPolicyCluster)
	case suffixEDS:
		port = corev1.ServicePort{Name: "grpc-" + nameEDS, Port: portEDS, TargetPort: intstr.FromString(nameEDS)}
	case suffixMetrics:
		port = corev1.ServicePort{Name: "http-" + nameMetrics, Port: portMetrics, TargetPort: intstr.FromString(nameMetrics)}
		s.Spec.ClusterIP = corev1.ClusterIPNone
	}
	s.Spec.Ports = []corev1.ServicePort{port}
	return s
}

// budget returns the PodDisruptionBudget of the pods.
func (e *Extension) budget() *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: e.objectMeta(""),
		Spec: policyv1.PodDisruptionBudgetSpec{
			MaxUnavailable:             ptr.To(intstr.FromInt32(1)),
			UnhealthyPodEvictionPolicy: ptr.To(policyv1.AlwaysAllow),
			Selector:                   &metav1.LabelSelector{MatchLabels: e.selector()},
		},
	}
}

// networkPolicy returns a policy that permits Envoy Gateway to call hooks, and its proxies to
// request endpoints. Those run in Envoy Gateway's namespaces, or in the Gateway's. The policy also
// selects namespaces, because any user may label pods.
func (e *Extension) networkPolicy() *networkingv1.NetworkPolicy {
	ingressRule := func(port string, pods *metav1.LabelSelector, namespaces ...string) networkingv1.NetworkPolicyIngressRule {
		namespaces = slices.Clone(namespaces)
		slices.Sort(namespaces)
		out := networkingv1.NetworkPolicyIngressRule{Ports: []networkingv1.NetworkPolicyPort{{Port: ptr.To(intstr.FromString(port))}}}
		for _, n := range slices.Compact(namespaces) {
			out.From = append(out.From, networkingv1.NetworkPolicyPeer{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: n}}, PodSelector: pods,
			})
		}
		return out
	}
	return &networkingv1.NetworkPolicy{
		ObjectMeta: e.objectMeta(""),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: e.selector()},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{
				ingressRule(nameHooks, &metav1.LabelSelector{MatchLabels: envoyGatewayLabels}, e.Gateway.EnvoyGateway...),
				ingressRule(nameEDS, &metav1.LabelSelector{MatchLabels: envoyLabels}, append(slices.Clone(e.Gateway.EnvoyGateway), e.Owner.Namespace)...),
				ingressRule(nameMetrics, nil, "monitoring"),
			},
		},
	}
}

// composeDeployment returns the Deployment of the extension.
func (e *Extension) composeDeployment() *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: e.objectMeta(""),
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To(e.replicas()),
			// A new pod answers before an old one ends, because Envoy Gateway waits while no pod
			// answers.
			Strategy: appsv1.DeploymentStrategy{
				Type:          appsv1.RollingUpdateDeploymentStrategyType,
				RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: ptr.To(intstr.FromInt32(1)), MaxUnavailable: ptr.To(intstr.FromInt32(0))},
			},
			Selector: &metav1.LabelSelector{MatchLabels: e.selector()},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: e.labels()}, Spec: e.podSpec()},
		},
	}
}

// podSpec returns the spec of the pods.
func (e *Extension) podSpec() corev1.PodSpec {
	out := corev1.PodSpec{
		ServiceAccountName: e.Name,
		EnableServiceLinks: ptr.To(true),
		// Calls are answered during the drain; then the remaining ones have 2 s to end.
		TerminationGracePeriodSeconds: ptr.To[int64](drainSeconds + 10),
		// Prefer Envoy Gateway's node, but do not require it: Envoy Gateway may start later or
		// move.
		Affinity: &corev1.Affinity{PodAffinity: &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{
			Weight: 100,
			PodAffinityTerm: corev1.PodAffinityTerm{
				TopologyKey:       corev1.LabelHostname,
				NamespaceSelector: &metav1.LabelSelector{},
				LabelSelector:     &metav1.LabelSelector{MatchLabels: envoyGatewayLabels},
			},
		}}}},
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
			LabelSelector: &metav1.LabelSelector{MatchLabels: e.selector()}, MatchLabelKeys: []string{"pod-template-hash"},
		}},
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](extensionUser), RunAsGroup: ptr.To[int64](extensionUser), FSGroup: ptr.To[int64](extensionUser),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{e.container()},
	}
	if e.tls() {
		out.Volumes = []corev1.Volume{{Name: tlsVolume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
			SecretName: e.Spec.TLS.CertificateRef.Name, DefaultMode: ptr.To[int32](0o440), Items: certificateKeys(),
		}}}}
	}
	return out
}

// certificateKeys returns the keys of a Secret of type kubernetes.io/tls, and of its authority. This
// function cannot look at the type, because Crossplane would pass it the private key. A Secret
// without one of these keys is not mounted (kubernetes v1.35 pkg/volume/secret/secret.go,
// MakePayload), and of other keys, such as a token, nothing is.
func certificateKeys() []corev1.KeyToPath {
	var out []corev1.KeyToPath
	for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey, "ca.crt"} {
		out = append(out, corev1.KeyToPath{Key: key, Path: key})
	}
	return out
}

// container returns the one container of the pods.
func (e *Extension) container() corev1.Container {
	probe := func(path string, period, failures int32) *corev1.Probe {
		return &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString(nameMetrics)}},
			PeriodSeconds: period, FailureThreshold: failures,
		}
	}
	out := corev1.Container{
		Name:            "extension",
		Image:           e.image(),
		ImagePullPolicy: corev1.PullIfNotPresent,
		Args:            e.args(),
		Env: []corev1.EnvVar{{Name: "POD_NAMESPACE", ValueFrom: &corev1.EnvVarSource{
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"},
		}}},
		Ports:          []corev1.ContainerPort{{Name: nameHooks, ContainerPort: portHooks}, {Name: nameEDS, ContainerPort: portEDS}, {Name: nameMetrics, ContainerPort: portMetrics}},
		LivenessProbe:  probe("/healthz", 10, 6),
		ReadinessProbe: probe("/ready", 2, 2),
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")},
			Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512Mi")},
		},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true),
			Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
	if r := e.Spec.Resources; r != nil {
		out.Resources = *r
	}
	if e.tls() {
		out.VolumeMounts = []corev1.VolumeMount{{Name: tlsVolume, MountPath: tlsPath, ReadOnly: true}}
	}
	return out
}
