// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleendpoints

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleendpoints/proxies"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/egress"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
)

// inputs is the schema of this function's input, in pipelines of other composites.
var inputs = compose.NewInputSchema(gatewayv1alpha1.TailscaleEndpointsKind)

// facts are all inputs of a plan.
type facts struct {
	owner compose.Owner
	spec  gatewayv1alpha1.TailscaleEndpointsSpec

	// reported are the StatefulSets in the status.
	reported []gatewayv1alpha1.StatefulSetStatus

	// conditions are the types of the object's conditions.
	conditions map[xpv2.ConditionType]bool

	// envoyGateway are the namespaces in which Envoy Gateway runs.
	envoyGateway []string

	observed

	// health is the health of the targets that Gateways reach through the proxies. It is nil
	// without a report.
	health *tailnetv1alpha1.HealthReportSpec

	// serviceNames are the names of the Services of endpoints, by endpoint.
	serviceNames map[string]string

	// attachments are the ServiceAttachments that need a port or a right of these endpoints before
	// agents can use them.
	attachments []tailnetv1alpha1.ServiceAttachment

	// hosts reports whether there is a service to host. It is read only if proxies.IngressOnRequest is
	// true.
	hosts bool

	// egressConfig is the data of the egress group's ConfigMap. It is nil if there is none.
	egressConfig map[string]string

	// access reports whether the namespace may use the tailnet, and tailnetTags are the tags that
	// the tailnet adds to every machine.
	access      compose.TailnetVerdict
	tailnetTags []tailnetv1alpha1.Tag

	// tailnetOpen means that the object names no tailnet. The tailnet in spec is found then, or
	// empty.
	tailnetOpen bool

	// waiting is a message for the user about objects that Crossplane has not read yet. The facts
	// above are incomplete until it is empty.
	waiting string
}

// observed holds the children that exist.
type observed struct {
	// children are the resource names of all of them, sorted.
	children []string

	// proxySet is nil if there is none.
	proxySet *tailnetv1alpha1.ProxySet

	// discovery is nil if there is none.
	discovery *tailnetv1alpha1.Discovery

	// machineSets are the MachineSets by resource name.
	machineSets map[string]*tailnetv1alpha1.MachineSet
}

// read returns the facts of a run. The run requires all objects that Crossplane has not read yet at
// the same time.
func read(r *compose.Run, envoyGateway []string) (facts, error) {
	xr := &gatewayv1alpha1.TailscaleEndpoints{}
	if err := r.Object(inputs, xr); err != nil {
		return facts{}, err
	}
	f := facts{
		owner: compose.OwnerOf(xr), spec: xr.Spec, reported: xr.Status.StatefulSets,
		conditions: r.ConditionTypes(), envoyGateway: envoyGateway,
	}
	f.spec.Endpoints = egress.Expand(f.spec.Endpoints)
	if f.owner.Namespace == "" {
		return f, errors.New("cannot compose proxies for an object without a namespace")
	}
	var err error
	if f.observed, err = observe(r); err != nil {
		return f, err
	}
	if err := f.checkTailnet(r.HasInput()); err != nil {
		return f, err
	}
	// Routes cannot refer to children of a step, so there is no health to read.
	if !r.HasInput() {
		if f.health, err = r.Health(gatewayv1alpha1.TailscaleEndpointsKind, f.owner); err != nil {
			return f, err
		}
	}
	if f, err = readRequests(r, f); err != nil {
		return f, err
	}
	return readTailnet(r, f)
}

