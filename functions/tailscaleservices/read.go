// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscaleservices

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/attachments"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/grants"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/ports"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/presence"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/selection"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/succession"
	"github.com/tailscale-gateway/tailscale-gateway/internal/backendtls"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/namesake"
)

// inputs is the schema of this function's input, in pipelines of other composites.
var inputs = compose.NewInputSchema(gatewayv1alpha1.TailscaleServicesKind)

// Resource names of children, apart from those of attachments.
const (
	nameVIPService = "vipservice"
	nameEndpoints  = "endpoints"
	nameDiscovery  = "discovery"
)

// facts are all inputs of a plan.
type facts struct {
	owner compose.Owner

	// spec is the spec of the TailscaleServices, completed from the Service of its name.
	spec gatewayv1alpha1.TailscaleServicesSpec

	// reported is the Tailscale Service in the status. It is nil at first.
	reported *gatewayv1alpha1.ServiceVIPStatus

	// conditions are the types of the object's conditions.
	conditions map[xpv2.ConditionType]bool

	// step means that there is no TailscaleServices: a step of another composite's pipeline has the
	// spec as its input.
	step bool

	observed

	// health is the health of the targets that Gateways reach through the service. It is nil
	// without a report.
	health *tailnetv1alpha1.HealthReportSpec

	// sharing is how clusters share the service: the spec's, completed from the tailnet and the
	// observed service.
	sharing tailnetv1alpha1.Sharing

	// unfilled is why the Service of the object's name cannot complete the spec. It is nil if
	// it can.
	unfilled *ports.SpecError

	// gateways are the TailscaleGateways that are backends, by name. Missing ones are omitted.
	gateways map[string]*gatewayv1alpha1.TailscaleGateway

	// permissions are those to connect to Services of other namespaces.
	permissions grants.Permissions

	// authorities are those that backends trust, by ConfigMap.
	authorities map[string]backendtls.Authorities

	// sets are the ProxySets of the namespace.
	sets []tailnetv1alpha1.ProxySet

	// templateUsers are the attachments to the endpoints of the template. They are read only if
	// NeedsTemplateUsers of the succession is true.
	templateUsers      []tailnetv1alpha1.ServiceAttachment
	templateUsersKnown bool

	// access reports whether the namespace may use the tailnet, and tailnetTags are the tags that
	// the tailnet adds to every machine.
	access      compose.TailnetVerdict
	tailnetTags []tailnetv1alpha1.Tag

	// waiting is a message for the user about objects that Crossplane has not read yet. The facts
	// above are incomplete until it is empty.
	waiting string
}

// observed holds the children that exist.
type observed struct {
	// vip is nil if there is none.
	vip *tailnetv1alpha1.VIPService

	// endpoints of the template. They are nil if there are none.
	endpoints *gatewayv1alpha1.TailscaleEndpoints

	// discovery is nil if there is none.
	discovery *tailnetv1alpha1.Discovery

	// attachments are the ServiceAttachments by resource name.
	attachments map[string]*tailnetv1alpha1.ServiceAttachment
}

// read returns the facts of a run. Its requirements depend on the facts that it has read before.
func read(r *compose.Run) (facts, error) {
	xr := &gatewayv1alpha1.TailscaleServices{}
	if err := r.Object(inputs, xr); err != nil {
		return facts{}, err
	}
	f := facts{
		owner: compose.OwnerOf(xr), reported: xr.Status.VIPServiceStatus,
		conditions: r.ConditionTypes(), step: r.HasInput(),
	}
	f.spec = withBackends(withSelector(f.owner, xr.Spec))
	if f.owner.Namespace == "" {
		return f, errors.New("cannot compose a service for an object without a namespace")
	}
	var err error
	if f.observed, err = observe(r); err != nil {
		return f, err
	}
	f = f.withSharing(presence.Tailnet(f.vip), "")
	if f.step {
		// Routes cannot refer to children of a step, so there is no health to read.
		if err := f.checkInput(); err != nil {
			return f, err
		}
	} else if f.health, err = r.Health(gatewayv1alpha1.TailscaleServicesKind, f.owner); err != nil {
		return f, err
	}
	found, filled, err := readNamesake(r, f.owner, f.spec)
	if err != nil {
		return f, err
	}
	if filled {
		f.spec, f.unfilled = fill(f.spec, found)
	}
	if !f.publishes() {
		if !filled || !r.HealthRead() {
			f.waiting = "Waiting for Crossplane to read the Service and the HealthReport"
		}
		return f, nil
	}
	return readTailnet(r, f, filled)
}

