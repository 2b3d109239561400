// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleendpoints

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/allow"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
)

// Resource names of children that there is one of, whatever the directions.
const (
	nameProxySet  = "proxyset"
	nameDiscovery = "discovery"
)

// endpoints are one TailscaleEndpoints: what is wanted of it, and what was seen.
type endpoints struct {
	owner compose.Owner
	xr    *gatewayv1alpha1.TailscaleEndpoints

	// envoyGateway are the namespaces in which Envoy Gateway runs.
	envoyGateway []string

	// ingress and egress proxies. A group that is not wanted may still have pods.
	ingress, egress *group

	// proxySet that was observed. Nil when there is none.
	proxySet *tailnetv1alpha1.ProxySet

	// discovery that was observed. Nil when there is none.
	discovery *tailnetv1alpha1.Discovery

	// attachments that ask something of these endpoints before agents can act.
	attachments []tailnetv1alpha1.ServiceAttachment

	// egressConfig is what the ConfigMap of the egress group holds. Nil when there
	// is none.
	egressConfig map[string]string

	// services are the names of the Services of endpoints.
	services map[string]string

	// health of what Gateways reach through the proxies. Nil unless it is reported.
	health *tailnetv1alpha1.HealthReportSpec

	// children were observed, of any kind.
	children bool

	// composed reports whether there are to be proxies at all.
	composed bool

	// tags of the proxies, the tailnet's included.
	tags []tailnetv1alpha1.Tag
}

func newEndpoints(owner compose.Owner, xr *gatewayv1alpha1.TailscaleEndpoints, envoyGateway []string) *endpoints {
	e := &endpoints{owner: owner, xr: xr, envoyGateway: envoyGateway}
	e.ingress = newGroup(e, proxy.DirectionIngress)
	e.egress = newGroup(e, proxy.DirectionEgress)
	return e
}

// groups that are wanted, or not gone yet.
func (e *endpoints) groups() []*group {
	return slices.DeleteFunc([]*group{e.ingress, e.egress}, func(g *group) bool { return !g.exists() })
}

// wantedGroups are the groups that are to be.
func (e *endpoints) wantedGroups() []*group {
	return slices.DeleteFunc(e.groups(), func(g *group) bool { return !g.wants })
}

func (e *endpoints) observe(r *compose.Run) error {
	for _, g := range []*group{e.ingress, e.egress} {
		if err := g.observe(r); err != nil {
			return err
		}
	}
	ps, d := &tailnetv1alpha1.ProxySet{}, &tailnetv1alpha1.Discovery{}
	ok, err := r.Observed(nameProxySet, ps)
	if err != nil {
		return err
	}
	if ok {
		e.proxySet = ps
	}
	if ok, err = r.Observed(nameDiscovery, d); err != nil {
		return err
	}
	if ok {
		e.discovery = d
	}
	e.children = len(r.ObservedNames()) > 0
	return nil
}

