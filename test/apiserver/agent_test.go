//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/kube"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
)

// TestAgentClient checks that the agent's client can do all that the agent does, with the role of a proxy
// and no more.
func TestAgentClient(t *testing.T) {
	s, err := apiserver.Start(t.Context(), apiserver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	admin, err := client.New(s.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	o := proxy.Options{
		Name: "web-ingress", Namespace: tenant, Machines: []string{"web-ingress-0"},
		Pods: v1alpha1.MachineSetPods{Direction: v1alpha1.DirectionIngress, Endpoints: "web", DNSConfigMap: "zone"},
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "web-ingress-0"}, Data: map[string][]byte{"keep": []byte("a"), "web.crt": []byte("b")}}
	zone := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "zone"}, Data: map[string]string{"zone.json": "{}"}}
	objects, err := apiserver.Objects([]byte(internal))
	if err != nil {
		t.Fatal(err)
	}
	for _, obj := range objects {
		obj.SetNamespace(tenant)
		if obj.GetObjectKind().GroupVersionKind().Kind == v1alpha1.ServiceAttachmentKind {
			obj.SetLabels(map[string]string{meta.LabelEndpoints: "web"})
		}
	}
	create := func(objs ...client.Object) {
		for _, obj := range objs {
			if err := admin.Create(t.Context(), obj); err != nil {
				t.Fatalf("cannot create %T %s: %v", obj, obj.GetName(), err)
			}
		}
	}
	create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: tenant}}, proxy.Role(o), proxy.RoleBinding(o), secret, zone)
	for _, obj := range objects {
		switch obj.GetObjectKind().GroupVersionKind().Kind {
		case v1alpha1.MachineKind, v1alpha1.ServiceAttachmentKind:
			create(obj)
		}
	}

	cfg := rest.CopyConfig(s.Config)
	cfg.Impersonate.UserName = agent
	c, err := kube.NewClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	key := types.NamespacedName{Namespace: tenant, Name: "web-ingress-0"}
	secrets, zones, names := make(chan map[string][]byte, 10), make(chan map[string]string, 10), make(chan []string, 10)
	go kube.WatchSecret(ctx, c, key, func(s *corev1.Secret) { secrets <- s.Data })
	go kube.WatchConfigMap(ctx, c, client.ObjectKeyFromObject(zone), func(cm *corev1.ConfigMap) {
		if cm == nil {
			zones <- nil
			return
		}
		zones <- cm.Data
	})
	go kube.WatchAttachments(ctx, c, tenant, "web", func(as []v1alpha1.ServiceAttachment) {
		out := make([]string, len(as))
		for i := range as {
			out[i] = as[i].Name
		}
		names <- out
	})
	expect(t, "The agent must read its Secret", secrets, map[string][]byte{"keep": []byte("a"), "web.crt": []byte("b")})
	expect(t, "The agent must read its ConfigMap", zones, map[string]string{"zone.json": "{}"})
	expect(t, "The agent must list the ServiceAttachments of its endpoints", names, []string{"web"})

	if err := kube.RemoveSecretKeys(t.Context(), c, key, []string{"web.crt"}); err != nil {
		t.Errorf("RemoveSecretKeys(...): %v", err)
	}
	expect(t, "The agent must see the change of its Secret, and other keys must stay", secrets, map[string][]byte{"keep": []byte("a")})
	if err := admin.Delete(t.Context(), zone); err != nil {
		t.Fatal(err)
	}
	expect(t, "The agent must see that its ConfigMap is deleted", zones, nil)

	reported := make(chan error, 1)
	r := kube.NewReporter(c, key, logging.NewNopLogger(), func(err error) { reported <- err }, kube.WithSettle(time.Millisecond))
	go r.Run(ctx)
	r.Set(&v1alpha1.MachineAgentStatus{PodIP: "10.0.0.7"})
	if err := receive(t, reported); err != nil {
		t.Errorf("cannot report: %v", err)
	}
	m := &v1alpha1.Machine{}
	if err := admin.Get(t.Context(), key, m); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&v1alpha1.MachineAgentStatus{PodIP: "10.0.0.7"}, m.Status.Agent); diff != "" {
		t.Errorf("The report must be in the Machine: -want, +got:\n%s", diff)
	}
	if err := r.Reachable(t.Context()); err != nil {
		t.Errorf("Reachable(...): %v", err)
	}
	if _, err := c.List(t.Context(), kube.Secrets, tenant, metav1.ListOptions{}); err == nil {
		t.Error("The role must not permit to list all Secrets: the test would not see a watch without a name")
	}
}

// receive returns the next value.
func receive[T any](t *testing.T, values <-chan T) T {
	t.Helper()
	select {
	case v := <-values:
		return v
	case <-time.After(patience):
		var none T
		t.Fatal(errors.Errorf("nothing has arrived for %s", patience))
		return none
	}
}

// expect waits for a value.
func expect[T any](t *testing.T, reason string, values <-chan T, want T) {
	t.Helper()
	got := receive(t, values)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: -want, +got:\n%s", reason, diff)
	}
}