// readTailnet adds the facts on which a Tailscale Service depends: endpoints, Gateways and the
// tailnet.
func readTailnet(r *compose.Run, f facts, filled bool) (facts, error) {
	sets, resolved, err := compose.Lookup[tailnetv1alpha1.ProxySet](r, requireProxySets(f.owner.Namespace))
	if err != nil {
		return f, err
	}
	gateways, looked, err := readGateways(r, f.owner, f.spec)
	if err != nil {
		return f, err
	}
	f.sets, f.gateways = sets, gateways
	authorities, parsed, err := readAuthorities(r, f.owner, f.spec)
	if err != nil {
		return f, err
	}
	f.authorities = authorities
	permissions, granted, err := grants.Read(r, grants.Facts{Owner: f.owner, Backends: f.spec.Backends, Attachments: f.attachments, Gateways: f.gateways})
	if err != nil {
		return f, err
	}
	if !resolved || !looked || !filled || !parsed {
		f.waiting = "Waiting for Crossplane to read the ProxySets, TailscaleGateways, the Service and ConfigMaps"
		return f, nil
	}
	f.permissions = permissions
	if !granted {
		f.waiting = "Waiting for Crossplane to read the ReferenceGrants for backends of other namespaces"
	}

	selected := selectFor(f)
	if selected.succession.NeedsTemplateUsers() {
		if f.templateUsers, f.templateUsersKnown, err = compose.Lookup[tailnetv1alpha1.ServiceAttachment](r, requireTemplateUsers(f.owner)); err != nil {
			return f, err
		}
	}
	name := selected.succession.Tailnet
	if name == "" {
		return f, nil
	}
	config, v, waiting, err := r.Tailnet(name, f.owner.Namespace)
	if err != nil {
		return f, err
	}
	f.access, f.waiting = v, cmp.Or(f.waiting, waiting)
	if config != nil {
		f.tailnetTags = config.Spec.Tags
	}
	return f.withSharing(name, v.ClusterSet), nil
}

// observe returns the children of a run.
func observe(r *compose.Run) (o observed, err error) {
	if o.vip, err = compose.ObservedChild[tailnetv1alpha1.VIPService](r, nameVIPService); err != nil {
		return o, err
	}
	if o.endpoints, err = compose.ObservedChild[gatewayv1alpha1.TailscaleEndpoints](r, nameEndpoints); err != nil {
		return o, err
	}
	if o.discovery, err = compose.ObservedChild[tailnetv1alpha1.Discovery](r, nameDiscovery); err != nil {
		return o, err
	}
	o.attachments = map[string]*tailnetv1alpha1.ServiceAttachment{}
	for _, name := range r.ObservedNames() {
		if !slices.ContainsFunc([]string{selection.PrefixAttachment, succession.PrefixOwn, attachments.PrefixRemote}, func(p string) bool { return strings.HasPrefix(name, p) }) {
			continue
		}
		if o.attachments[name], err = compose.ObservedChild[tailnetv1alpha1.ServiceAttachment](r, name); err != nil {
			return o, err
		}
	}
	return o, nil
}

// requireProxySets returns the requirement of every ProxySet of a namespace. They have no status,
// so proxies that come and go do not run the function.
func requireProxySets(namespace string) compose.Requirement {
	return compose.Requirement{
		Key:        "proxy-sets",
		APIVersion: tailnetv1alpha1.SchemeGroupVersion.String(),
		Kind:       tailnetv1alpha1.ProxySetKind,
		Namespace:  namespace,
		Labels:     map[string]string{meta.LabelProxySet: "true"},
	}
}

// readGateways returns the TailscaleGateways that are backends without a host, by name, and whether
// Crossplane has read all of them.
func readGateways(r *compose.Run, owner compose.Owner, spec gatewayv1alpha1.TailscaleServicesSpec) (map[string]*gatewayv1alpha1.TailscaleGateway, bool, error) {
	out, all := map[string]*gatewayv1alpha1.TailscaleGateway{}, true
	for _, b := range spec.Backends {
		if b.Kind != gatewayv1alpha1.BackendKindGateway || b.Host != "" {
			continue
		}
		found, looked, err := compose.Lookup[gatewayv1alpha1.TailscaleGateway](r, grants.RequireGateway(owner.Namespace, b.Name))
		if err != nil {
			return nil, false, err
		}
		all = all && looked
		if len(found) > 0 {
			out[b.Name] = &found[0]
		}
	}
	return out, all, nil
}

// requireConfigMap returns the requirement of a ConfigMap with authorities.
func requireConfigMap(namespace, name string) compose.Requirement {
	return compose.Requirement{Key: "authorities-" + name, APIVersion: "v1", Kind: ports.KindConfigMap, Namespace: namespace, Name: name}
}

// readAuthorities returns the authorities that backends name, by ConfigMap, and whether Crossplane has
// read them all. Those of a spec with too many ConfigMaps are not read.
func readAuthorities(r *compose.Run, owner compose.Owner, spec gatewayv1alpha1.TailscaleServicesSpec) (map[string]backendtls.Authorities, bool, error) {
	names := ports.ConfigMaps(spec)
	if len(names) > ports.MaxConfigMaps {
		return nil, true, nil
	}
	out, all := map[string]backendtls.Authorities{}, true
	for _, name := range names {
		found, looked, err := compose.Lookup[corev1.ConfigMap](r, requireConfigMap(owner.Namespace, name))
		if err != nil {
			return nil, false, err
		}
		all = all && looked
		var o *corev1.ConfigMap
		if len(found) > 0 {
			o = &found[0]
		}
		out[name] = backendtls.ParseAuthorities(o)
	}
	return out, all, nil
}