// readTailnet adds the facts about the tailnet. If the spec names none, it is that of the existing
// proxies, else the only one that allows the namespace.
func readTailnet(r *compose.Run, f facts) (facts, error) {
	if f.tailnetOpen = f.spec.Tailnet == ""; f.tailnetOpen {
		f.spec.Tailnet = f.joined()
	}
	var config *tailnetv1alpha1.ClusterProviderConfig
	var waiting string
	var err error
	if f.spec.Tailnet == "" {
		f.spec.Tailnet, config, f.access, waiting, err = r.OnlyTailnet(f.owner.Namespace)
	} else {
		config, f.access, waiting, err = r.Tailnet(f.spec.Tailnet, f.owner.Namespace)
	}
	if err != nil {
		return f, err
	}
	f.waiting = cmp.Or(waiting, f.waiting)
	if config != nil {
		f.tailnetTags = config.Spec.Tags
	}
	return f, nil
}

// joined returns the tailnet of the existing proxies. It is empty if there are none.
func (o observed) joined() string {
	if o.proxySet != nil {
		return o.proxySet.Spec.Tailnet
	}
	for _, name := range slices.Sorted(maps.Keys(o.machineSets)) {
		if m := o.machineSets[name]; m != nil {
			return m.Spec.ProviderConfigReference.Name
		}
	}
	return ""
}

// observe returns the children of a run.
func observe(r *compose.Run) (o observed, err error) {
	o.children = r.ObservedNames()
	slices.Sort(o.children)
	o.machineSets = map[string]*tailnetv1alpha1.MachineSet{}
	for _, direction := range []string{proxy.DirectionIngress, proxy.DirectionEgress} {
		name := nameOf(nameMachineSet, direction)
		if o.machineSets[name], err = compose.ObservedChild[tailnetv1alpha1.MachineSet](r, name); err != nil {
			return o, err
		}
	}
	if o.proxySet, err = compose.ObservedChild[tailnetv1alpha1.ProxySet](r, nameProxySet); err != nil {
		return o, err
	}
	o.discovery, err = compose.ObservedChild[tailnetv1alpha1.Discovery](r, nameDiscovery)
	return o, err
}

// has reports whether there is a child with a resource name.
func (o observed) has(name string) bool {
	_, ok := slices.BinarySearch(o.children, name)
	return ok
}

// readRequests adds the requests of other objects to the endpoints, and the egress config. Neither
// kind has a status, so these objects change rarely.
func readRequests(r *compose.Run, f facts) (facts, error) {
	px := proxiesOf(f)
	needAttachments, needHosted, needConfig := requireAttachments(f.owner), requireHosted(f.owner), requireConfig(f.owner, px.Egress.Set)
	r.Require(needAttachments)
	if proxies.IngressOnRequest(f.spec) {
		r.Require(needHosted)
	}
	if px.Egress.Exists() {
		r.Require(needConfig)
	}

	serviceNames, named, err := readServiceNames(r, f, px)
	if err != nil {
		return f, err
	}
	f.serviceNames = serviceNames
	attachments, resolved, err := compose.Required[tailnetv1alpha1.ServiceAttachment](r, needAttachments)
	switch {
	case err != nil:
		return f, err
	case !resolved:
		f.waiting = "Waiting for Crossplane to read the ServiceAttachments"
		return f, nil
	case !named:
		f.waiting = "Waiting for Crossplane to read the Services of the endpoints' names"
		return f, nil
	}
	f.attachments = attachments
	if proxies.IngressOnRequest(f.spec) {
		hosted, resolved, err := compose.Required[tailnetv1alpha1.ServiceAttachment](r, needHosted)
		if err != nil {
			return f, err
		}
		if !resolved {
			f.waiting = "Waiting for Crossplane to read the ServiceAttachments"
			return f, nil
		}
		f.hosts = slices.ContainsFunc(hosted, func(a tailnetv1alpha1.ServiceAttachment) bool { return a.GetDeletionTimestamp() == nil })
	}
	if !px.Egress.Exists() {
		return f, nil
	}
	configs, resolved, err := compose.Required[corev1.ConfigMap](r, needConfig)
	if err != nil {
		return f, err
	}
	if !resolved {
		f.waiting = "Waiting for Crossplane to read the ConfigMap of the egress proxies"
	}
	if len(configs) > 0 {
		f.egressConfig = configs[0].Data
	}
	return f, nil
}

