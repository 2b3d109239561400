// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"slices"
	"strings"

	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

const serviceName = "svc:web"

func init() { addCase(vipServiceCase()) }

func vipServiceCase() kindCase[*v1alpha1.VIPService] {
	service := func(e *env, name string) (*tsclient.Service, error) {
		return e.tailnet.Services().Get(e.Context(), name)
	}
	return kindCase[*v1alpha1.VIPService]{
		Kind: v1alpha1.VIPServiceKind,
		New: func(*env) *v1alpha1.VIPService {
			return &v1alpha1.VIPService{Spec: v1alpha1.VIPServiceSpec{ForProvider: v1alpha1.VIPServiceParameters{
				Name: serviceName, Comment: "made by us", Ports: []v1alpha1.ServicePort{"tcp:80"}, Tags: []v1alpha1.Tag{"tag:k8s"},
			}}}
		},
		Others: func(e *env) func() (any, error) {
			e.must(e.tailnet.Services().CreateOrUpdate(e.Context(), tsclient.Service{Name: "svc:others", Ports: []string{"tcp:443"}, Tags: []string{"tag:k8s"}}))
			return func() (any, error) { return service(e, "svc:others") }
		},
		Count: func(e *env) int {
			all, err := e.tailnet.Services().List(e.Context())
			e.must(err)
			return len(all)
		},
		Check: func(e *env, mg *v1alpha1.VIPService) error {
			s, err := service(e, serviceName)
			if err != nil {
				return err
			}
			p := mg.Spec.ForProvider
			type seen struct {
				Comment     string
				Ports, Tags []string
			}
			slices.Sort(s.Ports)
			slices.Sort(s.Tags)
			return differ(
				seen{Comment: p.Comment, Ports: texts(p.Ports), Tags: texts(p.Tags)},
				seen{Comment: s.Comment, Ports: s.Ports, Tags: s.Tags})
		},
		Drift: func(e *env, _ *v1alpha1.VIPService) {
			s, err := service(e, serviceName)
			e.must(err)
			s.Comment, s.Ports = "changed by hand", []string{"tcp:81"}
			e.must(e.tailnet.Services().CreateOrUpdate(e.Context(), *s))
		},
		Update: func(_ *env, mg *v1alpha1.VIPService) {
			p := &mg.Spec.ForProvider
			p.Ports, p.Tags, p.Comment = []v1alpha1.ServicePort{"tcp:80", "tcp:8080"}, []v1alpha1.Tag{"tag:web"}, "changed by us"
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

// texts returns sorted strings of any string type.
func texts[S ~string](items []S) []string {
	out := make([]string, 0, len(items))
	for _, s := range items {
		out = append(out, string(s))
	}
	slices.Sort(out)
	return out
}
