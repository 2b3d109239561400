// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"context"
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	tsclient "tailscale.com/client/tailscale/v2"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// TestForgedCleanUp has a namespace lose its permission, and then write into the annotations of its
// objects that things of others are theirs, and delete the objects.
func TestForgedCleanUp(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	name := "once-" + e.namespace
	e.config(v1alpha1.ClusterProviderConfigKind, name, fmt.Sprintf(
		"  apiURL: %s\n  clusterID: c\n  credentials: {oauthSecretRef: {name: %s, namespace: %s}}\n  allowedNamespaces: {from: List, names: [%s]}",
		e.sim.URL, credentialsSecret, e.namespace, e.namespace))
	pc := &v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: name}}
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(shared.kube.Delete(context.WithoutCancel(e.Context()), pc)); err != nil {
			t.Logf("cannot delete config: %v", err)
		}
	})
	ref := &xpv2.ProviderConfigReference{Kind: v1alpha1.ClusterProviderConfigKind, Name: name}
	e.must(e.tailnet.DNS().SetPreferences(t.Context(), tsclient.DNSPreferences{MagicDNS: false}))
	e.must(e.tailnet.DNS().SetNameservers(t.Context(), []string{"192.0.2.53"}))
	theirs, err := e.tailnet.Keys().CreateAuthKey(t.Context(), tsclient.CreateKeyRequest{Description: "theirs"})
	e.must(err)

	key := &v1alpha1.AuthKey{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "thief"},
		Spec:       v1alpha1.AuthKeySpec{ForProvider: v1alpha1.AuthKeyParameters{Tags: []v1alpha1.Tag{"tag:k8s"}}},
	}
	key.SetWriteConnectionSecretToReference(&xpv2.LocalSecretReference{Name: "thief"})
	dns := &v1alpha1.DNS{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "thief"},
		Spec:       v1alpha1.DNSSpec{ForProvider: v1alpha1.DNSParameters{SearchPaths: &[]string{"corp.example"}}},
	}
	split := &v1alpha1.SplitDNS{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "thief"},
		Spec:       v1alpha1.SplitDNSSpec{ForProvider: v1alpha1.SplitDNSParameters{Domains: []string{"own.example.com"}, Nameservers: []string{"192.0.2.1"}}},
	}
	_, err = e.tailnet.DNS().UpdateSplitDNS(t.Context(), tsclient.SplitDNSRequest{"theirs.example.com": {"192.0.2.54"}})
	e.must(err)
	all := map[resource.ModernManaged]string{
		key:   xpmeta.AnnotationKeyExternalName + `":"` + theirs.ID,
		dns:   `tailnet.gateway.tailscale.com/dns-record":"{\"nameservers\":[[\"192.0.2.53\"]]}`,
		split: `tailnet.gateway.tailscale.com/splitdns-record":"{\"theirs.example.com\":[\"192.0.2.54\"]}`,
	}
	for mg := range all {
		mg.SetProviderConfigReference(ref)
		e.create(mg)
	}
	for mg := range all {
		e.condition(mg, xpv2.TypeReady, "True", xpv2.ReasonAvailable)
	}
	e.must(shared.kube.Patch(t.Context(), pc, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"allowedNamespaces":{"names":["elsewhere"]}}}`))))
	for mg := range all {
		e.condition(mg, xpv2.TypeReady, "False", meta.ReasonNamespaceNotAllowed)
	}
	for mg, annotation := range all {
		e.must(shared.kube.Patch(t.Context(), mg, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+annotation+`"}}}`))))
		e.goes(mg)
	}
	if k, err := e.tailnet.Keys().Get(t.Context(), theirs.ID); err != nil || k.Invalid {
		t.Errorf("want the key of another to be left, got %v, %v", k, err)
	}
	ns, err := e.tailnet.DNS().Nameservers(t.Context())
	e.must(err)
	domains, err := e.tailnet.DNS().SplitDNS(t.Context())
	e.must(err)
	if !slices.Equal(ns, []string{"192.0.2.53"}) || len(domains["theirs.example.com"]) != 1 {
		t.Errorf("want the nameservers of others to be left, got %v, %v", ns, domains)
	}
}