// requireAttachments returns the requirement of the ServiceAttachments that need a port or a right
// of the endpoints before agents can use them. There may be many others, which this function does
// not need.
func requireAttachments(owner compose.Owner) compose.Requirement {
	return compose.Requirement{
		Key:        "attachments",
		APIVersion: tailnetv1alpha1.SchemeGroupVersion.String(),
		Kind:       tailnetv1alpha1.ServiceAttachmentKind,
		Namespace:  owner.Namespace,
		Labels:     map[string]string{meta.LabelEndpoints: owner.Name, meta.LabelProvision: "true"},
	}
}

// requireHosted returns the requirement of the ServiceAttachments of services that the endpoints
// host.
func requireHosted(owner compose.Owner) compose.Requirement {
	return compose.Requirement{
		Key:        "hosted",
		APIVersion: tailnetv1alpha1.SchemeGroupVersion.String(),
		Kind:       tailnetv1alpha1.ServiceAttachmentKind,
		Namespace:  owner.Namespace,
		Labels:     map[string]string{meta.LabelEndpoints: owner.Name, meta.LabelDirection: proxy.DirectionIngress},
	}
}

// requireConfig returns the requirement of the egress group's ConfigMap. It is by name, so that an
// object that is created again finds the ConfigMap of its predecessor.
func requireConfig(owner compose.Owner, name string) compose.Requirement {
	return compose.Requirement{Key: "egress", APIVersion: "v1", Kind: "ConfigMap", Namespace: owner.Namespace, Name: name}
}

// readServiceNames returns the names of the Services of endpoints: NAME-ENDPOINT, unless another
// Service of the namespace has that name. An existing Service keeps its name. It returns false
// until Crossplane has read the Services.
func readServiceNames(r *compose.Run, f facts, px proxies.Proxies) (map[string]string, bool, error) {
	out, all := map[string]string{}, true
	if !px.Egress.Wants {
		return out, true, nil
	}
	for _, endpoint := range targetFacts(f, px, searchOf(f, px)).ProxiedEndpoints() {
		existing, err := compose.ObservedChild[corev1.Service](r, serviceOf(endpoint))
		if err != nil {
			return nil, false, err
		}
		if existing != nil {
			out[endpoint] = existing.GetName()
			continue
		}
		name := names.EndpointService(f.owner.Name, endpoint)
		need := compose.Requirement{Key: serviceOf(endpoint), APIVersion: "v1", Kind: "Service", Namespace: f.owner.Namespace, Name: name}
		found, looked, err := compose.Lookup[corev1.Service](r, need)
		if err != nil {
			return nil, false, err
		}
		all = all && looked
		if len(found) > 0 && !f.ownsService(found[0], endpoint) {
			name = names.OtherEndpointService(f.owner.Name, endpoint)
		}
		out[endpoint] = name
	}
	return out, all, nil
}

// serviceOf returns the resource name of an endpoint's Service.
func serviceOf(endpoint string) string { return nameTargetService + "-" + endpoint }

// ownsService reports whether a Service belongs to an endpoint of this object, or of a predecessor
// with the same name.
func (f facts) ownsService(s corev1.Service, endpoint string) bool {
	return s.Labels[meta.LabelEndpoints] == f.owner.Name && s.Labels[meta.LabelEndpoint] == endpoint
}

// checkTailnet returns an error for another tailnet than that of the existing proxies. The API server
// rejects such a change of a TailscaleEndpoints, unless it named no tailnet before.
func (f facts) checkTailnet(step bool) error {
	joined := f.joined()
	switch {
	case joined == "" || f.spec.Tailnet == "" || f.spec.Tailnet == joined:
		return nil
	case step:
		return errors.Errorf("cannot move proxies from tailnet %q: spec.tailnet of the input is immutable; give the step another name", joined)
	}
	return errors.Errorf("cannot move proxies from tailnet %q: set spec.tailnet to it, or create another TailscaleEndpoints", joined)
}