// withSelector returns a spec that selects its template if the spec has no selector. The schema
// requires a label otherwise.
func withSelector(owner compose.Owner, spec gatewayv1alpha1.TailscaleServicesSpec) gatewayv1alpha1.TailscaleServicesSpec {
	if spec.EndpointTemplate != nil && len(spec.Selector.MatchLabels)+len(spec.Selector.MatchExpressions) == 0 {
		spec.Selector.MatchLabels = map[string]string{meta.LabelServices: owner.Name}
	}
	return spec
}

// withBackends returns a spec whose backends have a kind and a protocol. The schema has no defaults
// for them.
func withBackends(spec gatewayv1alpha1.TailscaleServicesSpec) gatewayv1alpha1.TailscaleServicesSpec {
	spec.Backends = slices.Clone(spec.Backends)
	for i := range spec.Backends {
		b := &spec.Backends[i]
		b.Kind = cmp.Or(b.Kind, gatewayv1alpha1.BackendKindService)
		b.Protocol = cmp.Or(b.Protocol, gatewayv1alpha1.BackendProtocolTCP)
	}
	return spec
}

// requireNamesake returns the requirement of the Service of the object's name. The Service rarely
// changes once it exists.
func requireNamesake(owner compose.Owner) compose.Requirement {
	return compose.Requirement{Key: "service", APIVersion: "v1", Kind: "Service", Namespace: owner.Namespace, Name: owner.Name}
}

// readNamesake returns the Service of the object's name, if the spec omits fields that the Service
// can complete. It returns false until Crossplane has read it.
func readNamesake(r *compose.Run, owner compose.Owner, spec gatewayv1alpha1.TailscaleServicesSpec) (namesake.Service, bool, error) {
	out := namesake.Service{Namespace: owner.Namespace, Name: owner.Name}
	if !namesake.Answers(spec) {
		return out, true, nil
	}
	found, looked, err := compose.Lookup[corev1.Service](r, requireNamesake(owner))
	if err != nil || !looked {
		return out, false, err
	}
	for _, s := range found {
		out.Exists = true
		for _, p := range s.Spec.Ports {
			if p.Protocol == "" || p.Protocol == corev1.ProtocolTCP {
				out.Ports = append(out.Ports, p.Port)
			}
		}
	}
	return out, true, nil
}

// fill returns a spec completed from the Service of the object's name, or why the Service cannot
// complete it.
func fill(spec gatewayv1alpha1.TailscaleServicesSpec, found namesake.Service) (gatewayv1alpha1.TailscaleServicesSpec, *ports.SpecError) {
	out, problem := namesake.Fill(spec, found)
	switch {
	case problem == nil:
		return out, nil
	case problem.Missing:
		return spec, &ports.SpecError{Reason: meta.ReasonServiceNotFound, Message: problem.Message}
	}
	return spec, &ports.SpecError{Reason: meta.ReasonInvalidBackends, Message: problem.Message}
}

// reserved are the names of Tailscale Services that the API server rejects.
var reserved = []string{"svc:localhost", "svc:wpad", "svc:autoconfig", "svc:isatap", "svc:teredo", "svc:autorouter"}

// checkInput returns an error for values that the API server rejects in a TailscaleServices but the
// schema of an input does not.
func (f facts) checkInput() error {
	if !f.publishes() {
		return errors.New("cannot do without a Tailscale Service: routes name no step of a pipeline; remove spec.vipService.enabled of the input, or compose a TailscaleServices")
	}
	if slices.Contains(reserved, f.serviceName()) {
		return errors.Errorf("cannot name the Tailscale Service %q: the name has a special meaning for resolvers or clients; set spec.vipService.name in the input", f.serviceName())
	}
	if f.spec.VIPService.Name == "" && len(validation.IsDNS1123Label(f.owner.Name)) > 0 {
		return errors.Errorf("cannot name the Tailscale Service %q: set spec.vipService.name in the input", f.serviceName())
	}
	if f.vip == nil {
		return nil
	}
	if old := string(f.vip.Spec.ForProvider.Name); old != f.serviceName() {
		return errors.Errorf("cannot rename the Tailscale Service %s to %s: spec.vipService.name of the input is immutable; give the step another name", old, f.serviceName())
	}
	return nil
}

// publishes reports whether the object has a Tailscale Service. Without one it is only for routes
// of Gateways.
func (f facts) publishes() bool { return ptr.Deref(f.spec.VIPService.Enabled, true) }

// serviceName returns the name of the service in the tailnet.
func (f facts) serviceName() string {
	if n := f.spec.VIPService.Name; n != "" {
		return string(n)
	}
	return "svc:" + f.owner.Name
}

// requireTemplateUsers returns the requirement of every attachment to the endpoints made from a
// service's template.
func requireTemplateUsers(owner compose.Owner) compose.Requirement {
	return compose.Requirement{
		Key:        "template-users",
		APIVersion: tailnetv1alpha1.SchemeGroupVersion.String(),
		Kind:       tailnetv1alpha1.ServiceAttachmentKind,
		Namespace:  owner.Namespace,
		Labels:     map[string]string{meta.LabelEndpoints: selection.TemplateName(owner)},
	}
}
