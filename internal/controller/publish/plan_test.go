// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// published returns the TailscaleServices of a Service, as it is when clients reach it.
func published(s *corev1.Service, changes ...func(*gatewayv1alpha1.TailscaleServices)) *gatewayv1alpha1.TailscaleServices {
	r, p := requestOf(s, true)
	if p != nil {
		panic(p.message)
	}
	o := desired(s, r)
	o.UID = "uid-own"
	o.Status.SetConditions(xpv2.Available())
	o.Status.VIPService = &gatewayv1alpha1.VIPServiceStatus{Addresses: []string{"100.100.1.2", "fd7a:115c:a1e0::1"}, DNSName: r.hostname + ".example.ts.net"}
	for _, change := range changes {
		change(o)
	}
	return o
}

func condition(t xpv2.ConditionType, status corev1.ConditionStatus, reason xpv2.ConditionReason, message string) func(*gatewayv1alpha1.TailscaleServices) {
	return func(o *gatewayv1alpha1.TailscaleServices) {
		o.Status.SetConditions(xpv2.Condition{Type: t, Status: status, Reason: reason, Message: message})
	}
}

func notReady(o *gatewayv1alpha1.TailscaleServices) { o.Status.SetConditions(xpv2.Unavailable()) }

func pending(o *gatewayv1alpha1.TailscaleServices) {
	o.Status = gatewayv1alpha1.TailscaleServicesStatus{}
	o.Status.SetConditions(xpv2.Creating())
}

func going(o *gatewayv1alpha1.TailscaleServices) { o.DeletionTimestamp = &metav1.Time{} }

// addresses is the load balancer status of the Service of the tests.
func addresses(hostname string) []corev1.LoadBalancerIngress {
	return []corev1.LoadBalancerIngress{
		{Hostname: hostname + ".example.ts.net"},
		{IP: "100.100.1.2", IPMode: ptr.To(corev1.LoadBalancerIPModeProxy)},
		{IP: "fd7a:115c:a1e0::1", IPMode: ptr.To(corev1.LoadBalancerIPModeProxy)},
	}
}

func reported(hostname string) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Status.LoadBalancer.Ingress = addresses(hostname) }
}

