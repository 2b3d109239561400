// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/compose"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

var owner = compose.Owner{Namespace: "shop", Name: "web"}

// set returns a ProxySet of endpoints with ingress machines and a label that the tests select.
func set(endpoints, tailnet string, machines int32) tailnetv1alpha1.ProxySet {
	p := tailnetv1alpha1.ProxySet{ObjectMeta: metav1.ObjectMeta{Name: endpoints, Labels: map[string]string{"proxies": "web"}}}
	p.Spec.Endpoints, p.Spec.Tailnet = endpoints, tailnet
	p.Spec.Sets = []tailnetv1alpha1.ProxySetMember{{Direction: tailnetv1alpha1.DirectionIngress, Replicas: machines}}
	return p
}

// templated returns endpoints from the template of an object.
func templated(object, tailnet string) tailnetv1alpha1.ProxySet {
	p := set(TemplateName(compose.Owner{Name: object}), tailnet, 2)
	p.Labels[meta.LabelAutoProvisioned], p.Labels[meta.LabelServices] = "true", object
	return p
}

func TestSelect(t *testing.T) {
	matching := metav1.LabelSelector{MatchLabels: map[string]string{"proxies": "web"}}
	other := set("other", "corp", 2)
	other.Labels = nil
	deleted := set("deleted", "corp", 2)
	deleted.DeletionTimestamp = &metav1.Time{}
	closed := set("closed", "corp", 2)
	closed.Spec.IngressPorts = &tailnetv1alpha1.ProxySetPorts{Allowed: []int32{443}}
	template := &gatewayv1alpha1.EndpointTemplate{Tailnet: "corp"}
	type want struct {
		Selected, Superseded []string
		Provision            bool
		Err                  string
		Tailnets             []string
	}
	cases := map[string]struct {
		reason   string
		selector metav1.LabelSelector
		template *gatewayv1alpha1.EndpointTemplate
		sets     []tailnetv1alpha1.ProxySet
		want     want
	}{
		"Matching": {
			reason:   "Endpoints that match are selected, by name.",
			selector: matching, sets: []tailnetv1alpha1.ProxySet{set("b", "corp", 2), set("a", "corp", 2), other, deleted},
			want: want{Selected: []string{"a", "b"}, Tailnets: []string{"corp"}},
		},
		"Tailnets": {
			reason:   "They may be of several tailnets, which a condition reports.",
			selector: matching, sets: []tailnetv1alpha1.ProxySet{set("a", "corp", 2), set("b", "lab", 2)},
			want: want{Selected: []string{"a", "b"}, Tailnets: []string{"corp", "lab"}},
		},
		"Provision": {
			reason:   "The template is for a service without endpoints.",
			selector: matching, template: template, sets: []tailnetv1alpha1.ProxySet{other},
			want: want{Provision: true, Tailnets: []string{"corp"}},
		},
		"Provisioned": {
			reason:   "Endpoints of the template are selected once they exist, those of another service are not.",
			selector: matching, template: template, sets: []tailnetv1alpha1.ProxySet{templated("web", "corp"), templated("api", "corp")},
			want: want{Selected: []string{"web-endpoints"}, Provision: true, Tailnets: []string{"corp"}},
		},
		"Replaced": {
			reason:   "Others replace those of the template.",
			selector: matching, template: template, sets: []tailnetv1alpha1.ProxySet{templated("web", "corp"), set("a", "corp", 2)},
			want: want{Selected: []string{"a"}, Superseded: []string{"web-endpoints"}, Tailnets: []string{"corp"}},
		},
		"NoMachines": {
			reason:   "Endpoints that cannot host replace none.",
			selector: matching, template: template, sets: []tailnetv1alpha1.ProxySet{templated("web", "corp"), set("a", "corp", 0)},
			want: want{Selected: []string{"web-endpoints", "a"}, Provision: true, Tailnets: []string{"corp"}},
		},
		"NotAllowed": {
			reason:   "Nor do endpoints that do not allow the ports.",
			selector: matching, template: template, sets: []tailnetv1alpha1.ProxySet{closed},
			want: want{Selected: []string{"closed"}, Provision: true, Tailnets: []string{"corp"}},
		},
		"Labels": {
			reason:   "The template's endpoints must match the selector.",
			selector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpExists}}}, template: template,
			want: want{Err: errTemplateLabels.Error()},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			spec := gatewayv1alpha1.TailscaleServicesSpec{Selector: tc.selector, EndpointTemplate: tc.template}
			spec.VIPService.Ports = []gatewayv1alpha1.ServicePort{"tcp:80"}
			s := Select(Facts{Owner: owner, Spec: spec, Sets: tc.sets})
			got := want{Provision: s.Provision, Tailnets: s.Tailnets()}
			for _, p := range s.Selected {
				got.Selected = append(got.Selected, p.Spec.Endpoints)
			}
			for _, p := range s.Superseded {
				got.Superseded = append(got.Superseded, p.Spec.Endpoints)
			}
			if s.Err != nil {
				got.Err = s.Err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nSelect(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestMissingPorts(t *testing.T) {
	attachment := &tailnetv1alpha1.ServiceAttachment{}
	attachment.Spec.Endpoints, attachment.Spec.Direction = "a", tailnetv1alpha1.DirectionIngress
	attachment.Spec.Ports = []tailnetv1alpha1.AttachmentPort{{Port: 80}, {Port: 8080}}
	cases := map[string]struct {
		reason  string
		allowed *tailnetv1alpha1.ProxySetPorts
		want    []int32
		serves  bool
	}{
		"Unknown": {reason: "A ProxySet of an earlier version limits nothing.", want: []int32{}, serves: true},
		"All":     {reason: "Without a list all ports are allowed.", allowed: &tailnetv1alpha1.ProxySetPorts{All: true}, want: []int32{}, serves: true},
		"Removed": {reason: "A port that the owner of the proxies removes is withdrawn.", allowed: &tailnetv1alpha1.ProxySetPorts{Allowed: []int32{443}}, want: []int32{80}},
		"Added":   {reason: "A port that is not in the list is missing, and the others are served.", allowed: &tailnetv1alpha1.ProxySetPorts{Allowed: []int32{80}}, want: []int32{443}, serves: true},
		"Upgrade": {reason: "Hosted ports stay after an upgrade, until the list changes.", allowed: &tailnetv1alpha1.ProxySetPorts{Allowed: []int32{443}, KeepHosted: true}, want: []int32{}, serves: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := set("a", "corp", 2)
			p.Spec.IngressPorts = tc.allowed
			f := Facts{Owner: owner, Sets: []tailnetv1alpha1.ProxySet{p}, Attachments: map[string]*tailnetv1alpha1.ServiceAttachment{PrefixAttachment + "a": attachment}}
			f.Spec.VIPService.Ports = []gatewayv1alpha1.ServicePort{"tcp:80", "tcp:443"}
			if diff := cmp.Diff(tc.want, f.MissingPorts(p)); diff != "" {
				t.Errorf("\n%s\nMissingPorts(...): -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.serves, f.MayServeAttachment(attachment)); diff != "" {
				t.Errorf("\n%s\nMayServeAttachment(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
