// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/address"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
)

// maxStaticEndpoints is how many static endpoints a machine has at most. Tailscale's operator has
// the same limit (cmd/k8s-operator/proxygroup.go of tailscale.com v1.102.5, findStaticEndpoints).
const maxStaticEndpoints = 2

// messageStaticDenied says how the provider gets the permissions.
const messageStaticDenied = "The provider is not allowed to list and watch Nodes and Services, which static endpoints need; install or upgrade the chart tailscale-gateway with provider.staticEndpoints=true"

// A static is what a set has of static endpoints.
type static struct {
	// endpoints are the addresses of each Machine, by name. A Machine that is missing keeps its
	// addresses.
	endpoints map[string][]string

	// problem describes, for the user, why there are none. Empty if there is no problem.
	problem string
}

// static applies the Services of a set's static endpoints, deletes those that it no longer has, and
// returns the addresses of its Machines. Peers go on using the addresses of before while that is
// impossible.
func (r *reconciler) static(ctx context.Context, set *v1alpha1.MachineSet, owned map[string]*v1alpha1.Machine) (static, error) {
	pods := set.Spec.Pods
	if pods == nil {
		// The set's function is older than the provider, and writes them later.
		return static{}, nil
	}
	wanted := pods.StaticEndpoints != nil
	if !wanted {
		// A set that never had any needs no permissions.
		if found, err := r.hadStatic(ctx, set, owned); err != nil || !found {
			return static{}, err
		}
	}
	allowed, err := r.watchStatic(ctx)
	if err != nil {
		return static{}, err
	}
	if !allowed {
		if !wanted {
			// The Services go with the set.
			return static{endpoints: without(owned)}, nil
		}
		return static{problem: messageStaticDenied}, nil
	}
	if wanted {
		beyond, err := r.beyondGrant(ctx, set)
		if err != nil || beyond != "" {
			// The pods report the problem.
			return static{}, err
		}
	}
	services, problem, err := r.staticServices(ctx, set)
	if err != nil || problem != "" {
		return static{problem: problem}, err
	}
	if !wanted {
		return static{endpoints: without(owned)}, nil
	}
	nodes := &corev1.NodeList{}
	selector := labels.Set{}
	for k, v := range pods.StaticEndpoints.NodeSelector {
		selector[k] = string(v)
	}
	if err := r.kube.List(ctx, nodes, client.MatchingLabels(selector)); err != nil {
		return static{}, errors.Wrap(err, "cannot list Nodes")
	}
	out := static{endpoints: map[string][]string{}}
	for machine, at := range services {
		var existing []string
		if m := owned[machine]; m != nil {
			existing = m.Spec.ForProvider.StaticEndpoints
		}
		out.endpoints[machine] = endpoints(nodes.Items, pods.StaticEndpoints.AddressType, at, existing)
		if len(out.endpoints[machine]) == 0 {
			out.problem = fmt.Sprintf("No node that spec.proxy.staticEndpoints.nodeSelector selects has an address of type %s and of a family of the cluster's Services, which is %s; select others, or set addressType", addressType(pods.StaticEndpoints.AddressType), at.families)
			// Nodes may be away for a moment.
			delete(out.endpoints, machine)
		}
	}
	return out, nil
}

// hadStatic reports whether a set may have Services of static endpoints: its Machines have addresses,
// or its pods listen for them. The StatefulSet changes only after the Services are deleted.
func (r *reconciler) hadStatic(ctx context.Context, set *v1alpha1.MachineSet, owned map[string]*v1alpha1.Machine) (bool, error) {
	for _, m := range owned {
		if len(m.Spec.ForProvider.StaticEndpoints) > 0 {
			return true, nil
		}
	}
	if allowed, err := r.watch(ctx); err != nil || !allowed {
		return false, err
	}
	sts := &appsv1.StatefulSet{}
	exists, err := r.find(ctx, set, set.GetName(), false, sts)
	if err != nil || !exists || !metav1.IsControlledBy(sts, set) {
		return false, errors.Wrapf(err, "cannot get StatefulSet %q", set.GetName())
	}
	return proxy.ListensStatically(&sts.Spec.Template.Spec), nil
}

// without returns no addresses for each Machine.
func without(owned map[string]*v1alpha1.Machine) map[string][]string {
	out := make(map[string][]string, len(owned))
	for name := range owned {
		out[name] = nil
	}
	return out
}

