// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"fmt"
	"slices"
	"strings"

	kerrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/causes"
)

// pageSize is the number of objects in one answer of the API server.
const pageSize = 500

// userKinds returns the kinds that users write, in the order in which they depend on each other. They have the same
// names as composites in a namespace and as claims.
func userKinds() []string {
	return []string{
		gatewayv1alpha1.TailscaleTailnetKind, gatewayv1alpha1.TailscaleProxyGroupKind, gatewayv1alpha1.TailscaleEndpointsKind,
		gatewayv1alpha1.TailscaleServicesKind, gatewayv1alpha1.TailscaleGatewayKind,
	}
}

// An inventory is what a cluster has of our kinds.
type inventory struct {
	objects []causes.Object

	// notRead are the kinds that the caller may not list, sorted.
	notRead []string
}

// readObjects reads the objects of users, and the managed resources. An empty namespace means all. A kind that the
// cluster does not have has no objects. The roles of tenants permit neither managed resources, without which only the
// cause of a failure may be missing, nor tailnets, which are in no namespace: if the caller may not list these, they are
// not read. visit gets each object.
func readObjects(ctx context.Context, kube client.Client, namespace string, visit func(*unstructured.Unstructured)) (inventory, error) {
	out := inventory{}
	read := func(gvk schema.GroupVersionKind, optional bool, fn func(*unstructured.Unstructured)) error {
		o := client.InNamespace(namespace)
		// A tailnet is in no namespace, and its credential in a separate one.
		if gvk.Kind == gatewayv1alpha1.TailscaleTailnetKind || gvk.Kind == v1alpha1.TailnetKind {
			o = client.InNamespace("")
		}
		err := page(ctx, kube, gvk, fn, o)
		if optional && kerrors.IsForbidden(err) {
			out.notRead = append(out.notRead, gvk.Kind)
			return nil
		}
		return err
	}
	// A MachineSet has no conditions: it is between a Machine and the object that users wrote.
	sets := map[causes.Reference]causes.Reference{}
	err := read(v1alpha1.MachineSetGroupVersionKind, true, func(u *unstructured.Unstructured) { sets[referenceOf(u)] = ownerOf(u) })
	if err != nil {
		return inventory{}, err
	}
	add := func(u *unstructured.Unstructured) {
		out.objects = append(out.objects, objectOf(u, sets))
		visit(u)
	}
	for _, kind := range userKinds() {
		optional := kind == gatewayv1alpha1.TailscaleTailnetKind && namespace != ""
		if err := read(gatewayv1alpha1.SchemeGroupVersion.WithKind(kind), optional, add); err != nil {
			return inventory{}, err
		}
	}
	for _, kind := range sortedKeys(managedLists(kube.Scheme())) {
		if err := read(v1alpha1.SchemeGroupVersion.WithKind(kind), true, add); err != nil {
			return inventory{}, err
		}
	}
	slices.Sort(out.notRead)
	return out, nil
}

// pageOf calls fn for each page of a list. Each page has a new list: a decoder may reuse the items of an old one.
func pageOf[L client.ObjectList](ctx context.Context, kube client.Reader, newList func() L, fn func(L), o ...client.ListOption) error {
	for next := ""; ; {
		l := newList()
		if err := kube.List(ctx, l, slices.Concat(o, []client.ListOption{client.Limit(pageSize), client.Continue(next)})...); err != nil {
			return err
		}
		fn(l)
		if next = l.GetContinue(); next == "" {
			return nil
		}
	}
}

// page calls fn for each object of a kind. A kind that the cluster does not have has none.
func page(ctx context.Context, kube client.Reader, gvk schema.GroupVersionKind, fn func(*unstructured.Unstructured), o ...client.ListOption) error {
	newList := func() *unstructured.UnstructuredList {
		l := &unstructured.UnstructuredList{}
		l.SetGroupVersionKind(listKind(gvk))
		return l
	}
	err := pageOf(ctx, kube, newList, func(l *unstructured.UnstructuredList) {
		for n := range l.Items {
			fn(&l.Items[n])
		}
	}, o...)
	if apimeta.IsNoMatchError(err) || kerrors.IsNotFound(err) {
		return nil
	}
	return errors.Wrapf(err, "cannot list objects of kind %s", gvk.Kind)
}

