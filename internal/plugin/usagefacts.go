// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/causes"
	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/check"
)

// week is the time in which Let's Encrypt's limit of new names refills.
const week = 7 * 24 * time.Hour

// usages adds how much the objects of a cluster use of limits.
type usages struct {
	at  time.Time
	out []check.Usage

	// names with a certificate of Tailscale, by TailscaleEndpoints, and new ones by the domain of a tailnet.
	names, created map[string]map[string]bool
}

func newUsages(at time.Time) *usages {
	return &usages{at: at, names: map[string]map[string]bool{}, created: map[string]map[string]bool{}}
}

// add counts an object. Fields of other types than expected count as absent.
func (s *usages) add(u *unstructured.Unstructured) {
	count := func(limit check.Limit, n int) {
		if n > 0 {
			s.out = append(s.out, check.Usage{Object: referenceOf(u).String(), Limit: limit, Count: n})
		}
	}
	switch u.GetKind() {
	case gatewayv1alpha1.TailscaleEndpointsKind:
		count(check.LimitTargets, length(u.Object, "status", "egressTargets"))
		count(check.LimitDiscovered, length(u.Object, "status", "discoveredEndpoints"))
	case gatewayv1alpha1.TailscaleServicesKind:
		count(check.LimitListed, length(u.Object, "status", "discoveredServices"))
	case gatewayv1alpha1.TailscaleGatewayKind:
		discovered, hostnames := 0, 0
		for _, item := range items(u.Object, "status", "tailnetStatus") {
			m, _ := item.(map[string]any)
			n, _, _ := unstructured.NestedInt64(m, "discoveredServices")
			discovered, hostnames = max(discovered, int(n)), max(hostnames, length(m, "splitDNS", "domains"))
		}
		count(check.LimitDiscovered, discovered)
		count(check.LimitHostnames, hostnames)
	case v1alpha1.GatewayReportKind:
		count(check.LimitRoutes, length(u.Object, "spec", "routes"))
		count(check.LimitGeneratedRoutes, length(u.Object, "spec", "generatedRoutes"))
	case v1alpha1.ServiceAttachmentKind:
		s.certificate(u)
	}
}

// certificate counts the name of an attachment that has a certificate of Tailscale.
func (s *usages) certificate(u *unstructured.Unstructured) {
	name, _, _ := unstructured.NestedString(u.Object, "spec", "dnsName")
	endpoints, _, _ := unstructured.NestedString(u.Object, "spec", "endpoints")
	if name = strings.TrimSuffix(name, "."); name == "" || endpoints == "" {
		return
	}
	owner := causes.Reference{Kind: gatewayv1alpha1.TailscaleEndpointsKind, Namespace: u.GetNamespace(), Name: endpoints}
	note(s.names, owner.String(), name)
	if _, domain, ok := strings.Cut(name, "."); ok && s.at.Sub(u.GetCreationTimestamp().Time) < week {
		note(s.created, "tailnet "+domain, name)
	}
}

func note(sets map[string]map[string]bool, key, value string) {
	if sets[key] == nil {
		sets[key] = map[string]bool{}
	}
	sets[key][value] = true
}

// all returns what all objects use.
func (s *usages) all(objects []causes.Object) []check.Usage {
	out := slices.Concat(s.out, check.GatewayServices(objects))
	for limit, sets := range map[check.Limit]map[string]map[string]bool{check.LimitCertificates: s.names, check.LimitNewCertificates: s.created} {
		for _, key := range slices.Sorted(maps.Keys(sets)) {
			out = append(out, check.Usage{Object: key, Limit: limit, Count: len(sets[key])})
		}
	}
	return out
}

// items returns a list of an object without a copy, and nil for anything else.
func items(o map[string]any, fields ...string) []any {
	v, _, err := unstructured.NestedFieldNoCopy(o, fields...)
	if err != nil {
		return nil
	}
	list, _ := v.([]any)
	return list
}

func length(o map[string]any, fields ...string) int { return len(items(o, fields...)) }