// A nodePort is where a Service answers on nodes.
type nodePort struct {
	port int32

	// families are those of the Service: nodes have no port for it at addresses of others
	// (k8s.io/kubernetes pkg/proxy/util, NewNodePortAddresses, for each of kube-proxy's families).
	families address.Families
}

// nodePortOf returns the node port of a Service, or false while it has none.
func nodePortOf(s *corev1.Service) (nodePort, bool) {
	if len(s.Spec.Ports) != 1 || s.Spec.Ports[0].NodePort == 0 {
		return nodePort{}, false
	}
	out := nodePort{port: s.Spec.Ports[0].NodePort}
	for _, f := range s.Spec.IPFamilies {
		out.families.IPv4 = out.families.IPv4 || f == corev1.IPv4Protocol
		out.families.IPv6 = out.families.IPv6 || f == corev1.IPv6Protocol
	}
	if out.families == (address.Families{}) {
		// Nothing is known.
		out.families = address.Families{IPv4: true, IPv6: true}
	}
	return out, true
}

// staticServices applies a set's Services, deletes its surplus ones, and returns the node port of
// each Machine.
func (r *reconciler) staticServices(ctx context.Context, set *v1alpha1.MachineSet) (ports map[string]nodePort, problem string, err error) {
	ports = map[string]nodePort{}
	names := map[string]bool{}
	for i, s := range proxy.StaticServices(options(set)) {
		names[s.Name] = true
		u, err := desired(set, corev1.SchemeGroupVersion.WithKind("Service"), s)
		if err != nil {
			return nil, "", err
		}
		o := &corev1.Service{}
		if _, err := r.syncNamed(ctx, set, s.Name, u, o); err != nil {
			if !isForStatus(err) {
				return nil, "", err
			}
			return nil, sentence(err.Error()), nil
		}
		if at, ok := nodePortOf(o); ok && i < len(set.Spec.Machines) {
			ports[set.Spec.Machines[i].Name] = at
		}
	}
	all := &corev1.ServiceList{}
	if err := r.kube.List(ctx, all, client.InNamespace(set.GetNamespace()), client.MatchingLabels{meta.LabelMachineSet: set.GetName()}); err != nil {
		return nil, "", errors.Wrap(err, "cannot list Services")
	}
	for i := range all.Items {
		s := &all.Items[i]
		if names[s.GetName()] || !metav1.IsControlledBy(s, set) || s.GetDeletionTimestamp() != nil {
			continue
		}
		if err := r.kube.Delete(ctx, s, client.Preconditions{UID: ptr.To(s.GetUID())}); client.IgnoreNotFound(err) != nil {
			return nil, "", errors.Wrapf(hinted(err), "cannot delete Service %q", s.GetName())
		}
	}
	return ports, "", nil
}

// nodeReady reports whether a node is ready.
func nodeReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func addressType(t v1alpha1.NodeAddressType) v1alpha1.NodeAddressType {
	return cmp.Or(t, v1alpha1.NodeExternalIP)
}

// endpoints returns the addresses of nodes at which a port answers. Addresses that the machine has stay while
// their node is there, so that a change of other nodes changes nothing; ready nodes are preferred.
// The same nodes in another order give the same addresses.
func endpoints(nodes []corev1.Node, t v1alpha1.NodeAddressType, port nodePort, existing []string) []string {
	type candidate struct {
		endpoint string
		ready    bool
		existing bool
	}
	var all []candidate
	for _, n := range nodes {
		if n.GetDeletionTimestamp() != nil {
			continue
		}
		for _, a := range n.Status.Addresses {
			addr, err := netip.ParseAddr(a.Address)
			if string(a.Type) != string(addressType(t)) || err != nil || !addr.Unmap().IsGlobalUnicast() || !port.families.Has(addr) {
				continue
			}
			e := netip.AddrPortFrom(addr.Unmap(), uint16(port.port)).String()
			all = append(all, candidate{e, nodeReady(&n), slices.Contains(existing, e)})
		}
	}
	first := func(a, b bool) int {
		switch {
		case a == b:
			return 0
		case a:
			return -1
		}
		return 1
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(first(a.ready, b.ready), first(a.existing, b.existing), cmp.Compare(a.endpoint, b.endpoint))
	})
	all = slices.CompactFunc(all, func(a, b candidate) bool { return a.endpoint == b.endpoint })
	var out []string
	for _, c := range all[:min(len(all), maxStaticEndpoints)] {
		out = append(out, c.endpoint)
	}
	slices.Sort(out)
	return out
}
