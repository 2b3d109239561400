// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	"tailscale.com/net/tsaddr"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/text"
)

// maxMessage and maxReason limit the message and the reason of a condition in an event, whose maximum is 1024 and
// 128 bytes.
const (
	maxMessage = 800
	maxReason  = 100
)

// withStatus adds the load balancer status of a Service to its plan.
func (p plan) withStatus(f facts) plan {
	published := f.own != nil && f.own.DeletionTimestamp == nil && p.remove == nil
	var want []corev1.LoadBalancerIngress
	if published {
		want = ingressOf(f.own)
		if isReady(f.own) && len(want) > 0 {
			p.published = want[0].Hostname
		}
	}
	if !isClassed(f.service, f.operator) {
		return p
	}
	existing := f.service.Status.LoadBalancer.Ingress
	if published && !isReady(f.own) && !equality.Semantic.DeepEqual(existing, want) {
		// Clients would get no answer. Addresses that are there stay, because each failover makes the object
		// not ready for a moment.
		want = nil
	}
	if !equality.Semantic.DeepEqual(existing, want) && len(existing)+len(want) > 0 {
		p.report, p.ingress = true, want
	}
	return p
}

func isReady(o *gatewayv1alpha1.TailscaleServices) bool {
	return o.Status.GetCondition(xpv2.TypeReady).Status == corev1.ConditionTrue
}

// ingressOf returns the load balancer status of a TailscaleServices: its name, and its addresses, which are not for
// kube-proxy. It is empty until both are known. Users with Crossplane's role crossplane-edit can write any status,
// so only addresses of Tailscale, and the name that the spec leads to, count.
func ingressOf(o *gatewayv1alpha1.TailscaleServices) []corev1.LoadBalancerIngress {
	vip := o.Status.VIPService
	if vip == nil {
		return nil
	}
	label, domain, _ := strings.Cut(vip.DNSName, ".")
	if "svc:"+label != string(o.Spec.VIPService.Name) || domain == "" || len(validation.IsDNS1123Subdomain(vip.DNSName)) > 0 {
		return nil
	}
	out := []corev1.LoadBalancerIngress{{Hostname: vip.DNSName}}
	for _, a := range vip.Addresses {
		if ip, err := netip.ParseAddr(a); err == nil && tsaddr.IsTailscaleIP(ip) {
			out = append(out, corev1.LoadBalancerIngress{IP: ip.String(), IPMode: ptr.To(corev1.LoadBalancerIPModeProxy)})
		}
	}
	if len(out) == 1 {
		return nil
	}
	return out
}

// inspected are the conditions of a TailscaleServices that can be a problem, in the order of their importance.
var inspected = []xpv2.ConditionType{meta.TypeAccepted, meta.TypeEndpointsSelected, meta.TypeVIPServiceReady, meta.TypeAdvertised, meta.TypeApproved, meta.TypePortsAllowed}

// transient are the reasons of conditions that need no person: objects are being created, or proxies start.
var transient = []xpv2.ConditionReason{meta.ReasonNoEndpointsMatch, meta.ReasonEndpointsProvisioned, meta.ReasonVIPServiceCreating, meta.ReasonNoHost, meta.ReasonApprovalPending}

// problemOf returns the first problem in the conditions of a TailscaleServices and of its proxies, which may be nil.
func problemOf(o *gatewayv1alpha1.TailscaleServices, endpoints *gatewayv1alpha1.TailscaleEndpoints) *problem {
	if endpoints != nil {
		if c := endpoints.Status.GetCondition(meta.TypeTailnetAccepted); c.Status == corev1.ConditionFalse {
			return conditionProblem(gatewayv1alpha1.TailscaleEndpointsKind, endpoints.GetName(), c)
		}
	}
	for _, t := range inspected {
		if c := o.Status.GetCondition(t); c.Status == corev1.ConditionFalse && !slices.Contains(transient, c.Reason) {
			return conditionProblem(gatewayv1alpha1.TailscaleServicesKind, o.GetName(), c)
		}
	}
	return nil
}

func conditionProblem(kind, name string, c xpv2.Condition) *problem {
	return &problem{reason: event.Reason(text.Cut(text.Visible(string(c.Reason)), maxReason)), message: fmt.Sprintf("%s %q: %s", kind, name, text.Cut(text.Visible(c.Message), maxMessage))}
}
