// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/routes"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/zone"
)

// Children returns what resolves hostnames. The tailnet learns of the proxies once they
// exist, and once they have something to answer.
func (p Plan) Children() (compose.Children, error) {
	var out compose.Children
	for _, v := range p.Zones {
		c, err := composeZone(p.Owner, v)
		if err != nil {
			return out, err
		}
		out.Add(v.zoneKey(), c, true)
		if !v.settled() {
			out.Incomplete, out.Requeue = true, true
		}
		if d := composeSplitDNS(p.Owner, v); d != nil {
			out.Add(v.splitKey(), d, v.ready())
		}
	}
	return out, nil
}

// composeZone returns the ConfigMap with the zone.
func composeZone(owner compose.Owner, v *Zone) (*corev1.ConfigMap, error) {
	c := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: v.name, Namespace: owner.Namespace, Labels: v.Tailnet.Labels(owner)}}
	if v.unknown && v.config != nil {
		c.Data = v.config.Data
		return c, nil
	}
	z, err := v.zone.Encode()
	c.Data = map[string]string{zone.ConfigMapKey: z}
	return c, err
}

// composeSplitDNS returns the SplitDNS. It returns nil while there is nothing to configure in
// the tailnet.
func composeSplitDNS(owner compose.Owner, v *Zone) *tailnetv1alpha1.SplitDNS {
	d := &tailnetv1alpha1.SplitDNS{ObjectMeta: metav1.ObjectMeta{Name: v.name, Namespace: owner.Namespace, Labels: v.Tailnet.Labels(owner)}}
	// An annotation records what the object has added to the tailnet.
	metav1.SetMetaDataLabel(&d.ObjectMeta, meta.LabelBackup, "true")
	d.SetProviderConfigReference(compose.ProviderConfigRef(v.Tailnet.Ref))
	if v.split != nil {
		d.Spec.ForProvider = v.split.Spec.ForProvider
	}
	if len(v.nameservers) > 0 {
		d.Spec.ForProvider.Nameservers = v.nameservers
	}
	if !v.unknown && (v.split != nil || len(v.zone.Names) > 0 || !v.waiting) {
		d.Spec.ForProvider.Domains = v.domains()
	}
	if len(d.Spec.ForProvider.Domains) == 0 || len(d.Spec.ForProvider.Nameservers) == 0 {
		return nil
	}
	return d
}

// zoneKey returns the resource name of the ConfigMap.
func (v *Zone) zoneKey() string { return PrefixZone + v.Tailnet.Name }

// splitKey returns the resource name of the SplitDNS.
func (v *Zone) splitKey() string { return PrefixSplitDNS + v.Tailnet.Name }

// domains returns the names of the zone's domains.
func (v *Zone) domains() []string {
	out := make([]string, len(v.zone.Domains))
	for i, d := range v.zone.Domains {
		out[i] = d.Name
	}
	return out
}

// ready reports whether the tailnet has the domains.
func (v *Zone) ready() bool {
	return v.split != nil && resource.IsConditionTrue(v.split.GetCondition(xpv2.TypeReady))
}

// settled reports whether no more changes are expected. Without hostnames the tailnet needs no
// SplitDNS.
func (v *Zone) settled() bool {
	return v.ready() || !v.unknown && !v.waiting && len(v.zone.Domains) == 0
}

// problem returns the problem that the user has to fix, or an empty string.
func (v *Zone) problem() string {
	if v.split == nil {
		return ""
	}
	for _, t := range []xpv2.ConditionType{xpv2.TypeReady, xpv2.TypeSynced} {
		if c := v.split.GetCondition(t); c.Status == corev1.ConditionFalse && c.Message != "" {
			return c.Message
		}
	}
	return ""
}

// Status returns what is resolved, for the status. It returns nil until the tailnet is
// configured.
func (v *Zone) Status() *gatewayv1alpha1.GatewaySplitDNSStatus {
	if !v.ready() {
		return nil
	}
	p := v.split.Spec.ForProvider
	return &gatewayv1alpha1.GatewaySplitDNSStatus{Domains: p.Domains, Nameservers: p.Nameservers}
}

// Ready returns the condition SplitDNSReady: True if all hostnames resolve. Problems that
// the user must fix come before those that only need time.
func (p Plan) Ready() compose.Condition {
	c := compose.Condition{Status: compose.False}
	for _, v := range p.Zones {
		if m := v.problem(); m != "" {
			c.Reason, c.Message = meta.ReasonSplitDNSError, fmt.Sprintf("SplitDNS %s: %s", v.name, m)
			return c
		}
	}
	for _, v := range p.Zones {
		if v.beyond != nil {
			c.Reason, c.Message = meta.ReasonNotGranted, fmt.Sprintf("Tailnet %q: %v", v.Tailnet.Ref, v.beyond)
			return c
		}
		if v.full {
			c.Reason = meta.ReasonTooManyHostnames
			c.Message = fmt.Sprintf("More than %d domains or %d hostnames in tailnet %q; name parent domains in splitDNS.domains, or split the routes over several Gateways", maxDomains, maxNames, v.Tailnet.Ref)
			return c
		}
		if len(v.uncovered) > 0 {
			c.Reason, c.Message = meta.ReasonHostnamesNotCovered, v.notCovered()
			return c
		}
	}
	if routes.Omitted(p.Report) != (tailnetv1alpha1.ReportedOmissions{}) {
		c.Reason, c.Message = meta.ReasonTooManyHostnames, routes.TooMany(p.Owner.Name)
		return c
	}
	for _, v := range p.Zones {
		if !v.settled() {
			c.Reason, c.Message = meta.ReasonSplitDNSCreating, "Waiting for proxies that answer, and for Tailscale to send devices to them"
			return c
		}
	}
	return compose.Condition{Status: compose.True, Reason: meta.ReasonHostnamesResolve, Message: "Devices of the tailnets ask proxies for all hostnames"}
}

// notCovered returns a message with the first hostname that cannot be resolved, and the number
// of the others.
func (v *Zone) notCovered() string {
	h := v.uncovered[0]
	m := fmt.Sprintf("%s does not resolve in tailnet %q: name its domain in splitDNS.domains", h, v.Tailnet.Ref)
	if len(v.Tailnet.SplitDNS.Domains) == 0 {
		m = fmt.Sprintf("%s does not resolve in tailnet %q: a wildcard needs its parent domain in splitDNS.domains, with which the tailnet asks the proxies for all names below", h, v.Tailnet.Ref)
	}
	if n := len(v.uncovered) - 1; n > 0 {
		m += fmt.Sprintf(" (and %d more)", n)
	}
	return m
}
