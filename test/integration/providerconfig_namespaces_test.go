// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
)

// TestGrants checks that a namespace uses a tailnet within its grant only: nothing is sent beyond
// the grant, and the deletion of an object leaves objects of other owners.
func TestGrants(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	name := "granting-" + e.namespace
	e.config(v1alpha1.ClusterProviderConfigKind, name, fmt.Sprintf(
		"  apiURL: %s\n  clusterID: c\n  credentials: {oauthSecretRef: {name: %s, namespace: %s}}\n"+
			"  allowedNamespaces: {from: Grants, grants: [{names: [%s], services: [shop-*], tags: ['tag:k8s'], domains: [shop.example.com]}]}",
		e.sim.URL, credentialsSecret, e.namespace, e.namespace))
	t.Cleanup(func() {
		pc := &v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := client.IgnoreNotFound(shared.kube.Delete(context.WithoutCancel(e.Context()), pc)); err != nil {
			t.Logf("cannot delete config: %v", err)
		}
	})
	keySecret := xpv2.ManagedResourceSpec{WriteConnectionSecretToReference: &xpv2.LocalSecretReference{Name: "key"}}
	beyond := map[string]resource.ModernManaged{
		"grants[0].services": &v1alpha1.VIPService{Spec: v1alpha1.VIPServiceSpec{ForProvider: v1alpha1.VIPServiceParameters{Name: "svc:blog", Ports: []v1alpha1.ServicePort{"tcp:80"}}}},
		"grants[0].tags":     &v1alpha1.AuthKey{Spec: v1alpha1.AuthKeySpec{ManagedResourceSpec: keySecret, ForProvider: v1alpha1.AuthKeyParameters{Tags: []v1alpha1.Tag{"tag:test"}}}},
		"grants[0].domains":  &v1alpha1.SplitDNS{Spec: v1alpha1.SplitDNSSpec{ForProvider: v1alpha1.SplitDNSParameters{Domains: []string{"example.com"}, Nameservers: []string{"100.64.0.1"}}}},
		"grants[0].kinds":    &v1alpha1.Contacts{Spec: v1alpha1.ContactsSpec{ForProvider: v1alpha1.ContactsParameters{Support: ptr.To(v1alpha1.ContactEmail("thief@example.com"))}}},
	}
	i := 0
	for limit, mg := range beyond {
		mg.SetNamespace(e.namespace)
		mg.SetName(fmt.Sprintf("beyond-%d", i))
		i++
		mg.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: v1alpha1.ClusterProviderConfigKind, Name: name})
		e.create(mg)
		e.becomes("the object is refused by "+limit, mg, func() error {
			if c := mg.GetCondition(xpv2.TypeReady); c.Reason != meta.ReasonNotGranted || !strings.Contains(c.Message, limit) {
				return errors.Errorf("Ready is %v", c)
			}
			return nil
		})
		e.must(shared.kube.Delete(t.Context(), mg))
		e.eventually("it goes", func() error {
			if err := e.refresh(mg); !kerrors.IsNotFound(err) {
				return errors.Errorf("the object exists, or cannot be read: %v", err)
			}
			return nil
		})
	}
	services, err := e.tailnet.VIPServices().List(t.Context())
	e.must(err)
	keys, err := e.tailnet.Keys().List(t.Context(), true)
	e.must(err)
	split, err := e.tailnet.DNS().SplitDNS(t.Context())
	e.must(err)
	for _, k := range keys {
		if k.KeyType == "auth" {
			t.Errorf("an auth key beyond the grant was created: %v", k)
		}
	}
	if len(services)+len(split) > 0 {
		t.Errorf("objects beyond the grant were written: %v, %v", services, split)
	}

	// A device of another owner. The Device that refers to it is within the grant.
	victim, err := e.sim.Join(tailnetsim.Puppet{Hostname: "victim", Tags: []string{"tag:other"}})
	e.must(err)
	d := &v1alpha1.Device{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "thief"},
		Spec:       v1alpha1.DeviceSpec{ForProvider: v1alpha1.DeviceParameters{NodeID: victim, Tags: []v1alpha1.Tag{"tag:k8s"}, DeletionPolicy: v1alpha1.DeviceDelete}},
	}
	d.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: v1alpha1.ClusterProviderConfigKind, Name: name})
	e.create(d)
	e.becomes("its tags are not changed", d, func() error {
		if c := d.GetCondition(xpv2.TypeSynced); c.Status != corev1.ConditionFalse || !strings.Contains(c.Message, "tag:other") {
			return errors.Errorf("Synced is %v", c)
		}
		return nil
	})
	e.must(shared.kube.Delete(t.Context(), d))
	e.eventually("the Device goes", func() error {
		if err := e.refresh(d); !kerrors.IsNotFound(err) {
			return errors.Errorf("the object exists, or cannot be read: %v", err)
		}
		return nil
	})
	device, err := e.tailnet.Devices().Get(t.Context(), victim)
	if err != nil || !slices.Equal(device.Tags, []string{"tag:other"}) {
		t.Errorf("a device of another owner was changed: %v, %v", device, err)
	}

	// Objects within the grant work.
	mg := &v1alpha1.VIPService{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: subject},
		Spec: v1alpha1.VIPServiceSpec{ForProvider: v1alpha1.VIPServiceParameters{
			Name: "svc:shop-web", Ports: []v1alpha1.ServicePort{"tcp:80"}, Tags: []v1alpha1.Tag{"tag:k8s"},
		}},
	}
	mg.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: v1alpha1.ClusterProviderConfigKind, Name: name})
	e.create(mg)
	e.becomes("the granted object is created", mg, func() error {
		if c := mg.GetCondition(xpv2.TypeReady); c.Status != corev1.ConditionTrue {
			return errors.Errorf("Ready is %v", c)
		}
		return nil
	})
}

