// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	apiextv1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"
	pkgv1 "github.com/crossplane/crossplane/apis/v2/pkg/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/causes"
	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/check"
	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
	"github.com/tailscale-gateway/tailscale-gateway/package/kustomization"
)

// A server answers what it is and serves.
type server interface {
	discovery.ServerVersionInterface
	ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error)
}

// A reader reads the facts of a check. An answer that the API server refuses is unknown; failure is the error of an API
// server that does not answer, after which nothing more is known.
type reader struct {
	ctx     context.Context //nolint:containedctx // A reader lives for one command.
	kube    client.Client
	server  server
	options check.Options
	at      time.Time
	failure error

	releases map[string]check.Release
}

// ask returns the answer to a question. The answer about an absent object is the zero value.
func ask[T any](r *reader, question func() (T, error)) check.Answer[T] {
	var zero T
	if r.failure != nil {
		return check.Answer[T]{Unknown: "the API server does not answer"}
	}
	v, err := question()
	switch {
	case err == nil:
		return check.Answer[T]{Value: v}
	case apimeta.IsNoMatchError(err), kerrors.IsNotFound(err):
		return check.Answer[T]{Value: zero}
	case unanswered(err) || kerrors.IsUnauthorized(err):
		r.failure = err
	}
	return check.Answer[T]{Value: zero, Unknown: err.Error()}
}

// readFacts reads all facts of a check.
func (r *reader) readFacts() (check.Facts, error) {
	f := check.Facts{At: r.at, Kubernetes: ask(r, r.version)}
	if r.failure != nil {
		return f, r.failure
	}
	f.Deployments = ask(r, func() ([]appsv1.Deployment, error) {
		l := &appsv1.DeploymentList{}
		err := r.kube.List(r.ctx, l, client.InNamespace(r.options.CrossplaneNamespace))
		return l.Items, err
	})
	f.Packages = ask(r, r.packages)
	f.Definitions = ask(r, r.definitions)
	f.Compositions = ask(r, func() (map[string]bool, error) {
		return r.names(apiextv1.CompositionGroupVersionKind)
	})
	f.Served = ask(r, r.served)
	f.CRDs = ask(r, r.crds)
	f.Roles = ask(r, r.roles)
	f.Policies = map[string]check.Answer[check.Policy]{}
	for _, name := range append([]string{kustomization.PolicyInternalKinds}, kustomization.ExtensionPolicies...) {
		if r.options.Admission {
			f.Policies[name] = ask(r, func() (check.Policy, error) { return r.policy(name) })
		}
	}
	if r.options.EnvoyGateway != check.Skip {
		f.Gateway = r.gateway()
		if len(check.NewerKinds(f)) > 0 {
			f.Gateway.Routes = ask(r, r.routes)
		}
	}
	pods := r.pods(f)
	f.Network, f.Images = r.network(f, pods), pods.images
	rights, err := r.rights(f)
	if err != nil {
		return f, err
	}
	f.Rights = rights
	if r.options.Objects {
		f.Objects, f.Usages = r.objects()
	}
	f.Releases = r.releases
	return f, r.failure
}

// objects returns the objects of users with what is composed from them, and how much they use of limits. Each kind that the
// caller may read is there, also if others are not.
func (r *reader) objects() (check.Answer[[]causes.Object], check.Answer[[]check.Usage]) {
	used := newUsages(r.at)
	found := ask(r, func() (inventory, error) { return readObjects(r.ctx, r.kube, "", used.add) })
	objects := check.Answer[[]causes.Object]{Value: found.Value.objects, Unknown: found.Unknown}
	if len(found.Value.notRead) > 0 {
		objects.Unknown = "you may not list objects of kind " + strings.Join(found.Value.notRead, ", ")
	}
	counted := ask(r, func() ([]check.Usage, error) {
		for _, kind := range []string{v1alpha1.GatewayReportKind, v1alpha1.ServiceAttachmentKind} {
			if err := page(r.ctx, r.kube, v1alpha1.SchemeGroupVersion.WithKind(kind), used.add); err != nil {
				return nil, err
			}
		}
		return used.all(found.Value.objects), nil
	})
	if found.Unknown != "" {
		counted.Unknown = found.Unknown
	}
	return objects, counted
}

func (r *reader) version() (string, error) {
	v, err := r.server.ServerVersion()
	if err != nil {
		return "", err
	}
	return v.GitVersion, nil
}

