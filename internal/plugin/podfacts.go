// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/check"
	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/reach"
	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
)

// containerPackage is the container of Crossplane's packages that runs the package (crossplane/crossplane,
// internal/controller/pkg/runtime).
const containerPackage = "package-runtime"

// A podSet is which pods have a role.
type podSet struct {
	role      check.Role
	namespace string // Empty for all.
	labels    client.ListOption

	// account of the pods, if it is not empty.
	account string

	// containers whose images are ours.
	containers []string
}

// pods are what is known of the pods that work for us.
type pods struct {
	roles  map[check.Role][]reach.Pod
	images check.Answer[[]check.Image]

	// unknown says why pods are missing.
	unknown string

	seen map[string]bool
}

// podSets returns the pods that work for us.
func (r *reader) podSets(f check.Facts) []podSet {
	o := r.options
	label := func(key, value string) client.ListOption { return client.MatchingLabels{key: value} }
	sets := []podSet{{role: check.RoleCrossplane, namespace: o.CrossplaneNamespace, account: o.CrossplaneAccount}}
	for product, role := range map[string]check.Role{products.Provider: check.RoleProvider, products.Function: check.RoleFunction} {
		if p, ok := f.Packages.Value[product]; ok {
			sets = append(sets, podSet{
				role: role, namespace: o.CrossplaneNamespace, labels: label("pkg.crossplane.io/"+p.Kind, p.Name), containers: []string{containerPackage},
			})
		}
	}
	sets = append(sets,
		podSet{role: check.RoleProxy, labels: client.HasLabels{meta.LabelEndpoints}, containers: []string{proxy.ContainerAgent, proxy.ContainerTailscale}},
		podSet{role: check.RoleDNS, namespace: kubeSystem, labels: label("k8s-app", "kube-dns")})
	if f.Gateway.Extension.Value != nil {
		sets = append(sets,
			podSet{role: check.RoleExtension, namespace: o.ExtensionNamespace, labels: label("app.kubernetes.io/name", charts.Extension), containers: []string{"extension"}},
			podSet{role: check.RoleEnvoyGateway, namespace: o.EnvoyGatewayNamespace, labels: label(envoyGatewayLabel, check.EnvoyGatewayDeployment)},
			podSet{role: check.RoleEnvoy, labels: client.MatchingLabels{meta.LabelManagedBy: "envoy-gateway", "app.kubernetes.io/component": "proxy"}})
	}
	return sets
}

// pods reads the pods that work for us.
func (r *reader) pods(f check.Facts) pods {
	out := pods{roles: map[check.Role][]reach.Pod{}, seen: map[string]bool{}}
	namespaces := ask(r, r.namespaceLabels)
	for _, set := range r.podSets(f) {
		answer := ask(r, func() (struct{}, error) {
			options := []client.ListOption{client.InNamespace(set.namespace)}
			if set.labels != nil {
				options = append(options, set.labels)
			}
			return struct{}{}, pageOf(r.ctx, r.kube, func() *corev1.PodList { return &corev1.PodList{} }, func(l *corev1.PodList) {
				for n := range l.Items {
					if p := &l.Items[n]; set.account == "" || p.Spec.ServiceAccountName == set.account {
						out.add(set, p, namespaces.Value)
					}
				}
			}, options...)
		})
		if answer.Unknown != "" {
			out.unknown = answer.Unknown
			if len(set.containers) > 0 {
				out.images.Unknown = answer.Unknown
			}
		}
	}
	return out
}

// namespaceLabels returns the labels of all namespaces.
func (r *reader) namespaceLabels() (map[string]map[string]string, error) {
	l, err := r.metadata(corev1.SchemeGroupVersion.WithKind("Namespace"))
	out := map[string]map[string]string{}
	for n := range l {
		out[l[n].GetName()] = l[n].GetLabels()
		if out[l[n].GetName()] == nil {
			out[l[n].GetName()] = map[string]string{}
		}
	}
	return out, err
}

// perPod are labels that differ between the pods of one Deployment or StatefulSet. Nobody selects pods by them to isolate
// them.
var perPod = []string{"pod-template-hash", "controller-revision-hash", "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"}

// add adds a pod that has not ended.
func (s *pods) add(set podSet, p *corev1.Pod, namespaces map[string]map[string]string) {
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		return
	}
	for _, name := range set.containers {
		if i, ok := imageIn(p, name); ok {
			s.images.Value = append(s.images.Value, i)
		}
	}
	o := reach.Pod{
		Namespace: p.GetNamespace(), Name: p.GetName(), Labels: p.GetLabels(), NamespaceLabels: namespaces[p.GetNamespace()], HostNetwork: p.Spec.HostNetwork,
	}
	for _, ip := range p.Status.PodIPs {
		if a, err := netip.ParseAddr(ip.IP); err == nil {
			o.Addresses = append(o.Addresses, a)
		}
	}
	for _, c := range p.Spec.Containers {
		o.Ports = append(o.Ports, c.Ports...)
	}
	if key := setOf(set.role, o); !s.seen[key] {
		s.seen[key] = true
		s.roles[set.role] = append(s.roles[set.role], o)
	}
}