// TestNamespaceSelector checks that the current labels of a namespace decide.
func TestNamespaceSelector(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	name := "selecting-" + e.namespace
	e.config(v1alpha1.ClusterProviderConfigKind, name, fmt.Sprintf(
		"  apiURL: %s\n  clusterID: c\n  credentials: {oauthSecretRef: {name: %s, namespace: %s}}\n  allowedNamespaces: {from: Selector, selector: {matchLabels: {tailnet: home}}}",
		e.sim.URL, credentialsSecret, e.namespace))
	t.Cleanup(func() {
		pc := &v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := client.IgnoreNotFound(shared.kube.Delete(context.WithoutCancel(e.Context()), pc)); err != nil {
			t.Logf("cannot delete config: %v", err)
		}
	})
	d := &v1alpha1.Discovery{
		ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: "devices"},
		Spec:       v1alpha1.DiscoverySpec{ForProvider: v1alpha1.DiscoveryParameters{Sources: []v1alpha1.DiscoverySource{v1alpha1.DiscoverDevices}}},
	}
	d.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: v1alpha1.ClusterProviderConfigKind, Name: name})
	e.create(d)
	mg := e.service(v1alpha1.ClusterProviderConfigKind, name)
	refused := func(o resource.ModernManaged) func() error {
		return func() error {
			if c := o.GetCondition(xpv2.TypeReady); c.Reason != meta.ReasonNamespaceNotAllowed || !strings.Contains(c.Message, name) {
				return errors.Errorf("Ready is %v", c)
			}
			return nil
		}
	}
	e.becomes("the message names the administrator", mg, refused(mg))
	e.becomes("the message names the administrator", d, refused(d))
	if d.Status.AtProvider.Count != nil {
		t.Errorf("the status shows devices to a namespace that may not use the tailnet: %v", d.Status.AtProvider)
	}
	label := func(value string) {
		t.Helper()
		n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: e.namespace}}
		e.must(shared.kube.Patch(t.Context(), n, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"tailnet":`+value+`}}}`))))
	}
	label(`"home"`)
	for _, o := range []resource.ModernManaged{d, mg} {
		// Otherwise the next reconcile is a minute later.
		e.must(shared.kube.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"look":"now"}}}`))))
		e.becomes("the object is ready", o, func() error { return ready(o) })
	}

	// The next poll refuses the object again, and its deletion still works.
	label("null")
	e.becomes("the object is refused again", mg, refused(mg))
	for _, o := range []client.Object{d, mg} {
		e.must(shared.kube.Delete(t.Context(), o))
	}
	e.eventually("the object is deleted", func() error {
		l, err := e.tailnet.Services().List(t.Context())
		if err != nil || len(l) != 0 {
			return errors.Errorf("services: %v, %v", l, err)
		}
		return nil
	})
}
