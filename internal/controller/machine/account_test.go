// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"bytes"
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
)

// group returns a Machine of a group of proxies.
func group(namespace, name, direction string) *v1alpha1.Machine {
	return machine(func(m *v1alpha1.Machine) {
		m.Namespace, m.Name, m.UID = namespace, name, types.UID(namespace+name)
		m.Labels = map[string]string{meta.LabelDirection: direction}
	})
}

// account returns the key in the state Secret that the provider makes for a Machine.
func account(t *testing.T, kube client.Client, mg *v1alpha1.Machine) string {
	t.Helper()
	s, err := ensureSecrets(t.Context(), kube, mg, podSecrets{})
	if err != nil {
		t.Fatalf("ensureSecrets(...): %v", err)
	}
	for k := range s.state.Data {
		if k != keyAccount {
			t.Errorf("the state must have nothing but the account, has %s", k)
		}
	}
	return string(s.state.Data[keyAccount])
}

func TestAccount(t *testing.T) {
	kube := newWorld(t).kube
	first := account(t, kube, group("shop", "web-ingress-0", proxy.DirectionIngress))
	if !strings.HasPrefix(first, "-----BEGIN EC PRIVATE KEY-----") {
		t.Fatalf("want a key as tailscaled makes it")
	}
	cases := map[string]struct {
		reason string
		mg     *v1alpha1.Machine
		same   bool
		none   bool
	}{
		"OtherGroup":     {reason: "All groups of a namespace have one account.", mg: group("shop", "api-ingress-0", proxy.DirectionIngress), same: true},
		"OtherNamespace": {reason: "No two namespaces share an account.", mg: group("bank", "web-ingress-0", proxy.DirectionIngress)},
		"OtherReplica":   {reason: "Only the first machine of a group requests certificates.", mg: group("shop", "web-ingress-1", proxy.DirectionIngress), none: true},
		"Egress":         {reason: "Egress proxies need no certificates.", mg: group("shop", "web-egress-0", proxy.DirectionEgress), none: true},
		"Alone":          {reason: "A Machine that belongs to no group gets no key.", mg: group("shop", "db-0", ""), none: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := account(t, kube, tc.mg)
			if (got == first) != tc.same || (got == "") != tc.none {
				t.Errorf("\n%s\nsame account %t, none %t", tc.reason, got == first, got == "")
			}
		})
	}
}

// TestAccountOfUsers has users write the Secret of the account.
func TestAccountOfUsers(t *testing.T) {
	key := []byte(account(t, newWorld(t).kube, group("shop", "web-ingress-0", proxy.DirectionIngress)))
	cases := map[string]struct {
		reason string
		data   []byte
		want   []byte
	}{
		"Key":      {reason: "A user may provide the account.", data: key, want: key},
		"More":     {reason: "Nothing but the key is copied.", data: append(bytes.Clone(key), bytes.Repeat([]byte("x"), 1<<19)...), want: key},
		"Empty":    {reason: "Without a key tailscaled makes a separate account."},
		"NotAKey":  {reason: "Tailscaled would refuse anything else for ever.", data: []byte("-----BEGIN EC PRIVATE KEY-----\nAAAA\n-----END EC PRIVATE KEY-----\n")},
		"Other":    {reason: "So it would another kind of key.", data: bytes.ReplaceAll(key, []byte("EC PRIVATE"), []byte("PRIVATE"))},
		"NotInPEM": {reason: "A text is no key.", data: []byte("text")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			kube := newWorld(t, &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: meta.SecretACMEAccount},
				Data:       map[string][]byte{keyAccount: tc.data},
			}).kube
			if got := account(t, kube, group("shop", "web-ingress-0", proxy.DirectionIngress)); got != string(tc.want) {
				t.Errorf("\n%s\nwant %d bytes, got %d", tc.reason, len(tc.want), len(got))
			}
		})
	}
}

// TestAccountStays deletes the proxies of a namespace and makes them again.
func TestAccountStays(t *testing.T) {
	kube := newWorld(t).kube
	mg := group("shop", "web-ingress-0", proxy.DirectionIngress)
	first := account(t, kube, mg)
	s, err := getSecrets(t.Context(), kube, mg)
	if err != nil {
		t.Fatalf("getSecrets(...): %v", err)
	}
	if err := deleteSecrets(t.Context(), kube, s); err != nil {
		t.Fatalf("deleteSecrets(...): %v", err)
	}
	if got := account(t, kube, mg); got != first {
		t.Error("proxies that are made again must have the account from before")
	}

	// A state that exists keeps its account, which has issued its certificates.
	if s, err = getSecrets(t.Context(), kube, mg); err != nil {
		t.Fatalf("getSecrets(...): %v", err)
	}
	s.state.Data[keyAccount] = []byte("own")
	if err := kube.Update(t.Context(), s.state); err != nil {
		t.Fatal(err)
	}
	if s, err = ensureSecrets(t.Context(), kube, mg, s); err != nil || string(s.state.Data[keyAccount]) != "own" {
		t.Errorf("want the state's own account, got %v", err)
	}
}

// TestAccountRace makes the Secret while another Machine makes it.
func TestAccountRace(t *testing.T) {
	kube := newWorld(t).kube
	racing := &racer{Client: kube, race: func() { account(t, kube, group("shop", "api-ingress-0", proxy.DirectionIngress)) }}
	mg := group("shop", "web-ingress-0", proxy.DirectionIngress)
	if _, err := ensureSecrets(t.Context(), racing, mg, podSecrets{}); err == nil {
		t.Fatal("want an error, so that the Machine is reconciled again")
	}
	if got, want := account(t, kube, mg), account(t, kube, group("shop", "db-ingress-0", proxy.DirectionIngress)); got != want {
		t.Error("want one account for both")
	}
}

// A racer lets another one act before the first Create.
type racer struct {
	client.Client
	race func()
}

func (r *racer) Create(ctx context.Context, o client.Object, opts ...client.CreateOption) error {
	if race := r.race; race != nil {
		r.race = nil
		race()
	}
	return r.Client.Create(ctx, o, opts...)
}
