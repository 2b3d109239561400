// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscalegateway

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/dns"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/extensionpods"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/front"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/routes"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/services"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscalegateway/tailnets"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/names"
	"github.com/tailscale-gateway/tailscale-gateway/internal/refgrant"
)

// inputs is the schema of this function's input, in pipelines of other composites.
var inputs = compose.NewInputSchema(gatewayv1alpha1.TailscaleGatewayKind)

// settings are the flags of the function.
type settings struct {
	// extensionImage is the image of extensions that set none.
	extensionImage string

	// envoyGateway are the namespaces in which Envoy Gateway runs.
	envoyGateway []string
}

// facts are all inputs of a plan.
type facts struct {
	settings

	owner compose.Owner
	spec  gatewayv1alpha1.TailscaleGatewaySpec

	// recorded is the name of the Gateway in the status: the choice of an earlier run. It is a hint.
	recorded string

	// reported are the services in the status.
	reported []gatewayv1alpha1.GatewayServiceInfo

	// conditions are the types of the object's conditions.
	conditions map[xpv2.ConditionType]bool

	// step means that there is no TailscaleGateway: a step of another composite's pipeline has the
	// spec as its input.
	step bool

	observed observed

	// gateway is nil until Crossplane has read all its objects.
	gateway *front.Gateway

	// verdicts report whether each tailnet may be used, in the order of the spec.
	verdicts []compose.TailnetVerdict

	// installed are the Deployments of the extension that is installed for the cluster.
	installed []appsv1.Deployment

	// elsewhere means that a Deployment with their labels exists in another namespace and does not
	// count.
	elsewhere bool

	// report is the extension's report, or nil if there is none.
	report *tailnetv1alpha1.GatewayReportSpec

	// grants are the ReferenceGrants of the namespaces of backends to publish, other than the
	// object's.
	grants refgrant.Grants

	// waiting is a message for the user about objects that Crossplane has not read yet. The facts
	// above are incomplete until it is empty.
	waiting string
}

// observed holds the children that exist, by resource name.
type observed struct {
	proxies  map[string]*gatewayv1alpha1.TailscaleEndpoints
	services map[string]*gatewayv1alpha1.TailscaleServices
	zones    map[string]*corev1.ConfigMap
	splits   map[string]*tailnetv1alpha1.SplitDNS

	// deployment is the Deployment of the Gateway's separate extension, and eds its Service for
	// endpoints. They are nil if there are none.
	deployment *appsv1.Deployment
	eds        *corev1.Service
}

// read returns the facts of a run.
func read(r *compose.Run, s settings) (facts, error) {
	xr := &gatewayv1alpha1.TailscaleGateway{}
	if err := r.Object(inputs, xr); err != nil {
		return facts{}, err
	}
	f := facts{
		settings: s, owner: compose.OwnerOf(xr), spec: xr.Spec, reported: xr.Status.Services,
		conditions: r.ConditionTypes(), step: r.HasInput(),
	}
	if f.owner.Namespace == "" {
		return f, errors.New("cannot find a Gateway for an object without a namespace")
	}
	if err := f.checkInput(); err != nil {
		return f, err
	}
	if xr.Status.GatewayRef != nil {
		f.recorded = xr.Status.GatewayRef.Name
	}
	g, found, err := findGateway(r, f)
	if err != nil {
		return f, err
	}
	f.gateway = g
	for _, t := range f.spec.Tailnets {
		_, v, waiting, err := r.TailnetOf(t.Name, tailnets.Ref(t), f.owner.Namespace)
		if err != nil {
			return f, err
		}
		f.verdicts, f.waiting = append(f.verdicts, v), cmp.Or(f.waiting, waiting)
	}
	if f, err = readExtension(r, f); err != nil {
		return f, err
	}
	if !found {
		f.waiting = "Waiting for Crossplane to read the Gateway and its Service"
	}
	f.observed, err = observe(r)
	return f, err
}

