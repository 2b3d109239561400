// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"strings"

	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/test/lifecycle"
)

// serviceName is the name of the case's service.
var serviceName = string(lifecycle.VIPService(caseNames).New().Spec.ForProvider.Name)

func init() { addCase(vipServiceCase()) }

func vipServiceCase() kindCase[*v1alpha1.VIPService] {
	return kindCase[*v1alpha1.VIPService]{
		Kind:   v1alpha1.VIPServiceKind,
		Shared: lifecycle.VIPService(caseNames),
		Others: func(e *env) func() (any, error) {
			e.must(e.tailnet.Services().CreateOrUpdate(e.Context(), tsclient.Service{Name: "svc:others", Ports: []string{"tcp:443"}, Tags: []string{"tag:k8s"}}))
			return func() (any, error) { return e.tailnet.Services().Get(e.Context(), "svc:others") }
		},
		Count: func(e *env) int {
			all, err := e.tailnet.Services().List(e.Context())
			e.must(err)
			return len(all)
		},
		Foreign: func(e *env, _ *v1alpha1.VIPService) string {
			e.must(e.tailnet.Services().CreateOrUpdate(e.Context(), tsclient.Service{Name: serviceName, Ports: []string{"tcp:443"}, Tags: []string{"tag:k8s"}}))
			return ""
		},
		Adopt: func(mg *v1alpha1.VIPService, _ string) {
			mg.Spec.ForProvider.AdoptionPolicy = v1alpha1.AdoptionPolicyAdopt
		},
		Refused: "adoptionPolicy",
		Bad: []badInput[*v1alpha1.VIPService]{
			{Name: "NoPrefix", Break: func(mg *v1alpha1.VIPService) { mg.Spec.ForProvider.Name = "web" }, Want: []string{"spec.forProvider.name", "must be svc: followed by"}},
			{Name: "UpperCase", Break: func(mg *v1alpha1.VIPService) { mg.Spec.ForProvider.Name = "svc:Web" }, Want: []string{"spec.forProvider.name", "must be svc: followed by"}},
			{Name: "Reserved", Break: func(mg *v1alpha1.VIPService) { mg.Spec.ForProvider.Name = "svc:wpad" }, Want: []string{"spec.forProvider.name", "choose another"}},
			{Name: "NoPorts", Break: func(mg *v1alpha1.VIPService) { mg.Spec.ForProvider.Ports = []v1alpha1.ServicePort{} }, Want: []string{"spec.forProvider.ports", "at least 1"}},
			{Name: "UDP", Break: func(mg *v1alpha1.VIPService) { mg.Spec.ForProvider.Ports = []v1alpha1.ServicePort{"udp:53"} }, Want: []string{"spec.forProvider.ports[0]", "Tailscale Services support only TCP ports"}},
			{Name: "PortTooHigh", Break: func(mg *v1alpha1.VIPService) { mg.Spec.ForProvider.Ports = []v1alpha1.ServicePort{"tcp:65536"} }, Want: []string{"spec.forProvider.ports[0]", "from 1 to 65535"}},
			{Name: "SamePortTwice", Break: func(mg *v1alpha1.VIPService) { mg.Spec.ForProvider.Ports = []v1alpha1.ServicePort{"tcp:80", "tcp:80"} }, Want: []string{"spec.forProvider.ports", "Duplicate"}},
			{Name: "BadTag", Break: func(mg *v1alpha1.VIPService) { mg.Spec.ForProvider.Tags = []v1alpha1.Tag{"k8s"} }, Want: []string{"spec.forProvider.tags[0]", "must be tag:"}},
			{Name: "BadAdoptionPolicy", Break: func(mg *v1alpha1.VIPService) { mg.Spec.ForProvider.AdoptionPolicy = "Steal" }, Want: []string{"spec.forProvider.adoptionPolicy", "Refuse"}},
			{Name: "LongDisplayName", Break: func(mg *v1alpha1.VIPService) { mg.Spec.ForProvider.DisplayName = strings.Repeat("x", 65) }, Want: []string{"spec.forProvider.displayName", "more than 64"}},
			{Name: "BadSharing", Break: func(mg *v1alpha1.VIPService) { mg.Spec.ForProvider.Sharing = "Both" }, Want: []string{"spec.forProvider.sharing", "Exclusive"}},
			{Name: "OurAnnotation", Break: func(mg *v1alpha1.VIPService) {
				mg.Spec.ForProvider.Annotations = map[string]string{"gateway.tailscale.com/owner": "me"}
			}, Want: []string{"spec.forProvider.annotations", "the provider manages those"}},
			{Name: "OwnerReferences", Break: func(mg *v1alpha1.VIPService) {
				mg.Spec.ForProvider.Annotations = map[string]string{"tailscale.com/owner-references": "{}"}
			}, Want: []string{"spec.forProvider.annotations", "the provider manages those"}},
			{Name: "SamePlaceTwice", Break: func(mg *v1alpha1.VIPService) { mg.Spec.ForProvider.Routes = []string{"HTTPRoute/a/b", "HTTPRoute/a/b"} }, Want: []string{"spec.forProvider.routes", "Duplicate"}},
			{Name: "BadRecordTag", Break: func(mg *v1alpha1.VIPService) { mg.Spec.ForProvider.RecordTags = []v1alpha1.Tag{"k8s"} }, Want: []string{"spec.forProvider.recordTags[0]", "must be tag:"}},
			{Name: "RenamedLater", OnUpdate: true, Break: func(mg *v1alpha1.VIPService) { mg.Spec.ForProvider.Name = "svc:other" }, Want: []string{"spec.forProvider.name", "is immutable"}},
		},
	}
}
