// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package oauthclient

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// A world is a simulated tailnet and objects of a cluster.
type world struct {
	t    *testing.T
	sim  *simtest.Running
	api  api
	kube client.Client
}

func newWorld(t *testing.T, objects ...client.Object) world {
	t.Helper()
	sim := simtest.StartAPI(t)
	c, err := tailscale.NewClient(
		tailscale.Config{URL: sim.URL, ClientID: simtest.ClientID, ClientSecret: simtest.ClientSecret},
		tailscale.Options{Rate: 1000, Burst: 1000, ListMaxAge: time.Minute, Metrics: tailscale.NewMetrics()})
	if err != nil {
		t.Fatal(err)
	}
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return world{t: t, sim: sim, api: c.TrustCredentials(), kube: fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).Build()}
}

func (w world) external() *external {
	return &external{api: w.api, kube: w.kube, record: event.NewNopRecorder(), clusterID: "cluster"}
}

// clients returns the IDs of the tailnet's OAuth clients.
func (w world) clients() []string {
	w.t.Helper()
	all, err := w.sim.Client(w.t).Keys().List(w.t.Context(), true)
	if err != nil {
		w.t.Fatal(err)
	}
	ids := []string{}
	for _, k := range all {
		ids = append(ids, k.ID)
	}
	return ids
}

func object() *v1alpha1.OAuthClient {
	mg := &v1alpha1.OAuthClient{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "one", UID: "uid"},
		Spec:       v1alpha1.OAuthClientSpec{ForProvider: v1alpha1.OAuthClientParameters{Scopes: []v1alpha1.OAuthScope{"dns"}}},
	}
	mg.SetManagementPolicies(xpv2.ManagementPolicies{xpv2.ManagementActionAll})
	mg.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: v1alpha1.ClusterProviderConfigKind, Name: "one"})
	mg.SetWriteConnectionSecretToReference(&xpv2.LocalSecretReference{Name: "s"})
	return mg
}

func TestLostAnswer(t *testing.T) {
	w := newWorld(t)
	mg := object()
	xpmeta.SetExternalCreatePending(mg, time.Now())
	if err := w.sim.SetFaults(tailnetsim.Fault{Method: "POST", Path: "/keys$", Count: 1, DropReply: true}); err != nil {
		t.Fatal(err)
	}
	e := w.external()
	if _, err := e.Observe(t.Context(), mg); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Create(t.Context(), mg); err == nil {
		t.Fatal("the answer was not lost")
	}
	orphan := w.clients()
	if len(orphan) != 1 {
		t.Fatalf("clients: %v", orphan)
	}
	e = w.external()
	if o, err := e.Observe(t.Context(), mg); err != nil || o.ResourceExists {
		t.Fatalf("exists %t, error %v", o.ResourceExists, err)
	}
	c, err := e.Create(t.Context(), mg)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{xpmeta.GetExternalName(mg)}, w.clients()); diff != "" {
		t.Errorf("one client must be left: -want, +got:\n%s", diff)
	}
	// The credentials in the connection Secret must work.
	k := &tsclient.OAuth{ClientID: string(c.ConnectionDetails["client_id"]), ClientSecret: string(c.ConnectionDetails["client_secret"])}
	used := w.sim.Client(t)
	used.Auth = k
	if _, err := used.DNS().Preferences(t.Context()); err != nil {
		t.Errorf("the new client does not work: %v", err)
	}
}

func TestSecretLost(t *testing.T) {
	w := newWorld(t)
	mg := object()
	e := w.external()
	if _, err := e.Create(t.Context(), mg); err != nil {
		t.Fatal(err)
	}
	first := xpmeta.GetExternalName(mg)
	e = w.external()
	o, err := e.Observe(t.Context(), mg)
	if err != nil || o.ResourceExists || mg.GetCondition(xpv2.TypeReady).Status != corev1.ConditionFalse {
		t.Fatalf("a client whose secret is lost: exists %t, error %v, condition %v", o.ResourceExists, err, mg.GetCondition(xpv2.TypeReady))
	}
	if _, err := e.Create(t.Context(), mg); err != nil {
		t.Fatal(err)
	}
	if xpmeta.GetExternalName(mg) == first {
		t.Error("the client was not replaced")
	}
	if diff := cmp.Diff([]string{xpmeta.GetExternalName(mg)}, w.clients()); diff != "" {
		t.Errorf("one client must be left: -want, +got:\n%s", diff)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}, Data: map[string][]byte{
		"client_id": []byte(xpmeta.GetExternalName(mg)), "client_secret": []byte("kept-notasecret"),
	}}
	if err := w.kube.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	if o, err := w.external().Observe(t.Context(), mg); err != nil || !o.ResourceExists || !o.ResourceUpToDate {
		t.Errorf("a client whose secret is kept: exists %t, up to date %t, error %v", o.ResourceExists, o.ResourceUpToDate, err)
	}
}

func TestAtRest(t *testing.T) {
	w := newWorld(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"}})
	var mgs []*v1alpha1.OAuthClient
	for _, name := range []string{"a", "b", "c"} {
		mg := object()
		mg.Name = name
		mg.SetWriteConnectionSecretToReference(nil)
		if _, err := w.external().Create(t.Context(), mg); err != nil {
			t.Fatal(err)
		}
		mgs = append(mgs, mg)
	}
	w.sim.ResetCalls()
	for range 3 {
		for _, mg := range mgs {
			if o, err := w.external().Observe(t.Context(), mg); err != nil || !o.ResourceUpToDate {
				t.Fatalf("up to date %t, error %v", o.ResourceUpToDate, err)
			}
		}
	}
	if n := w.sim.Calls()["GET /api/v2/tailnet/{tailnet}/keys"]; n > 1 || len(w.sim.Calls()) > 1 {
		t.Errorf("unchanged objects need more than one list call: %v", w.sim.Calls())
	}
}