func TestDecide(t *testing.T) {
	const name = "shop-web.example.ts.net"
	cluster := ofType(corev1.ServiceTypeClusterIP)
	refusal := &problem{reason: "NamespaceNotAllowed", message: "No TailscaleTailnet"}
	cases := map[string]struct {
		reason string
		facts  facts
		want   plan
	}{
		"Nothing":   {reason: "A Service that is gone, without an object, needs nothing."},
		"New":       {reason: "A Service that asks gets an object.", facts: facts{service: service()}, want: plan{create: desired(service(), &request{hostname: "shop-web", endpoints: "published"})}},
		"NoTailnet": {reason: "Nothing is created in a namespace that may use no tailnet.", facts: facts{service: service(), tailnet: refusal}, want: plan{problem: refusal}},
		"Proxies":   {reason: "Proxies that exist have their tailnet.", facts: facts{service: service(), proxies: true, tailnet: refusal}, want: plan{create: desired(service(), &request{hostname: "shop-web", endpoints: "published"})}},
		"NoEndpoints": {
			reason: "Proxies of the user are not created.",
			facts:  facts{service: service(annotated(meta.AnnotationEndpoints, "mine"))},
			want:   plan{problem: &problem{reason: reasonEndpointsNotFound, message: `There is no TailscaleEndpoints "mine" in this namespace; create it, or remove the annotation gateway.tailscale.com/endpoints`}},
		},
		"Foreign": {
			reason: "An object of the user is not overwritten, and its state is not that of the Service.",
			facts:  facts{service: service(reported("shop-web")), foreign: true},
			want: plan{report: true, problem: &problem{
				reason:  reasonExists,
				message: `TailscaleServices "web" is not of this Service and stays as it is; delete it, or remove the class or label from the Service`,
			}},
		},
		"Pending":      {reason: "A Service has no address while nobody answers.", facts: facts{service: service(), own: published(service(), pending)}},
		"NotReady":     {reason: "Nor when the address is known.", facts: facts{service: service(), own: published(service(), notReady)}},
		"Ready":        {reason: "The status has the name and the addresses.", facts: facts{service: service(), own: published(service())}, want: plan{report: true, ingress: addresses("shop-web"), published: name}},
		"Reported":     {reason: "It is written once.", facts: facts{service: service(reported("shop-web")), own: published(service())}, want: plan{published: name}},
		"Failover":     {reason: "A failover does not remove it.", facts: facts{service: service(reported("shop-web")), own: published(service(), notReady)}},
		"OtherAddress": {reason: "An address that is not the service's goes, also while nobody answers.", facts: facts{service: service(reported("old")), own: published(service(), notReady)}, want: plan{report: true}},
		"Lost":         {reason: "So does that of a service that is gone.", facts: facts{service: service(reported("shop-web")), own: published(service(), pending)}, want: plan{report: true}},
		"Label":        {reason: "The API server accepts no load balancer status of other types.", facts: facts{service: service(cluster, labelled("true")), own: published(service(cluster, labelled("true")))}, want: plan{published: name}},
		"Withdrawn":    {reason: "Without the class or label, the object goes.", facts: facts{service: service(cluster), own: published(service())}, want: plan{remove: published(service())}},
		"Gone":         {reason: "So it does without the Service, if the garbage collector has not deleted it.", facts: facts{own: published(service())}, want: plan{remove: published(service())}},
		"Backup": {
			reason: "A backup may restore the object without its owner, before the Service.",
			facts:  facts{own: published(service(), func(o *gatewayv1alpha1.TailscaleServices) { o.OwnerReferences = nil })},
		},
		"Adopted": {
			reason: "The Service then owns it.",
			facts:  facts{service: service(reported("shop-web")), own: published(service(), func(o *gatewayv1alpha1.TailscaleServices) { o.OwnerReferences = nil })},
			want:   plan{published: name, update: desired(service(), &request{hostname: "shop-web", endpoints: "published"})},
		},
		"Going":   {reason: "It is deleted once.", facts: facts{own: published(service(), going)}},
		"Deleted": {reason: "A Service that waits for somebody else's finalizer is withdrawn.", facts: facts{service: service(deleted, reported("shop-web")), own: published(service())}, want: plan{remove: published(service())}},
		"Renamed": {
			reason: "The name of a Tailscale Service cannot change, so the object is created again.",
			facts:  facts{service: service(annotated(meta.AnnotationHostname, "store"), reported("shop-web")), own: published(service()), proxies: true},
			want:   plan{remove: published(service()), report: true},
		},
		"RenamedGoing": {
			reason: "That waits for the end of the first one.",
			facts:  facts{service: service(annotated(meta.AnnotationHostname, "store")), own: published(service(), going), proxies: true},
		},
		"Tags": {
			reason: "Other fields change in place.",
			facts:  facts{service: service(annotated(meta.AnnotationTags, "tag:a"), reported("shop-web")), own: published(service())},
			want:   plan{update: desired(service(), &request{hostname: "shop-web", endpoints: "published", tags: []gatewayv1alpha1.Tag{"tag:a"}}), published: name},
		},
		"Edited": {
			reason: "A change of such a field by another client is undone.",
			facts: facts{service: service(reported("shop-web")), own: published(service(), func(o *gatewayv1alpha1.TailscaleServices) {
				o.Spec.Selector.MatchLabels[meta.LabelEndpoints] = "other"
			})},
			want: plan{update: desired(service(), &request{hostname: "shop-web", endpoints: "published"}), published: name},
		},
		"UserTags": {
			reason: "Tags that the user adds to the object stay, if the Service has none.",
			facts: facts{service: service(reported("shop-web")), own: published(service(), func(o *gatewayv1alpha1.TailscaleServices) {
				o.Spec.VIPService.Tags = []gatewayv1alpha1.Tag{"tag:mine"}
			})},
			want: plan{published: name},
		},
		"Restored": {
			reason: "A Service that was created again owns the object that is still there, so that the address stays.",
			facts:  facts{service: service(func(s *corev1.Service) { s.UID = "uid-restored" }, reported("shop-web")), own: published(service())},
			want: plan{published: name, update: desired(service(func(s *corev1.Service) { s.UID = "uid-restored" }), &request{
				hostname: "shop-web", endpoints: "published",
			})},
		},
		"Invalid": {
			reason: "A Service that is published stays so while an annotation cannot be used.",
			facts:  facts{service: service(annotated(meta.AnnotationHostname, "A"), reported("shop-web")), own: published(service())},
			want: plan{published: name, problem: &problem{
				reason:  reasonInvalidAnnotation,
				message: `Annotation gateway.tailscale.com/hostname is "A", which is no name in a tailnet; use lower-case letters, digits and dashes, 63 at most`,
			}},
		},
		"Headless": {
			reason: "A Service that proxies cannot reach is withdrawn.",
			facts:  facts{service: service(reported("shop-web"), func(s *corev1.Service) { s.Spec.ClusterIP = corev1.ClusterIPNone }), own: published(service())},
			want: plan{remove: published(service()), report: true, problem: &problem{
				reason: reasonUnsupported, effect: withdraw,
				message: "A headless Service has no address to which proxies could connect; publish another Service of the same pods with a cluster IP",
			}},
		},
		"Operated": {
			reason: "A Service that Tailscale's operator publishes is left to it, status included.",
			facts:  facts{operator: true, service: service(ofClass(operatorClass), finalized(operatorFinalizer), reported("old")), own: published(service())},
			want: plan{problem: &problem{
				reason: reasonOperated, effect: suspend,
				message: "Tailscale's operator publishes this Service, as its finalizer shows. If you have uninstalled the operator, remove the finalizers tailscale.com/finalizer and tailscale.com/service-pg-finalizer from the Service",
			}},
		},
		"NameTaken": {
			reason: "The first problem of the object is the Service's.",
			facts: facts{service: service(), own: published(service(), pending, condition(meta.TypeAccepted, corev1.ConditionTrue, "Accepted", ""),
				condition(meta.TypeVIPServiceReady, corev1.ConditionFalse, meta.ReasonNameTaken, "shop/other has the name"))},
			want: plan{problem: &problem{reason: "NameTaken", message: `TailscaleServices "web": shop/other has the name`}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := decide(tc.facts)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(plan{}, problem{})); diff != "" {
				t.Errorf("\n%s\ndecide(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPatchOf(t *testing.T) {
	tagged := annotated(meta.AnnotationTags, "tag:a")
	cases := map[string]struct {
		reason    string
		own, want *gatewayv1alpha1.TailscaleServices
		patch     string
	}{
		"Tags": {
			reason: "Tags are written as a whole.",
			own:    published(service()), want: published(service(tagged)),
			patch: `{"metadata":{"annotations":{"gateway.tailscale.com/applied":"` + published(service(tagged)).Annotations[meta.AnnotationApplied] + `"},"ownerReferences":[{"apiVersion":"v1","kind":"Service","name":"web","uid":"uid-web"}],"uid":"uid-own"},"spec":{"selector":{"matchLabels":{"gateway.tailscale.com/endpoints":"published"}},"vipService":{"tags":["tag:a"]}}}`,
		},
		"NoTags": {
			reason: "Tags that the Service had go with its annotation.",
			own:    published(service(tagged)), want: published(service()),
			patch: `{"metadata":{"annotations":{"gateway.tailscale.com/applied":"` + published(service()).Annotations[meta.AnnotationApplied] + `"},"ownerReferences":[{"apiVersion":"v1","kind":"Service","name":"web","uid":"uid-web"}],"uid":"uid-own"},"spec":{"selector":{"matchLabels":{"gateway.tailscale.com/endpoints":"published"}},"vipService":{"tags":null}}}`,
		},
		"Owner": {
			reason: "The Service replaces one that is gone, beside other owners, and tags of the user stay.",
			own: published(service(), func(o *gatewayv1alpha1.TailscaleServices) {
				o.OwnerReferences = append([]metav1.OwnerReference{{APIVersion: "example.org/v1", Kind: "App", Name: "shop", UID: "uid-app"}}, o.OwnerReferences...)
			}),
			want:  published(service(func(s *corev1.Service) { s.UID = "uid-restored" })),
			patch: `{"metadata":{"annotations":{"gateway.tailscale.com/applied":"` + published(service()).Annotations[meta.AnnotationApplied] + `"},"ownerReferences":[{"apiVersion":"example.org/v1","kind":"App","name":"shop","uid":"uid-app"},{"apiVersion":"v1","kind":"Service","name":"web","uid":"uid-restored"}],"uid":"uid-own"},"spec":{"selector":{"matchLabels":{"gateway.tailscale.com/endpoints":"published"}}}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := patchOf(tc.own, tc.want)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.patch, string(got)); diff != "" {
				t.Errorf("\n%s\npatchOf(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
