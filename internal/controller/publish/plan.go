// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// Reasons of events on a Service about the objects of its namespace.
const (
	// reasonExists means that a TailscaleServices of the Service's name belongs to the user.
	reasonExists event.Reason = "TailscaleServicesExists"

	// reasonEndpointsNotFound means that the TailscaleEndpoints that the Service names does not exist.
	reasonEndpointsNotFound event.Reason = "EndpointsNotFound"
)

// kindService is the kind of the owner of a TailscaleServices.
const kindService = "Service"

// facts are the input of a plan.
type facts struct {
	// service is nil if no Service of the name may ask.
	service *corev1.Service

	// operator reports whether what Tailscale's operator reads counts.
	operator bool

	// own is the TailscaleServices of this controller with the Service's name, or nil.
	own *gatewayv1alpha1.TailscaleServices

	// foreign reports whether a TailscaleServices of another owner has the name.
	foreign bool

	// proxies reports whether the TailscaleEndpoints exists that the Service asks for. endpoints is that
	// object if this controller has created it.
	proxies   bool
	endpoints *gatewayv1alpha1.TailscaleEndpoints

	// tailnet is why proxies that are created would join no tailnet. It counts only if there are none.
	tailnet *problem
}

// A plan describes the steps for a Service. There is at most one step for its TailscaleServices.
type plan struct {
	// create is the TailscaleServices to create.
	create *gatewayv1alpha1.TailscaleServices

	// update is what the TailscaleServices of this controller should be.
	update *gatewayv1alpha1.TailscaleServices

	// remove is the TailscaleServices to delete. If the Service asks for one, it follows once this is gone.
	remove *gatewayv1alpha1.TailscaleServices

	// report requests that ingress becomes the load balancer status.
	report  bool
	ingress []corev1.LoadBalancerIngress

	// published is the DNS name at which clients reach the Service, or "".
	published string

	// problem is nil if there is nothing for a person to do.
	problem *problem
}

// owns reports whether an object is one that this package has created.
func owns(o metav1.Object) bool { return o.GetLabels()[meta.LabelManagedBy] == meta.ManagedByPublish }

// decide returns the plan for facts.
func decide(f facts) plan {
	if f.service == nil || !asks(f.service, f.operator) {
		if f.own == nil || len(servicesOf(f.own.OwnerReferences)) == 0 {
			// A backup restores objects without their owners, and perhaps before the Service.
			return plan{}
		}
		return plan{remove: removable(f.own)}
	}
	r, refusal := requestOf(f.service, f.operator)
	p := plan{problem: refusal}
	switch {
	case refusal == nil:
		p = planOwn(f, r)
	case refusal.effect == suspend:
		return p
	case refusal.effect == withdraw:
		p.remove = removable(f.own)
	}
	return p.withStatus(f)
}

// planOwn returns the step for the TailscaleServices of a request.
func planOwn(f facts, r *request) plan {
	want := desired(f.service, r)
	switch {
	case f.foreign:
		return plan{problem: &problem{reason: reasonExists, message: fmt.Sprintf("TailscaleServices %q is not of this Service and stays as it is; delete it, or remove the class or label from the Service", want.GetName())}}
	case f.own == nil:
		if p := unplaced(f, r); p != nil {
			return plan{problem: p}
		}
		return plan{create: want}
	case f.own.DeletionTimestamp != nil:
		return plan{}
	case f.own.Spec.VIPService.Name != want.Spec.VIPService.Name:
		// The name of a Tailscale Service cannot change.
		return plan{remove: f.own}
	case !isCurrent(f.own, want):
		return plan{update: want}
	}
	return plan{problem: problemOf(f.own, f.endpoints)}
}

// unplaced returns why no proxies would host a Service, or nil.
func unplaced(f facts, r *request) *problem {
	switch {
	case f.proxies:
		return nil
	case r.explicit:
		return &problem{reason: reasonEndpointsNotFound, message: fmt.Sprintf("There is no TailscaleEndpoints %q in this namespace; create it, or remove the annotation %s", r.endpoints, meta.AnnotationEndpoints)}
	}
	return f.tailnet
}

// removable returns an object unless it is being deleted.
func removable(o *gatewayv1alpha1.TailscaleServices) *gatewayv1alpha1.TailscaleServices {
	if o == nil || o.DeletionTimestamp != nil {
		return nil
	}
	return o
}

