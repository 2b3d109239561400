// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package loadbalancer assigns addresses to Services of type LoadBalancer, as a
// cloud's controller does. It only writes their status: kube-proxy serves the
// addresses in a Service's status, and the lab's networks have a route to their
// range.
package loadbalancer

import (
	"cmp"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Assign returns the Services whose status must change, with the new status, sorted by
// age and name. A Service keeps its address; a new one gets the lowest free address of
// pool, except for the network address. Services with a class belong to another
// controller. When the pool is exhausted, the youngest get none.
func Assign(pool netip.Prefix, all []*corev1.Service) []*corev1.Service {
	sorted := slices.Clone(all)
	slices.SortFunc(sorted, func(a, b *corev1.Service) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	assigned := map[*corev1.Service]netip.Addr{}
	used := map[netip.Addr]bool{}
	for _, s := range sorted {
		a, ok := current(s)
		if ok && wants(s) && pool.Contains(a) && !used[a] {
			assigned[s], used[a] = a, true
		}
	}
	var changed []*corev1.Service
	next := pool.Masked().Addr().Next()
	for _, s := range sorted {
		old, present := current(s)
		if !wants(s) {
			// Addresses of other ranges belong to other controllers.
			if present && pool.Contains(old) {
				changed = append(changed, with(s, nil))
			}
			continue
		}
		if _, ok := assigned[s]; ok {
			continue
		}
		for used[next] {
			next = next.Next()
		}
		if !pool.Contains(next) {
			continue
		}
		used[next] = true
		mode := corev1.LoadBalancerIPModeVIP
		changed = append(changed, with(s, []corev1.LoadBalancerIngress{{IP: next.String(), IPMode: &mode}}))
	}
	return changed
}

func wants(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeLoadBalancer && s.Spec.LoadBalancerClass == nil && s.DeletionTimestamp == nil
}

// current returns the address of s, and false unless s has exactly one.
func current(s *corev1.Service) (netip.Addr, bool) {
	if len(s.Status.LoadBalancer.Ingress) != 1 {
		return netip.Addr{}, false
	}
	a, err := netip.ParseAddr(s.Status.LoadBalancer.Ingress[0].IP)
	return a, err == nil
}

func with(s *corev1.Service, ingress []corev1.LoadBalancerIngress) *corev1.Service {
	s = s.DeepCopy()
	s.Status.LoadBalancer.Ingress = ingress
	return s
}