// require what others want of the endpoints, and the egress config. It returns
// what Crossplane has not read yet, for the user; empty when all is known. Both
// kinds have no status: none of them changes without need.
func (e *endpoints) require(r *compose.Run) (waiting string, err error) {
	attachments := compose.Requirement{
		Key:        "attachments",
		APIVersion: tailnetv1alpha1.SchemeGroupVersion.String(),
		Kind:       tailnetv1alpha1.ServiceAttachmentKind,
		Namespace:  e.owner.Namespace,
		// Those without the label are none of this function's business, and there
		// may be many.
		Labels: map[string]string{meta.LabelEndpoints: e.owner.Name, meta.LabelProvision: "true"},
	}
	r.Require(attachments)
	hosted := compose.Requirement{
		Key:        "hosted",
		APIVersion: tailnetv1alpha1.SchemeGroupVersion.String(),
		Kind:       tailnetv1alpha1.ServiceAttachmentKind,
		Namespace:  e.owner.Namespace,
		Labels:     map[string]string{meta.LabelEndpoints: e.owner.Name, meta.LabelDirection: proxy.DirectionIngress},
	}
	if e.ingressOnRequest() {
		r.Require(hosted)
	}
	// By name: who is made again finds the ConfigMap of who was before.
	config := compose.Requirement{Key: "egress", APIVersion: "v1", Kind: "ConfigMap", Namespace: e.owner.Namespace, Name: e.egress.set}
	if e.egress.exists() {
		r.Require(config)
	}

	named, err := e.nameServices(r)
	if err != nil {
		return "", err
	}
	found, resolved, err := compose.Required[tailnetv1alpha1.ServiceAttachment](r, attachments)
	if err != nil {
		return "", err
	}
	if !resolved {
		return "Waiting for Crossplane to read the ServiceAttachments", nil
	}
	e.attachments = found
	if !named {
		return "Waiting for Crossplane to read the Services of the endpoints' names", nil
	}
	if e.ingressOnRequest() {
		hosts, resolved, err := compose.Required[tailnetv1alpha1.ServiceAttachment](r, hosted)
		if err != nil {
			return "", err
		}
		if !resolved {
			return "Waiting for Crossplane to read the ServiceAttachments", nil
		}
		if slices.ContainsFunc(hosts, func(a tailnetv1alpha1.ServiceAttachment) bool { return a.GetDeletionTimestamp() == nil }) {
			e.ingress.want()
		}
	}
	if !e.egress.exists() {
		return "", nil
	}
	configs, resolved, err := compose.Required[corev1.ConfigMap](r, config)
	if err != nil {
		return "", err
	}
	if !resolved {
		return "Waiting for Crossplane to read the ConfigMap of the egress proxies", nil
	}
	if len(configs) > 0 {
		e.egressConfig = configs[0].Data
	}
	return "", nil
}

// judge what a tailnet's verdict means for the proxies. A tailnet that is gone, or
// does not say who may use it, harms no proxy that runs: what was known of it is
// in the ProxySet. One that does not allow the namespace leaves none.
func (e *endpoints) judge(v compose.TailnetVerdict, t *tailnetv1alpha1.ClusterProviderConfig) {
	switch {
	case v.Accepted:
		e.composed = true
		e.tags = compose.Tags(t.Spec.Tags, compose.Tags(e.xr.Spec.Tags))
	case v.Reason == meta.ReasonTailnetNotFound || v.Reason == meta.ReasonInvalidSelector || v.Reason == meta.ReasonNotGranted:
		e.composed = e.children
		e.tags = compose.Tags(e.xr.Spec.Tags)
		if e.proxySet != nil {
			e.tags = e.proxySet.Spec.Tags
		}
	}
}

// asks judges what the spec asks of the tailnet by the namespace's grant.
func (e *endpoints) asks(g *allow.Grant) []*allow.ViolationError {
	out := []*allow.ViolationError{
		g.Kind("spec.tailnet", tailnetv1alpha1.MachineKind),
		allow.Tags(g, "spec.tags", e.xr.Spec.Tags),
		g.Pods("spec.proxy", e.xr.Spec.Proxy.PodSettings),
	}
	if e.xr.Spec.AutoDiscovery != nil {
		out = append(out, g.Kind("spec.autoDiscovery", tailnetv1alpha1.DiscoveryKind))
	}
	return out
}

// checkInput tells of a change that the API server refuses where it sees it.
func (e *endpoints) checkInput() error {
	if e.proxySet == nil || e.proxySet.Spec.Tailnet == e.xr.Spec.Tailnet {
		return nil
	}
	return errors.Errorf("cannot move proxies from tailnet %q: spec.tailnet of the input is immutable; give the step another name", e.proxySet.Spec.Tailnet)
}

// reachesOut reports whether the spec has targets, or looks for some.
func (e *endpoints) reachesOut() bool {
	return len(e.xr.Spec.Endpoints) > 0 || e.xr.Spec.AutoDiscovery != nil
}

// ingressOnRequest reports that there are ingress proxies beside those of egress once a
// service is to be hosted, for the spec leaves the directions to what is asked for.
func (e *endpoints) ingressOnRequest() bool {
	return e.xr.Spec.Proxy.ConnectionType == "" && e.reachesOut()
}

func (e *endpoints) replicas() int32 { return ptr.Deref(e.xr.Spec.Proxy.Replicas, defaultReplicas) }

func (e *endpoints) kernel() bool {
	return e.xr.Spec.Proxy.Networking == tailnetv1alpha1.NetworkingKernel
}