// desired returns the TailscaleServices of a request. It has only the fields that the request decides: users may
// set others. It has the Service's name, so that the Service is its backend and its ports are the Service's.
func desired(s *corev1.Service, r *request) *gatewayv1alpha1.TailscaleServices {
	out := &gatewayv1alpha1.TailscaleServices{
		TypeMeta: metav1.TypeMeta{APIVersion: gatewayv1alpha1.SchemeGroupVersion.String(), Kind: gatewayv1alpha1.TailscaleServicesKind},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.GetNamespace(), Name: s.GetName(),
			Labels:          map[string]string{meta.LabelManagedBy: meta.ManagedByPublish},
			OwnerReferences: []metav1.OwnerReference{ownerOf(s)},
		},
		Spec: gatewayv1alpha1.TailscaleServicesSpec{
			Selector: metav1.LabelSelector{MatchLabels: map[string]string{meta.LabelEndpoints: r.endpoints}},
			VIPService: gatewayv1alpha1.VIPServiceTemplate{
				Name:    gatewayv1alpha1.ServiceName("svc:" + r.hostname),
				Tags:    r.tags,
				Comment: fmt.Sprintf("Service %s/%s", s.GetNamespace(), s.GetName()),
			},
		},
	}
	out.Annotations = map[string]string{meta.AnnotationApplied: digest(out)}
	return out
}

// ownerOf returns the reference by which the garbage collector deletes the TailscaleServices of a Service, also
// while the provider does not run. It does not block the Service's deletion, which would take a permission on
// Services.
func ownerOf(s *corev1.Service) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: corev1.SchemeGroupVersion.String(), Kind: kindService, Name: s.GetName(), UID: s.GetUID()}
}

// digest returns a hash of the fields that can change.
func digest(o *gatewayv1alpha1.TailscaleServices) string {
	fields := []string{o.Spec.Selector.MatchLabels[meta.LabelEndpoints]}
	for _, t := range o.Spec.VIPService.Tags {
		fields = append(fields, string(t))
	}
	sum := sha256.Sum256([]byte(strings.Join(fields, "\n")))
	return hex.EncodeToString(sum[:8])
}

// isCurrent reports whether a TailscaleServices has what it should have.
func isCurrent(own, want *gatewayv1alpha1.TailscaleServices) bool {
	return own.Annotations[meta.AnnotationApplied] == want.Annotations[meta.AnnotationApplied] &&
		own.Spec.Selector.MatchLabels[meta.LabelEndpoints] == want.Spec.Selector.MatchLabels[meta.LabelEndpoints] &&
		(len(want.Spec.VIPService.Tags) == 0 || slices.Equal(slices.Sorted(slices.Values(own.Spec.VIPService.Tags)), want.Spec.VIPService.Tags)) &&
		slices.Equal(servicesOf(own.OwnerReferences), servicesOf(want.OwnerReferences))
}

// servicesOf returns the UIDs of the Services that own an object.
func servicesOf(owners []metav1.OwnerReference) []string {
	var out []string
	for _, o := range owners {
		if isService(o) {
			out = append(out, string(o.UID))
		}
	}
	return out
}

func isService(o metav1.OwnerReference) bool {
	return o.APIVersion == corev1.SchemeGroupVersion.String() && o.Kind == kindService
}

// patchOf returns the merge patch that gives a TailscaleServices what it should have. It changes no object of
// another UID, and removes tags only if the Service asked for some before.
func patchOf(own, want *gatewayv1alpha1.TailscaleServices) ([]byte, error) {
	owners := slices.DeleteFunc(slices.Clone(own.OwnerReferences), isService)
	spec := map[string]any{"selector": map[string]any{"matchLabels": want.Spec.Selector.MatchLabels}}
	switch {
	case len(want.Spec.VIPService.Tags) > 0:
		spec["vipService"] = map[string]any{"tags": want.Spec.VIPService.Tags}
	case own.Annotations[meta.AnnotationApplied] != want.Annotations[meta.AnnotationApplied]:
		spec["vipService"] = map[string]any{"tags": nil}
	}
	out, err := json.Marshal(map[string]any{
		"metadata": map[string]any{
			"uid":             own.UID,
			"annotations":     want.Annotations,
			"ownerReferences": append(owners, want.OwnerReferences...),
		},
		"spec": spec,
	})
	return out, errors.Wrapf(err, "cannot encode a patch of TailscaleServices %q", own.GetName())
}
