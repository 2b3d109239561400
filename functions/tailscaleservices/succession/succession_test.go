// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package succession

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/presence"
	"github.com/tailscale-gateway/tailscale-gateway/functions/tailscaleservices/selection"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
)

func TestSucceed(t *testing.T) {
	set := func(endpoints, tailnet string) tailnetv1alpha1.ProxySet {
		p := tailnetv1alpha1.ProxySet{ObjectMeta: metav1.ObjectMeta{Name: endpoints}}
		p.Spec.Endpoints, p.Spec.Tailnet = endpoints, tailnet
		p.Spec.Sets = []tailnetv1alpha1.ProxySetMember{{Direction: tailnetv1alpha1.DirectionIngress, Replicas: 1}}
		return p
	}
	served := &tailnetv1alpha1.ServiceAttachment{}
	served.Spec.Addresses = []string{"100.100.0.1"}
	hosted := func(endpoints string) *tailnetv1alpha1.VIPService {
		v := &tailnetv1alpha1.VIPService{}
		v.Status.AtProvider.Hosts = []tailnetv1alpha1.ServiceHost{{Endpoints: endpoints, Online: true, Configured: true, Approval: "approved:admin"}}
		return v
	}
	user := func(object string) []tailnetv1alpha1.ServiceAttachment {
		return []tailnetv1alpha1.ServiceAttachment{{Spec: tailnetv1alpha1.ServiceAttachmentSpec{Services: object}}}
	}
	earlier, later, template := set("earlier", "corp"), set("later", "corp"), set("web-endpoints", "corp")
	type want struct {
		Staying       []string
		KeepsTemplate bool
	}
	cases := map[string]struct {
		reason     string
		sets       []tailnetv1alpha1.ProxySet
		selected   []tailnetv1alpha1.ProxySet
		superseded []tailnetv1alpha1.ProxySet
		service    *tailnetv1alpha1.VIPService
		users      []tailnetv1alpha1.ServiceAttachment
		complete   bool
		endpoints  bool
		want       want
	}{
		"Waiting": {
			reason: "Endpoints that serve stay until a selected one hosts the service.",
			sets:   []tailnetv1alpha1.ProxySet{earlier, later}, selected: []tailnetv1alpha1.ProxySet{later}, service: hosted("earlier"),
			want: want{Staying: []string{"earlier"}},
		},
		"TakenOver": {
			reason: "Then they no longer serve.",
			sets:   []tailnetv1alpha1.ProxySet{earlier, later}, selected: []tailnetv1alpha1.ProxySet{later}, service: hosted("later"),
		},
		"OtherTailnet": {
			reason: "A service cannot be served in two tailnets.",
			sets:   []tailnetv1alpha1.ProxySet{set("earlier", "lab"), later}, selected: []tailnetv1alpha1.ProxySet{later},
		},
		"NoneSelected": {
			reason: "Without selected endpoints nothing takes over.",
			sets:   []tailnetv1alpha1.ProxySet{earlier},
		},
		"Superseded": {
			reason: "Those of the template stay until others host the service.",
			sets:   []tailnetv1alpha1.ProxySet{later, template}, selected: []tailnetv1alpha1.ProxySet{later}, superseded: []tailnetv1alpha1.ProxySet{template}, endpoints: true,
			want: want{KeepsTemplate: true},
		},
		"TemplateUnused": {
			reason: "They are deleted then.",
			sets:   []tailnetv1alpha1.ProxySet{later}, selected: []tailnetv1alpha1.ProxySet{later}, service: hosted("later"), endpoints: true, complete: true, users: user("web"),
		},
		"TemplateUsed": {
			reason: "They stay while another service uses them.",
			sets:   []tailnetv1alpha1.ProxySet{later}, selected: []tailnetv1alpha1.ProxySet{later}, service: hosted("later"), endpoints: true, complete: true, users: user("api"),
			want: want{KeepsTemplate: true},
		},
		"TemplateUnknown": {
			reason: "Unknown is not no.",
			sets:   []tailnetv1alpha1.ProxySet{later}, selected: []tailnetv1alpha1.ProxySet{later}, service: hosted("later"), endpoints: true,
			want: want{KeepsTemplate: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := selection.Selection{
				Facts: selection.Facts{
					Owner: compose.Owner{Namespace: "shop", Name: "web"}, Sets: tc.sets,
					Spec:        gatewayv1alpha1.TailscaleServicesSpec{EndpointTemplate: &gatewayv1alpha1.EndpointTemplate{Tailnet: "corp"}},
					Attachments: map[string]*tailnetv1alpha1.ServiceAttachment{selection.PrefixAttachment + "earlier": served},
				},
				Selected: tc.selected, Superseded: tc.superseded,
			}
			f := Facts{Selection: s, Presence: presence.New(tc.service, "corp", false), Tailnet: "corp", TemplateUsers: tc.users, TemplateUsersKnown: tc.complete}
			if tc.endpoints {
				f.Endpoints = &gatewayv1alpha1.TailscaleEndpoints{}
			}
			out := Succeed(f)
			got := want{KeepsTemplate: out.KeepsTemplate()}
			for _, p := range out.Staying {
				got.Staying = append(got.Staying, p.Spec.Endpoints)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nSucceed(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