// readExtension adds the facts about the extension that serves the Gateway: its Deployments and its
// report.
func readExtension(r *compose.Run, f facts) (facts, error) {
	if f.wantsInstalled() {
		found, looked, err := compose.Lookup[appsv1.Deployment](r, requireInstalled())
		if err != nil {
			return f, err
		}
		if !looked {
			f.waiting = cmp.Or(f.waiting, "Waiting for Crossplane to look for the extension")
		}
		f.installed, f.elsewhere = installedOf(found, f.envoyGateway)
	}
	if !f.needsReport() {
		return f, nil
	}
	found, looked, err := compose.Lookup[tailnetv1alpha1.GatewayReport](r, requireReport(f.owner))
	if err != nil {
		return f, err
	}
	if !looked {
		f.waiting = cmp.Or(f.waiting, "Waiting for Crossplane to read the GatewayReport")
	}
	if len(found) > 0 && found[0].Spec.Gateway == f.owner.Name {
		f.report = &found[0].Spec
	}
	return readGrants(r, f)
}

// readGrants adds the ReferenceGrants that decide which backends of other namespaces are published.
func readGrants(r *compose.Run, f facts) (facts, error) {
	if f.report == nil || !f.publishes() {
		return f, nil
	}
	f.grants = refgrant.Grants{}
	required := map[string]bool{f.owner.Namespace: true}
	for _, b := range routes.Backends(f.report.Routes) {
		if required[b.Namespace] {
			continue
		}
		required[b.Namespace] = true
		found, looked, err := r.Grants(b.Namespace)
		if err != nil {
			return f, err
		}
		if !looked {
			f.waiting = cmp.Or(f.waiting, "Waiting for Crossplane to read the ReferenceGrants for backends of other namespaces")
		}
		maps.Copy(f.grants, found)
	}
	return f, nil
}

// observe returns the children of a run.
func observe(r *compose.Run) (o observed, err error) {
	if o.proxies, err = observeAll[gatewayv1alpha1.TailscaleEndpoints](r, tailnets.PrefixIngress, tailnets.PrefixEgress); err != nil {
		return o, err
	}
	if o.services, err = observeAll[gatewayv1alpha1.TailscaleServices](r, services.PrefixGateway, services.PrefixService, services.PrefixOwnService); err != nil {
		return o, err
	}
	if o.zones, err = observeAll[corev1.ConfigMap](r, dns.PrefixZone); err != nil {
		return o, err
	}
	if o.splits, err = observeAll[tailnetv1alpha1.SplitDNS](r, dns.PrefixSplitDNS); err != nil {
		return o, err
	}
	if o.deployment, err = compose.ObservedChild[appsv1.Deployment](r, extensionpods.KeyDeployment); err != nil {
		return o, err
	}
	o.eds, err = compose.ObservedChild[corev1.Service](r, extensionpods.KeyEDS)
	return o, err
}

// observeAll returns the children whose resource names begin with one of some prefixes.
func observeAll[T any](r *compose.Run, prefixes ...string) (map[string]*T, error) {
	out := map[string]*T{}
	for _, name := range r.ObservedNames() {
		if !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
			continue
		}
		o, err := compose.ObservedChild[T](r, name)
		if err != nil {
			return nil, err
		}
		out[name] = o
	}
	return out, nil
}

// checkInput returns an error for fields that need the extension's report: it reports only on
// TailscaleGateways.
func (f facts) checkInput() error {
	if !f.step {
		return nil
	}
	if f.spec.GatewayRef == nil {
		return errors.New("cannot choose a Gateway for a step, which has no record of its choice: set spec.gatewayRef of the input")
	}
	if f.sharing() == gatewayv1alpha1.RouteSharingRoute {
		return errors.New("cannot share each route in a step: set spec.routeSharing of the input to Gateway or None, or compose a TailscaleGateway")
	}
	if f.spec.ExtensionServer != nil {
		return errors.New("cannot run an extension for a step: remove spec.extensionServer of the input, or compose a TailscaleGateway")
	}
	return nil
}

