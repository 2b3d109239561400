// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// service returns a Service of the class.
func service(changes ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "uid-web"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, LoadBalancerClass: ptr.To(meta.LoadBalancerClass), ClusterIP: "10.96.0.7",
			Ports: []corev1.ServicePort{{Port: 80}},
		},
	}
	for _, change := range changes {
		change(s)
	}
	return s
}

func annotated(pairs ...string) func(*corev1.Service) {
	return func(s *corev1.Service) {
		if s.Annotations == nil {
			s.Annotations = map[string]string{}
		}
		for i := 0; i < len(pairs); i += 2 {
			s.Annotations[pairs[i]] = pairs[i+1]
		}
	}
}

func ofType(t corev1.ServiceType) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Spec.Type, s.Spec.LoadBalancerClass = t, nil }
}

func ofClass(class string) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Spec.LoadBalancerClass = ptr.To(class) }
}

func labelled(value string) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Labels = map[string]string{meta.LabelPublish: value} }
}

func finalized(f string) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Finalizers = []string{f} }
}

func deleted(s *corev1.Service) {
	s.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)}
	s.Finalizers = []string{"example.org/keep"}
}

func TestAsks(t *testing.T) {
	type want struct{ asks, classed bool }
	cases := map[string]struct {
		reason   string
		service  *corev1.Service
		operator bool
		want     want
	}{
		"Class":          {reason: "The class asks, and its status is ours.", service: service(), want: want{asks: true, classed: true}},
		"OtherClass":     {reason: "Another class is of another controller.", service: service(ofClass("example.org/lb"))},
		"NoClass":        {reason: "So is a Service without a class.", service: service(ofType(corev1.ServiceTypeLoadBalancer))},
		"Label":          {reason: "The label asks for a Service of any type.", service: service(ofType(corev1.ServiceTypeClusterIP), labelled("true")), want: want{asks: true}},
		"LabelFalse":     {reason: "Another value does not ask.", service: service(ofType(corev1.ServiceTypeClusterIP), labelled("false"))},
		"LabelCloud":     {reason: "The status of a cloud's load balancer is the cloud's.", service: service(ofClass("example.org/lb"), labelled("true")), want: want{asks: true}},
		"Deleted":        {reason: "A Service that waits for somebody else's finalizer does not ask.", service: service(deleted), want: want{classed: true}},
		"OperatorOff":    {reason: "The operator's class is the operator's.", service: service(ofClass(operatorClass))},
		"OperatorClass":  {reason: "It counts on request.", service: service(ofClass(operatorClass)), operator: true, want: want{asks: true, classed: true}},
		"OperatorExpose": {reason: "So does its annotation.", service: service(ofType(corev1.ServiceTypeClusterIP), annotated(operatorExpose, "true")), operator: true, want: want{asks: true}},
		"OperatorEgress": {reason: "Its egress Services lead into the tailnet.", service: service(ofType(corev1.ServiceTypeExternalName), annotated("tailscale.com/tailnet-fqdn", "db.example.ts.net")), operator: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := want{asks: asks(tc.service, tc.operator), classed: isClassed(tc.service, tc.operator)}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("\n%s\nasks(...), isClassed(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRequestOf(t *testing.T) {
	ports := func(n int, protocol corev1.Protocol) func(*corev1.Service) {
		return func(s *corev1.Service) {
			s.Spec.Ports = nil
			for i := range n {
				s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Protocol: protocol, Port: int32(i + 1)})
			}
		}
	}
	var manyTags []string
	for i := range maxTags + 1 {
		manyTags = append(manyTags, fmt.Sprintf("tag:t%d", i))
	}
	type want struct {
		request *request
		problem string // A part of the message.
		effect  effect
	}
	cases := map[string]struct {
		reason   string
		service  *corev1.Service
		operator bool
		want     want
	}{
		"Default": {
			reason:  "The name differs between namespaces, and proxies are those of the namespace.",
			service: service(),
			want:    want{request: &request{hostname: "shop-web", endpoints: "published"}},
		},
		"LongName": {
			reason:  "A name that is too long gets a hash.",
			service: service(func(s *corev1.Service) { s.Namespace, s.Name = strings.Repeat("n", 40), strings.Repeat("s", 40) }),
			want:    want{request: &request{hostname: strings.Repeat("n", 40) + "-" + strings.Repeat("s", 13) + "-be2cfbb4", endpoints: "published"}},
		},
		"All": {
			reason:  "Annotations choose the name, the tags and the tailnet; tags are sorted, each once.",
			service: service(annotated(meta.AnnotationHostname, "store", meta.AnnotationTags, "tag:web, tag:a,tag:web", meta.AnnotationTailnet, "home")),
			want:    want{request: &request{hostname: "store", tags: []gatewayv1alpha1.Tag{"tag:a", "tag:web"}, endpoints: "published-home", tailnet: "home"}},
		},
		"Endpoints": {
			reason:  "A TailscaleEndpoints of the user has its own tailnet.",
			service: service(annotated(meta.AnnotationEndpoints, "proxies", meta.AnnotationTailnet, "home")),
			want:    want{request: &request{hostname: "shop-web", endpoints: "proxies", explicit: true}},
		},
		"OperatorOff": {
			reason:  "The operator's annotations do not count for a Service of our class.",
			service: service(annotated(operatorHostname, "store", operatorTags, "tag:a", operatorGroup, "group")), operator: true,
			want: want{request: &request{hostname: "shop-web", endpoints: "published"}},
		},
		"Operator": {
			reason:  "They do for a Service of the operator's.",
			service: service(ofClass(operatorClass), annotated(operatorHostname, "store", operatorTags, "tag:a", operatorGroup, "group")), operator: true,
			want: want{request: &request{hostname: "store", tags: []gatewayv1alpha1.Tag{"tag:a"}, endpoints: "group"}},
		},
		"OperatorBoth": {
			reason:  "Ours win.",
			service: service(ofClass(operatorClass), annotated(operatorHostname, "store", meta.AnnotationHostname, "front", operatorGroup, "group", meta.AnnotationTailnet, "home")), operator: true,
			want: want{request: &request{hostname: "front", endpoints: "group-home", tailnet: "home"}},
		},
		"Operated": {
			reason:  "Two controllers must not write one status.",
			service: service(ofClass(operatorClass), finalized(operatorFinalizer)), operator: true,
			want: want{problem: "remove the finalizers", effect: suspend},
		},
		"OperatedGroup": {
			reason:  "Proxies of a ProxyGroup have another finalizer.",
			service: service(ofClass(operatorClass), finalized(operatorGroupFinalizer)), operator: true,
			want: want{problem: "remove the finalizers", effect: suspend},
		},
		"OperatedLabel": {
			reason:  "A Service that also asks here moves from the operator.",
			service: service(ofType(corev1.ServiceTypeClusterIP), labelled("true"), annotated(operatorExpose, "true"), finalized(operatorFinalizer)), operator: true,
			want: want{request: &request{hostname: "shop-web", endpoints: "published"}},
		},
		"ExternalName": {
			reason:  "A name of another namespace would need a grant.",
			service: service(ofType(corev1.ServiceTypeExternalName), labelled("true")),
			want:    want{problem: "ExternalName", effect: withdraw},
		},
		"Headless": {
			reason:  "Proxies would connect to the pods at the Service's port.",
			service: service(labelled("true"), ofType(corev1.ServiceTypeClusterIP), func(s *corev1.Service) { s.Spec.ClusterIP = corev1.ClusterIPNone }),
			want:    want{problem: "headless", effect: withdraw},
		},
		"SourceRanges": {
			reason:  "A limit that nothing enforces must not be ignored.",
			service: service(func(s *corev1.Service) { s.Spec.LoadBalancerSourceRanges = []string{"10.0.0.0/8"} }),
			want:    want{problem: "spec.loadBalancerSourceRanges"},
		},
		"UDP": {reason: "Tailscale Services have TCP ports.", service: service(ports(1, corev1.ProtocolUDP)), want: want{problem: "no TCP port"}},
		"MixedPorts": {reason: "Other ports are left out.", service: service(func(s *corev1.Service) {
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Port: 53, Protocol: corev1.ProtocolUDP})
		}), want: want{request: &request{hostname: "shop-web", endpoints: "published"}}},
		"ManyPorts":    {reason: "A TailscaleServices has a limited number.", service: service(ports(maxPorts+1, corev1.ProtocolTCP)), want: want{problem: "more than 64 TCP ports"}},
		"Hostname":     {reason: "A hostname is a label.", service: service(annotated(meta.AnnotationHostname, "a.b")), want: want{problem: `gateway.tailscale.com/hostname is "a.b"`}},
		"LongHostname": {reason: "A message does not repeat a long value.", service: service(annotated(meta.AnnotationHostname, strings.Repeat("a", 2000))), want: want{problem: strings.Repeat("a", maxShown) + `..."`}},
		"Endless":      {reason: "A value that the cache has cut is refused.", service: service(annotated(meta.AnnotationTags, strings.Repeat("tag:a,", 400))), want: want{problem: "is longer than 2048 bytes"}},
		"Tag":          {reason: "A tag has a form.", service: service(annotated(meta.AnnotationTags, "tag:a,web")), want: want{problem: `gateway.tailscale.com/tags has "web"`}},
		"EmptyTag":     {reason: "A comma stands between tags.", service: service(annotated(meta.AnnotationTags, "tag:a,")), want: want{problem: `has ""`}},
		"ManyTags":     {reason: "Their number is limited.", service: service(annotated(meta.AnnotationTags, strings.Join(manyTags, ","))), want: want{problem: "more than 32 tags"}},
		"OperatorTag":  {reason: "The message has the annotation that the user wrote.", service: service(ofClass(operatorClass), annotated(operatorTags, "web")), operator: true, want: want{problem: `tailscale.com/tags has "web"`}},
		"Proxies":      {reason: "A name of an object has a form.", service: service(annotated(meta.AnnotationEndpoints, "../x")), want: want{problem: `gateway.tailscale.com/endpoints is "../x"`}},
		"Group":        {reason: "So has that of a ProxyGroup.", service: service(ofClass(operatorClass), annotated(operatorGroup, "A B")), operator: true, want: want{problem: `tailscale.com/proxy-group is "A B"`}},
		"Tailnet":      {reason: "And that of a tailnet.", service: service(annotated(meta.AnnotationTailnet, "-")), want: want{problem: `gateway.tailscale.com/tailnet is "-"`}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, p := requestOf(tc.service, tc.operator)
			got := want{request: r}
			if p != nil {
				got.effect = p.effect
				if got.problem = p.message; tc.want.problem != "" && strings.Contains(p.message, tc.want.problem) {
					got.problem = tc.want.problem
				}
				if len(p.message) > 1024 {
					t.Errorf("\n%s\nrequestOf(...): the message has %d bytes, and that of an event 1024 at most", tc.reason, len(p.message))
				}
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{}, request{})); diff != "" {
				t.Errorf("\n%s\nrequestOf(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