// packages returns our packages, by product. A mirror keeps the last part of the name.
func (r *reader) packages() (map[string]check.Package, error) {
	lists := []struct {
		kind products.Kind
		list client.ObjectList
	}{
		{products.KindProvider, &pkgv1.ProviderList{}},
		{products.KindFunction, &pkgv1.FunctionList{}},
		{products.KindConfiguration, &pkgv1.ConfigurationList{}},
	}
	out := map[string]check.Package{}
	for _, l := range lists {
		if err := r.kube.List(r.ctx, l.list); err != nil {
			return nil, err
		}
		err := apimeta.EachListItem(l.list, func(o runtime.Object) error {
			p, ok := o.(pkgv1.Package)
			if !ok {
				return nil
			}
			name := check.Product(p.GetSource())
			if !product(name, l.kind) {
				return nil
			}
			installed, healthy := p.GetCondition(pkgv1.TypeInstalled), p.GetCondition(pkgv1.TypeHealthy)
			out[name] = check.Package{
				Kind: string(l.kind), Name: p.GetName(), Image: p.GetSource(), Current: p.GetCurrentIdentifier(),
				Installed: causes.Condition{Type: string(pkgv1.TypeInstalled), Status: string(installed.Status), Reason: string(installed.Reason), Message: installed.Message},
				Healthy:   causes.Condition{Type: string(pkgv1.TypeHealthy), Status: string(healthy.Status), Reason: string(healthy.Reason), Message: healthy.Message},
			}
			r.release(charts.Install, p)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func product(name string, kind products.Kind) bool {
	for _, p := range products.All() {
		if p.Name == name && p.Kind == kind {
			return true
		}
	}
	return false
}

func (r *reader) definitions() (map[string]check.Definition, error) {
	l := &apiextv1.CompositeResourceDefinitionList{}
	if err := r.kube.List(r.ctx, l); err != nil {
		return nil, err
	}
	out := map[string]check.Definition{}
	for n := range l.Items {
		d := &l.Items[n]
		if d.Spec.Group != gatewayv1alpha1.Group {
			continue
		}
		e, o := d.Status.GetCondition(apiextv1.TypeEstablished), d.Status.GetCondition(apiextv1.TypeOffered)
		out[d.GetName()] = check.Definition{
			Claims:      d.OffersClaim(),
			Established: causes.Condition{Type: string(apiextv1.TypeEstablished), Status: string(e.Status), Reason: string(e.Reason), Message: e.Message},
			Offered:     causes.Condition{Type: string(apiextv1.TypeOffered), Status: string(o.Status), Reason: string(o.Reason), Message: o.Message},
		}
	}
	return out, nil
}

// metadataList returns an empty list of the metadata of a kind.
func metadataList(gvk schema.GroupVersionKind) *metav1.PartialObjectMetadataList {
	l := &metav1.PartialObjectMetadataList{}
	l.SetGroupVersionKind(listKind(gvk))
	return l
}

// metadata lists objects without their content.
func (r *reader) metadata(gvk schema.GroupVersionKind) ([]metav1.PartialObjectMetadata, error) {
	var out []metav1.PartialObjectMetadata
	err := pageOf(r.ctx, r.kube, func() *metav1.PartialObjectMetadataList { return metadataList(gvk) }, func(l *metav1.PartialObjectMetadataList) { out = append(out, l.Items...) })
	return out, err
}

func (r *reader) names(gvk schema.GroupVersionKind) (map[string]bool, error) {
	l, err := r.metadata(gvk)
	out := map[string]bool{}
	for n := range l {
		out[l[n].GetName()] = true
	}
	return out, err
}

// served returns all resources that the API server serves. A group that does not answer serves nothing.
func (r *reader) served() (map[string]bool, error) {
	_, lists, err := r.server.ServerGroupsAndResources()
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, err
	}
	out := map[string]bool{}
	for _, l := range lists {
		group, _, ok := strings.Cut(l.GroupVersion, "/")
		if !ok {
			group = ""
		}
		for _, res := range l.APIResources {
			out[group+"/"+res.Name] = true
		}
	}
	return out, nil
}

// crdKind is the kind of CustomResourceDefinitions, of which only metadata is read.
var crdKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// annotationBundle is on CRDs of Gateway API.
const annotationBundle = "gateway.networking.k8s.io/bundle-version"

func (r *reader) crds() (map[string]check.CRD, error) {
	l, err := r.metadata(crdKind)
	out := map[string]check.CRD{}
	for n := range l {
		o := &l[n]
		if strings.HasSuffix(o.GetName(), "."+gatewayv1alpha1.Group) || strings.HasSuffix(o.GetName(), "."+routeKind.Group) {
			out[o.GetName()] = check.CRD{Created: o.GetCreationTimestamp().Time, Bundle: o.GetAnnotations()[annotationBundle]}
		}
	}
	return out, err
}

func (r *reader) roles() (map[string]bool, error) {
	out := map[string]bool{}
	for _, name := range check.Roles() {
		o := &metav1.PartialObjectMetadata{}
		o.SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"))
		err := r.kube.Get(r.ctx, types.NamespacedName{Name: name}, o)
		if kerrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out[name] = true
		r.release(charts.Install, o)
	}
	return out, nil
}

func (r *reader) policy(name string) (check.Policy, error) {
	p, b := &admissionv1.ValidatingAdmissionPolicy{}, &admissionv1.ValidatingAdmissionPolicyBinding{}
	out := check.Policy{Policy: p, Binding: b}
	if err := r.kube.Get(r.ctx, types.NamespacedName{Name: name}, p); kerrors.IsNotFound(err) {
		out.Policy = nil
	} else if err != nil {
		return check.Policy{}, err
	}
	if err := r.kube.Get(r.ctx, types.NamespacedName{Name: name}, b); kerrors.IsNotFound(err) {
		out.Binding = nil
	} else if err != nil {
		return check.Policy{}, err
	}
	return out, nil
}

// annotationReleaseNamespace has the namespace of the Helm release of an object.
const annotationReleaseNamespace = "meta.helm.sh/release-namespace"

// release notes the Helm release of an object of a chart, if it has one.
func (r *reader) release(chart string, o metav1.Object) {
	a := o.GetAnnotations()
	if r.releases == nil {
		r.releases = map[string]check.Release{}
	}
	name, namespace := a[check.AnnotationRelease], a[annotationReleaseNamespace]
	// Users run the commands that name the release. Helm writes names: anything else, such as a flag, is from somebody else.
	if _, ok := r.releases[chart]; ok || len(validation.IsDNS1123Subdomain(name)) > 0 || len(validation.IsDNS1123Label(namespace)) > 0 {
		return
	}
	r.releases[chart] = check.Release{Name: name, Namespace: namespace, Version: o.GetLabels()[check.LabelVersion]}
}