func referenceOf(u *unstructured.Unstructured) causes.Reference {
	return causes.Reference{Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
}

// Labels that Crossplane sets on what the composite of a claim composes.
const (
	labelClaimName      = "crossplane.io/claim-name"
	labelClaimNamespace = "crossplane.io/claim-namespace"
)

// ownerOf returns the object that composes another, or the claim of that.
func ownerOf(u *unstructured.Unstructured) causes.Reference {
	c := metav1.GetControllerOf(u)
	if c == nil {
		return causes.Reference{}
	}
	l := u.GetLabels()
	if kind, ok := strings.CutPrefix(c.Kind, "X"); ok && l[labelClaimName] != "" {
		return causes.Reference{Kind: kind, Namespace: l[labelClaimNamespace], Name: l[labelClaimName]}
	}
	out := causes.Reference{Kind: c.Kind, Namespace: u.GetNamespace(), Name: c.Name}
	if c.Kind == gatewayv1alpha1.TailscaleTailnetKind {
		out.Namespace = ""
	}
	return out
}

// objectOf returns what counts of an object.
func objectOf(u *unstructured.Unstructured, sets map[causes.Reference]causes.Reference) causes.Object {
	o := causes.Object{Reference: referenceOf(u), Group: u.GroupVersionKind().Group, Owner: ownerOf(u), Deleted: u.GetDeletionTimestamp() != nil}
	if owner, ok := sets[o.Owner]; ok {
		o.Owner = owner
	}
	o.Conditions = conditionsOf(u)
	o.Tailnets = tailnetsOf(u)
	o.Details = detailsOf(u)
	return o
}

// conditionsOf returns the conditions of an object. Fields of other types than expected are absent.
func conditionsOf(u *unstructured.Unstructured) []causes.Condition {
	list, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
	if err != nil {
		return nil
	}
	var out []causes.Condition
	for _, item := range list {
		m, ok := item.(map[string]any)
		if !ok {
			continue
		}
		field := func(name string) string {
			s, _, _ := unstructured.NestedString(m, name)
			return s
		}
		out = append(out, causes.Condition{Type: field("type"), Status: field("status"), Reason: field("reason"), Message: field("message")})
	}
	return out
}

// tailnetsOf returns the tailnets that an object names.
func tailnetsOf(u *unstructured.Unstructured) []string {
	var out []string
	text := func(fields ...string) {
		if s, ok, err := unstructured.NestedString(u.Object, fields...); ok && err == nil && s != "" {
			out = append(out, s)
		}
	}
	if u.GroupVersionKind().Group == v1alpha1.Group {
		if kind, _, _ := unstructured.NestedString(u.Object, "spec", "providerConfigRef", "kind"); kind == v1alpha1.ClusterProviderConfigKind {
			text("spec", "providerConfigRef", "name")
		}
		return out
	}
	if u.GetKind() == gatewayv1alpha1.TailscaleEndpointsKind {
		text("spec", "tailnet")
	}
	list, _, err := unstructured.NestedSlice(u.Object, "spec", "tailnets")
	if err != nil {
		return out
	}
	for _, item := range list {
		if m, ok := item.(map[string]any); ok {
			if s, _, err := unstructured.NestedString(m, "name"); err == nil && s != "" {
				out = append(out, s)
			}
		}
	}
	return out
}

// detailsOf returns what users look for in an object that is ready.
func detailsOf(u *unstructured.Unstructured) string {
	text := func(fields ...string) string {
		s, _, _ := unstructured.NestedString(u.Object, fields...)
		return s
	}
	number := func(fields ...string) int64 {
		n, _, _ := unstructured.NestedInt64(u.Object, fields...)
		return n
	}
	switch u.GetKind() {
	case gatewayv1alpha1.TailscaleTailnetKind:
		return strings.TrimSpace(text("status", "tailnetInfo", "name") + " " + text("status", "tailnetInfo", "magicDNSSuffix"))
	case gatewayv1alpha1.TailscaleServicesKind:
		return strings.TrimSuffix(text("status", "vipServiceStatus", "dnsName"), ".")
	case gatewayv1alpha1.TailscaleProxyGroupKind:
		return fmt.Sprintf("%d of %d replicas", number("status", "onlineReplicas"), number("status", "desiredReplicas"))
	case gatewayv1alpha1.TailscaleEndpointsKind:
		return fmt.Sprintf("%d of %d machines", number("status", "healthyEndpoints"), number("status", "totalEndpoints"))
	case gatewayv1alpha1.TailscaleGatewayKind:
		list, _, err := unstructured.NestedSlice(u.Object, "status", "services")
		if err != nil || len(list) == 0 {
			return ""
		}
		m, ok := list[0].(map[string]any)
		if !ok {
			return ""
		}
		s, _, _ := unstructured.NestedString(m, "dnsName")
		return strings.TrimSuffix(s, ".")
	}
	return ""
}
