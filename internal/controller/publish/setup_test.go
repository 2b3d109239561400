// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// whole returns a Service with all that a tenant can write.
func whole(s *corev1.Service) {
	s.ResourceVersion = "7"
	s.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	s.OwnerReferences = []metav1.OwnerReference{{Kind: "App"}}
	s.Finalizers = []string{"example.org/keep", operatorGroupFinalizer}
	annotated("example.org/note", strings.Repeat("n", 9000), meta.AnnotationTags, strings.Repeat("t", 9000))(s)
	if s.Labels == nil {
		s.Labels = map[string]string{}
	}
	s.Labels["app"] = "web"
	s.Spec.Selector = map[string]string{"app": "web"}
	s.Spec.LoadBalancerSourceRanges = []string{"10.0.0.0/8", "192.168.0.0/16"}
	s.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: 80, NodePort: 30080, AppProtocol: ptr.To("http")}}
	s.Status = corev1.ServiceStatus{Conditions: []metav1.Condition{{Type: "X"}}, LoadBalancer: corev1.LoadBalancerStatus{Ingress: addresses("shop-web")}}
}

func TestStripService(t *testing.T) {
	identity := metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-web", ResourceVersion: "7"}
	cases := map[string]struct {
		reason   string
		service  *corev1.Service
		operator bool
		want     *corev1.Service
	}{
		"Asks": {
			reason:  "The fields that decide stay, and a long annotation shows that it was long.",
			service: service(whole),
			want: &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: "shop", Name: "web", UID: "uid-web", ResourceVersion: "7", Finalizers: []string{operatorFinalizer},
					Annotations: map[string]string{meta.AnnotationTags: strings.Repeat("t", maxAnnotation+1)},
				},
				Spec: corev1.ServiceSpec{
					Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: ptr.To(meta.LoadBalancerClass),
					LoadBalancerSourceRanges: []string{"10.0.0.0/8"}, Ports: []corev1.ServicePort{{Port: 80}},
				},
				Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: addresses("shop-web")}},
			},
		},
		"Not":         {reason: "Of others, only what identifies them stays.", service: service(whole, ofClass("example.org/lb")), want: &corev1.Service{ObjectMeta: identity}},
		"OperatorOff": {reason: "The operator's are others.", service: service(whole, ofClass(operatorClass)), want: &corev1.Service{ObjectMeta: identity}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			strip := stripService(tc.operator)
			got, err := strip(tc.service)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("\n%s\nstripService(...): -want, +got:\n%s", tc.reason, diff)
			}
			// A cache may strip an object twice.
			repeated, err := strip(got.(*corev1.Service).DeepCopy())
			if diff := cmp.Diff(got, repeated, cmpopts.EquateEmpty()); err != nil || diff != "" {
				t.Errorf("\n%s\nstripService(...) of the result: %v, -want, +got:\n%s", tc.reason, err, diff)
			}
		})
	}
}

// TestStripOurs checks that a plan for what the cache keeps is the plan for the whole objects.
func TestStripOurs(t *testing.T) {
	s := service(annotated(meta.AnnotationTags, "tag:a"), reported("shop-web"))
	own := published(s)
	own.Finalizers, own.Annotations["example.org/note"], own.Spec.Drain = []string{"x"}, "note", true
	want := decide(facts{service: s, own: own.DeepCopy()})
	stripped, err := stripOurs(own.DeepCopy())
	if err != nil {
		t.Fatal(err)
	}
	small, err := stripService(false)(s)
	if err != nil {
		t.Fatal(err)
	}
	f := facts{service: small.(*corev1.Service), own: stripped.(*gatewayv1alpha1.TailscaleServices)}
	if diff := cmp.Diff(want, decide(f), cmp.AllowUnexported(plan{}, problem{})); diff != "" {
		t.Errorf("decide(...): -whole, +stripped:\n%s", diff)
	}
}

func TestAsking(t *testing.T) {
	plain := service(ofClass("example.org/lb"))
	cases := map[string]struct {
		reason   string
		old, new *corev1.Service
		want     bool
	}{
		"Starts":    {reason: "A Service that asks is reconciled.", old: plain, new: service(), want: true},
		"Ends":      {reason: "So is one that does not any more.", old: service(), new: plain, want: true},
		"Changes":   {reason: "So is one that asks for something else.", old: service(), new: service(annotated(meta.AnnotationHostname, "store")), want: true},
		"Same":      {reason: "A change that the cache does not keep concerns nobody.", old: service(), new: service(func(s *corev1.Service) { s.ResourceVersion = "8" })},
		"Unrelated": {reason: "Nor does another Service.", old: plain, new: service(ofClass("example.org/lb"), annotated(meta.AnnotationHostname, "store"))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := asking(false).Update(event.TypedUpdateEvent[*corev1.Service]{ObjectOld: tc.old, ObjectNew: tc.new}); got != tc.want {
				t.Errorf("\n%s\nUpdate(...): want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}

// TestBeside checks that a Service in several caches is requested once.
func TestBeside(t *testing.T) {
	other := service(func(s *corev1.Service) { s.Name = "api" })
	elsewhere := service(func(s *corev1.Service) { s.Namespace = "bank" })
	kube := fakeClient(nil, service(), other, elsewhere)
	r := &reconciler{services: services{kube, kube}}
	request := func(namespace, name string) reconcile.Request {
		return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
	}
	if diff := cmp.Diff([]reconcile.Request{request("shop", "api"), request("shop", "web")}, r.beside(t.Context(), endpoints("published", true))); diff != "" {
		t.Errorf("beside(...): -want, +got:\n%s", diff)
	}
	if diff := cmp.Diff([]reconcile.Request{request("bank", "web"), request("shop", "api"), request("shop", "web")}, r.everywhere(t.Context(), tailnet("home"))); diff != "" {
		t.Errorf("everywhere(...): -want, +got:\n%s", diff)
	}
}

// TestForeign checks that the metadata of our own objects, which other events cover, requests nothing.
func TestForeign(t *testing.T) {
	cases := map[string]struct {
		reason   string
		old, new client.Object
		want     bool
	}{
		"Ours":    {reason: "A change of our object has an event with its status.", old: published(service()), new: published(service())},
		"User":    {reason: "A change of the user's does not matter.", old: strange(), new: strange()},
		"Release": {reason: "A user who removes the label takes the object over.", old: published(service()), new: strange(), want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := foreign().Update(event.UpdateEvent{ObjectOld: tc.old, ObjectNew: tc.new}); got != tc.want {
				t.Errorf("\n%s\nUpdate(...): want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}
