// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package refgrant

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
	gwapiv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"
)

func TestPermitGateway(t *testing.T) {
	from := func(kind, namespace string) []gwapiv1beta1.ReferenceGrantFrom {
		return []gwapiv1beta1.ReferenceGrantFrom{{Group: "gateway.tailscale.com", Kind: gwapiv1.Kind(kind), Namespace: gwapiv1.Namespace(namespace)}}
	}
	to := func(kind string, name *gwapiv1.ObjectName) []gwapiv1beta1.ReferenceGrantTo {
		return []gwapiv1beta1.ReferenceGrantTo{{Group: gwapiv1.GroupName, Kind: gwapiv1.Kind(kind), Name: name}}
	}
	cases := map[string]struct {
		reason         string
		namespace      string
		grantNamespace string
		grant          gwapiv1beta1.ReferenceGrantSpec
		want           bool
	}{
		"Own":            {reason: "A Gateway of the same namespace needs no grant.", namespace: "infra", grantNamespace: "elsewhere", want: true},
		"None":           {reason: "A Gateway of another namespace needs a grant.", namespace: "shop", grantNamespace: "infra"},
		"Named":          {reason: "A grant may name the Gateway.", namespace: "shop", grantNamespace: "infra", grant: gwapiv1beta1.ReferenceGrantSpec{From: from("TailscaleGateway", "shop"), To: to("Gateway", ptr.To(gwapiv1.ObjectName("eg")))}, want: true},
		"All":            {reason: "A grant may be for all Gateways of the namespace.", namespace: "shop", grantNamespace: "infra", grant: gwapiv1beta1.ReferenceGrantSpec{From: from("TailscaleGateway", "shop"), To: to("Gateway", nil)}, want: true},
		"OtherGateway":   {reason: "A grant for another Gateway does not apply.", namespace: "shop", grantNamespace: "infra", grant: gwapiv1beta1.ReferenceGrantSpec{From: from("TailscaleGateway", "shop"), To: to("Gateway", ptr.To(gwapiv1.ObjectName("other")))}},
		"OtherNamespace": {reason: "A grant for another namespace does not apply.", namespace: "shop", grantNamespace: "infra", grant: gwapiv1beta1.ReferenceGrantSpec{From: from("TailscaleGateway", "shop-2"), To: to("Gateway", nil)}},
		"OtherReferrer":  {reason: "A grant for another kind does not apply.", namespace: "shop", grantNamespace: "infra", grant: gwapiv1beta1.ReferenceGrantSpec{From: from("TailscaleServices", "shop"), To: to("Gateway", nil)}},
		"OtherKind":      {reason: "A grant for Services does not apply to Gateways.", namespace: "shop", grantNamespace: "infra", grant: gwapiv1beta1.ReferenceGrantSpec{From: from("TailscaleGateway", "shop"), To: to("Service", nil)}},
		"Elsewhere":      {reason: "A grant in another namespace does not apply, because the referrer could create it.", namespace: "shop", grantNamespace: "shop", grant: gwapiv1beta1.ReferenceGrantSpec{From: from("TailscaleGateway", "shop"), To: to("Gateway", nil)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			gs := Grants{{Namespace: tc.grantNamespace, Name: "g"}: &tc.grant}
			if got := gs.PermitGateway(tc.namespace, types.NamespacedName{Namespace: "infra", Name: "eg"}); got != tc.want {
				t.Errorf("%s\ngot %t", tc.reason, got)
			}
		})
	}
}

func TestServiceOf(t *testing.T) {
	cases := map[string]types.NamespacedName{
		"api.shop.svc":                      {Namespace: "shop", Name: "api"},
		"api.shop.svc.":                     {Namespace: "shop", Name: "api"},
		"API.Shop.SVC":                      {Namespace: "shop", Name: "api"},
		"api.shop.svc.cluster.local":        {Namespace: "shop", Name: "api"},
		"api.shop.svc.corp.example.com.":    {Namespace: "shop", Name: "api"},
		"api-0.api.shop.svc":                {Namespace: "shop", Name: "api"},
		"_http._tcp.api.shop.svc":           {Namespace: "shop", Name: "api"},
		"other.else.svc.shop.svc":           {Namespace: "shop", Name: "svc"},
		"api.shop.svc.other.svc.corp.local": {Namespace: "other", Name: "svc"},
		"shop.svc":                          {},
		"api.shop":                          {},
		"svc.example.com":                   {},
		"api":                               {},
		"192.0.2.1":                         {},
		"2001:db8::1":                       {},
	}
	for host, want := range cases {
		got, ok := ServiceOf(host)
		if got != want || ok != (want.Name != "") {
			t.Errorf("ServiceOf(%q): want %v, got %v, %t", host, want, got, ok)
		}
	}
}