// reference returns a reference with its defaults. A schema cannot default the namespace.
func reference(specRef *gatewayv1alpha1.GatewayRef, namespace string) gatewayv1alpha1.GatewayRef {
	ref := ptr.Deref(specRef, gatewayv1alpha1.GatewayRef{})
	ref.Kind = cmp.Or(ref.Kind, front.KindGateway)
	ref.Namespace = cmp.Or(ref.Namespace, namespace)
	return ref
}

// requireGateway returns the requirement of the Gateway itself. Its status changes with each route
// that is added or removed, and each change runs this function and counts against the composite in
// Crossplane's circuit breaker. The result depends only on the Gateway's addresses, which rarely
// change, so most runs write nothing. A run that the circuit breaker drops can miss only a change
// of the Gateway's listeners, which the next run detects.
func requireGateway(ref gatewayv1alpha1.GatewayRef) compose.Requirement {
	return compose.Requirement{
		Key:        "gateway",
		APIVersion: gwapiv1.GroupVersion.String(),
		Kind:       ref.Kind,
		Namespace:  ref.Namespace,
		Name:       ref.Name,
	}
}

// requireGateways returns the requirement of all Gateways of a namespace.
func requireGateways(namespace string) compose.Requirement {
	return compose.Requirement{
		Key:        "gateways",
		APIVersion: gwapiv1.GroupVersion.String(),
		Kind:       front.KindGateway,
		Namespace:  namespace,
	}
}

// requireServices returns the requirement of one Gateway's Services, in any namespace: a condition
// lists those in other namespaces than the Gateway's and Envoy Gateway's.
func requireServices(ref gatewayv1alpha1.GatewayRef) compose.Requirement {
	return compose.Requirement{
		Key:        "services",
		APIVersion: corev1.SchemeGroupVersion.String(),
		Kind:       "Service",
		Labels:     map[string]string{meta.LabelManagedBy: meta.ManagedByEnvoyGateway, meta.LabelOwningGatewayNamespace: ref.Namespace, meta.LabelOwningGatewayName: ref.Name},
	}
}

// requireMerged returns the requirement of the Services that all Gateways of a class share.
func requireMerged(class gwapiv1.ObjectName) compose.Requirement {
	return compose.Requirement{
		Key:        "merged-services",
		APIVersion: corev1.SchemeGroupVersion.String(),
		Kind:       "Service",
		Labels:     map[string]string{meta.LabelManagedBy: meta.ManagedByEnvoyGateway, meta.LabelOwningGatewayClass: string(class)},
	}
}

// requireInstalled returns the requirement of the Deployments of the chart, in any namespace. Only
// those in Envoy Gateway's namespaces count, because any user may label a Deployment. A Gateway's
// separate Deployments are not created by Helm, so a change of them runs no other object's
// function.
func requireInstalled() compose.Requirement {
	return compose.Requirement{
		Key:        "extension",
		APIVersion: appsv1.SchemeGroupVersion.String(),
		Kind:       "Deployment",
		Labels:     map[string]string{"app.kubernetes.io/name": extensionpods.Chart, meta.LabelManagedBy: "Helm"},
	}
}

// requireReport returns the requirement of the extension's report on the Gateway. The report has no
// status, so each change of it is one run.
func requireReport(owner compose.Owner) compose.Requirement {
	return compose.Requirement{
		Key:        "report",
		APIVersion: tailnetv1alpha1.SchemeGroupVersion.String(),
		Kind:       tailnetv1alpha1.GatewayReportKind,
		Namespace:  owner.Namespace,
		Name:       names.GatewayReport(owner.Name),
	}
}

