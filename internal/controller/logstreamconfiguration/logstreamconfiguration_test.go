// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package logstreamconfiguration

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	tsclient "tailscale.com/client/tailscale/v2"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// A tailnet holds a log streaming configuration, or none.
type tailnet struct {
	current  *tailscale.LogstreamConfiguration
	requests []tailscale.LogstreamRequest
}

func (n *tailnet) LogstreamConfiguration(context.Context, string) (*tailscale.LogstreamConfiguration, error) {
	return n.current, nil
}

func (n *tailnet) SetLogstreamConfiguration(_ context.Context, _ string, r tailscale.LogstreamRequest) error {
	n.requests = append(n.requests, r)
	n.current = &tailscale.LogstreamConfiguration{DestinationType: r.DestinationType, URL: r.URL, User: r.User, CompressionFormat: tsclient.CompressionFormatNone}
	return nil
}

func (n *tailnet) DeleteLogstreamConfiguration(context.Context, string) error {
	n.current = nil
	return nil
}

// TestSecretChanges follows one object from its creation to a change of the secret, which Tailscale
// does not return.
func TestSecretChanges(t *testing.T) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	token := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "siem"}, Data: map[string][]byte{"token": []byte("first-notasecret")}}
	var kube client.Client = fake.NewClientBuilder().WithScheme(s).WithObjects(token).Build()
	mg := &v1alpha1.LogstreamConfiguration{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "one", UID: "uid"},
		Spec: v1alpha1.LogstreamConfigurationSpec{ForProvider: v1alpha1.LogstreamConfigurationParameters{
			LogType: "network", DestinationType: "splunk", URL: "https://siem.example.com",
			TokenSecretRef: &xpv2.LocalSecretKeySelector{LocalSecretReference: xpv2.LocalSecretReference{Name: "siem"}, Key: "token"},
		}},
	}
	mg.SetManagementPolicies(xpv2.ManagementPolicies{xpv2.ManagementActionAll})
	mg.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: v1alpha1.ClusterProviderConfigKind, Name: "one"})
	n := &tailnet{}
	observe := func(exists, upToDate bool) {
		t.Helper()
		e := &external{api: n, kube: kube}
		o, err := e.Observe(t.Context(), mg)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]bool{exists, upToDate}, []bool{o.ResourceExists, o.ResourceUpToDate}); diff != "" {
			t.Fatalf("-want, +got:\n%s", diff)
		}
		switch {
		case !exists:
			if _, err := e.Create(t.Context(), mg); err != nil {
				t.Fatal(err)
			}
			// The managed reconciler drops changes of the status in Create.
			mg.Status.AtProvider = v1alpha1.LogstreamConfigurationObservation{}
		case !upToDate:
			if _, err := e.Update(t.Context(), mg); err != nil {
				t.Fatal(err)
			}
		}
	}
	observe(false, false)
	observe(true, false)
	observe(true, true)
	token.Data["token"] = []byte("second-notasecret")
	if err := kube.Update(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	observe(true, false)
	observe(true, true)
	if got := n.requests[len(n.requests)-1].Token; got != "second-notasecret" {
		t.Error("the new token was not sent")
	}
	if strings.Contains(mg.Status.AtProvider.SecretHash, "notasecret") {
		t.Error("the status holds the token")
	}
	// A field that was removed from the spec is reset, although Tailscale chooses fields that the
	// spec does not set.
	mg.Spec.ForProvider.User = "me"
	observe(true, false)
	mg.Spec.ForProvider.User = ""
	observe(true, false)
	if n.current.User != "" {
		t.Errorf("user is %q", n.current.User)
	}
	if xpmeta.GetExternalName(mg) != "network" {
		t.Errorf("external name is %q", xpmeta.GetExternalName(mg))
	}
}