// setOf returns a key that pods of the same set have.
func setOf(role check.Role, p reach.Pod) string {
	labels := map[string]string{}
	for k, v := range p.Labels {
		labels[k] = v
	}
	for _, k := range perPod {
		delete(labels, k)
	}
	out := []string{string(role), p.Namespace}
	for _, k := range sortedKeys(labels) {
		out = append(out, k+"="+labels[k])
	}
	return strings.Join(out, " ")
}

// imageIn returns what a container of a pod runs.
func imageIn(p *corev1.Pod, container string) (check.Image, bool) {
	out := check.Image{Pod: p.GetNamespace() + "/" + p.GetName()}
	for _, list := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for _, c := range list {
			if c.Name == container {
				out.Reference = c.Image
			}
		}
	}
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for _, c := range list {
			if c.Name == container {
				_, out.Digest, _ = strings.Cut(c.ImageID, "@")
			}
		}
	}
	return out, out.Reference != ""
}

// policyKinds are kinds of other projects and of SIG Network whose objects deny connections, too.
var policyKinds = []struct {
	gvk    schema.GroupVersionKind
	plural string
}{
	{schema.GroupVersionKind{Group: "policy.networking.k8s.io", Version: "v1alpha1", Kind: "AdminNetworkPolicy"}, "adminnetworkpolicies"},
	{schema.GroupVersionKind{Group: "policy.networking.k8s.io", Version: "v1alpha1", Kind: "BaselineAdminNetworkPolicy"}, "baselineadminnetworkpolicies"},
	{schema.GroupVersionKind{Group: "policy.networking.k8s.io", Version: "v1alpha2", Kind: "ClusterNetworkPolicy"}, "clusternetworkpolicies"},
	{schema.GroupVersionKind{Group: "cilium.io", Version: "v2", Kind: "CiliumNetworkPolicy"}, "ciliumnetworkpolicies"},
	{schema.GroupVersionKind{Group: "cilium.io", Version: "v2", Kind: "CiliumClusterwideNetworkPolicy"}, "ciliumclusterwidenetworkpolicies"},
	{schema.GroupVersionKind{Group: "crd.projectcalico.org", Version: "v1", Kind: "NetworkPolicy"}, "networkpolicies"},
	{schema.GroupVersionKind{Group: "crd.projectcalico.org", Version: "v1", Kind: "GlobalNetworkPolicy"}, "globalnetworkpolicies"},
}

// network reads NetworkPolicies and what they are evaluated with.
func (r *reader) network(f check.Facts, p pods) check.NetworkFacts {
	out := check.NetworkFacts{Pods: check.Answer[map[check.Role][]reach.Pod]{Value: p.roles, Unknown: p.unknown}}
	out.Policies = ask(r, func() ([]networkingv1.NetworkPolicy, error) {
		var all []networkingv1.NetworkPolicy
		err := pageOf(r.ctx, r.kube, func() *networkingv1.NetworkPolicyList { return &networkingv1.NetworkPolicyList{} }, func(l *networkingv1.NetworkPolicyList) { all = append(all, l.Items...) })
		return all, err
	})
	if len(out.Policies.Value) > 0 {
		out.API, out.APIService = ask(r, r.apiEndpoints), r.apiService()
	}
	for _, k := range policyKinds {
		if !f.Served.Value[k.gvk.Group+"/"+k.plural] {
			continue
		}
		some := ask(r, func() (bool, error) { return r.some(k.gvk) })
		if some.Value || some.Unknown != "" {
			out.Others = append(out.Others, k.plural+"."+k.gvk.Group)
		}
	}
	return out
}

// some reports whether the cluster has an object of a kind.
func (r *reader) some(gvk schema.GroupVersionKind) (bool, error) {
	l := metadataList(gvk)
	err := r.kube.List(r.ctx, l, client.Limit(1))
	return len(l.Items) > 0, err
}

// apiServer is the Service of the API server.
var apiServer = types.NamespacedName{Namespace: "default", Name: "kubernetes"}

// apiEndpoints returns the addresses behind the Service of the API server.
func (r *reader) apiEndpoints() ([]netip.AddrPort, error) {
	l := &discoveryv1.EndpointSliceList{}
	if err := r.kube.List(r.ctx, l, client.InNamespace(apiServer.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: apiServer.Name}); err != nil {
		return nil, err
	}
	var out []netip.AddrPort
	for _, s := range l.Items {
		for _, p := range s.Ports {
			for _, e := range s.Endpoints {
				for _, address := range e.Addresses {
					if a, err := netip.ParseAddr(address); err == nil && p.Port != nil {
						out = append(out, netip.AddrPortFrom(a, uint16(*p.Port)))
					}
				}
			}
		}
	}
	return out, nil
}

// apiService returns the address of the Service of the API server. It is not valid if it is not known.
func (r *reader) apiService() netip.AddrPort {
	s := ask(r, func() (*corev1.Service, error) {
		o := &corev1.Service{}
		err := r.kube.Get(r.ctx, apiServer, o)
		return o, err
	})
	if s.Value == nil || len(s.Value.Spec.Ports) == 0 {
		return netip.AddrPort{}
	}
	a, err := netip.ParseAddr(s.Value.Spec.ClusterIP)
	if err != nil {
		return netip.AddrPort{}
	}
	return netip.AddrPortFrom(a, uint16(s.Value.Spec.Ports[0].Port))
}