// permitted reports whether TailscaleGateways of a namespace may share the Gateway of a reference,
// and whether Crossplane has read the grants that decide it. The Gateway's own namespace always
// may.
func permitted(r *compose.Run, ref gatewayv1alpha1.GatewayRef, namespace string) (permitted, looked bool, err error) {
	if ref.Namespace == namespace {
		return true, true, nil
	}
	grants, looked, err := r.Grants(ref.Namespace)
	if err != nil || !looked {
		return false, false, err
	}
	return grants.PermitGateway(namespace, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}), true, nil
}

// findGateway returns the Gateway of the spec, or the one that is chosen if the spec names none. It
// returns false until Crossplane has read all its objects.
func findGateway(r *compose.Run, f facts) (*front.Gateway, bool, error) {
	ref := reference(f.spec.GatewayRef, f.owner.Namespace)
	if f.spec.GatewayRef != nil {
		return find(r, ref, f.owner.Namespace, f.envoyGateway)
	}
	gateways, looked, err := compose.Lookup[gwapiv1.Gateway](r, requireGateways(f.owner.Namespace))
	if err != nil || !looked {
		return nil, false, err
	}
	chosen, choices := chooseGateway(gateways, f.recorded)
	if chosen == nil {
		ref.Name = f.recorded
		return &front.Gateway{Ref: ref, EnvoyGateway: f.envoyGateway, Open: true, Choices: choices}, true, nil
	}
	ref.Name = chosen.GetName()
	g, looked, err := findServices(r, ref, chosen, f.envoyGateway)
	if g != nil {
		g.Open = true
	}
	return g, looked, err
}

// chooseGateway returns the Gateway of this name, which an earlier run has chosen and which may serve:
// it stays, even if there are others. Otherwise it returns the only Gateway. If there are several, it
// returns none, and their names.
func chooseGateway(gateways []gwapiv1.Gateway, recorded string) (*gwapiv1.Gateway, []string) {
	var candidate *gwapiv1.Gateway
	var choices []string
	for i := range gateways {
		switch g := &gateways[i]; {
		case g.GetName() == recorded:
			return g, nil
		case g.GetDeletionTimestamp() == nil:
			candidate, choices = g, append(choices, g.GetName())
		}
	}
	if len(choices) > 1 {
		return nil, choices
	}
	return candidate, nil
}

// find returns the Gateway of a reference for a TailscaleGateway of a namespace. It returns false
// until Crossplane has read all its objects.
func find(r *compose.Run, ref gatewayv1alpha1.GatewayRef, namespace string, namespaces []string) (*front.Gateway, bool, error) {
	permitted, granted, err := permitted(r, ref, namespace)
	if err != nil {
		return nil, false, err
	}
	needGateway := requireGateway(ref)
	r.Require(needGateway)
	r.Require(requireServices(ref))
	gateways, looked, err := compose.Required[gwapiv1.Gateway](r, needGateway)
	if err != nil || !looked {
		return nil, false, err
	}
	if !granted {
		return nil, false, nil
	}
	if !permitted {
		return &front.Gateway{Ref: ref, EnvoyGateway: namespaces, Ungranted: namespace}, true, nil
	}
	if len(gateways) == 0 {
		return front.New(ref, nil, nil, nil, namespaces), true, nil
	}
	return findServices(r, ref, &gateways[0], namespaces)
}

// findServices returns a Gateway with its Services. It returns false until Crossplane has read them.
func findServices(r *compose.Run, ref gatewayv1alpha1.GatewayRef, g *gwapiv1.Gateway, namespaces []string) (*front.Gateway, bool, error) {
	own, ownLooked, err := compose.Lookup[corev1.Service](r, requireServices(ref))
	if err != nil {
		return nil, false, err
	}
	merged, looked, err := compose.Lookup[corev1.Service](r, requireMerged(g.Spec.GatewayClassName))
	if err != nil || !looked || !ownLooked {
		return nil, false, err
	}
	return front.New(ref, g, own, merged, namespaces), true, nil
}
