// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
)

const (
	otherTailnet = "TSimOtherCNTRL"
	otherClient  = "kSimOtherCNTRL"
)

// swaps counts swaps. Objects of one cluster compete in tailnets with the same domain.
var swaps atomic.Int64

// A gate is one API with two tailnets. The credential decides which one a request reaches, as in
// Tailscale's API.
type gate struct {
	first, other http.Handler

	mu     sync.Mutex
	tokens map[string]bool // Whether a token is one of the other tailnet.
}

// ServeHTTP implements http.Handler.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.Path, "/oauth/token") {
		g.mu.Lock()
		other := g.tokens[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
		g.mu.Unlock()
		g.tailnet(other).ServeHTTP(w, r)
		return
	}
	b, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(b))
	form, err := url.ParseQuery(string(b))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	other := form.Get("client_id") == otherClient
	rec := httptest.NewRecorder()
	g.tailnet(other).ServeHTTP(rec, r)
	var token struct {
		Token string `json:"access_token"`
	}
	if json.Unmarshal(rec.Body.Bytes(), &token) == nil {
		g.mu.Lock()
		g.tokens[token.Token] = other
		g.mu.Unlock()
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes()) // The client sees a short reply.
}

func (g *gate) tailnet(other bool) http.Handler {
	if other {
		return g.other
	}
	return g.first
}

// A swap is an object of a kind in one tailnet, and another tailnet to which the credential of its
// config may lead. The second env has the namespace of the first one.
type swap struct {
	*life

	other *env
	base  int // The objects of others in the other tailnet.
}

// newSwap returns an object that is settled in the first tailnet. The other one has a device if
// devices is set.
func newSwap(t *testing.T, k anyCase, devices bool) *swap {
	t.Helper()
	n := swaps.Add(1)
	e := newEnv(t, func(o *tailnetsim.Options) { o.Domain = fmt.Sprintf("first%d.ts.net", n) })
	sim := simtest.StartAPI(t, func(o *tailnetsim.Options) {
		o.Policy, o.Domain, o.TailnetID = policy, fmt.Sprintf("other%d.ts.net", n), otherTailnet
		c := o.Clients[0]
		c.ID, c.Secret = otherClient, otherClient
		o.Clients = []tailnetsim.OAuthClient{c}
	})
	u, err := url.Parse(sim.URL)
	e.must(err)
	other := &env{T: t, namespace: e.namespace, clusterID: e.clusterID, sim: sim}
	other.tailnet = &tsclient.Client{BaseURL: u, APIKey: simtest.APIKey, HTTP: &http.Client{Timeout: time.Minute, Transport: testTransport{}}}
	api := httptest.NewServer(&gate{first: e.sim, other: sim, tokens: map[string]bool{}})
	t.Cleanup(api.Close)
	pc := &v1alpha1.ProviderConfig{}
	pc.SetNamespace(e.namespace)
	pc.SetName(configName)
	e.must(shared.kube.Patch(t.Context(), pc, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"apiURL":"`+api.URL+`"}}`))))
	_, err = e.sim.Join(tailnetsim.Puppet{Hostname: "bystander", Tags: []string{"tag:k8s"}})
	e.must(err)
	if devices {
		if k.Kind == v1alpha1.DiscoveryKind {
			k.Seed(other)
		}
		_, err = sim.Join(tailnetsim.Puppet{Hostname: "stranger", Tags: []string{"tag:k8s"}})
		e.must(err)
	}
	if k.Kind == v1alpha1.DNSKind {
		// Otherwise the last nameserver of a tailnet stays.
		e.must(other.tailnet.DNS().SetPreferences(t.Context(), tsclient.DNSPreferences{MagicDNS: false}))
	}
	s := &swap{life: begin(e, k), other: other}
	if k.Count != nil {
		s.base = k.Count(other)
	}
	s.create(s.mg)
	s.settled("create")
	other.sim.ResetCalls()
	return s
}

// lead writes the credential of one of the tailnets to the Secret of the config.
func (s *swap) lead(id, secret string) {
	s.Helper()
	b, err := json.Marshal(map[string]any{"stringData": map[string]string{"client_id": id, "client_secret": secret}})
	s.must(err)
	o := &corev1.Secret{}
	o.SetNamespace(s.namespace)
	o.SetName(credentialsSecret)
	s.must(shared.kube.Patch(s.Context(), o, client.RawPatch(types.MergePatchType, b)))
}

// waits waits until the current version of the object reports the reason, and fails the test if one of
// the tailnets changed.
func (s *swap) waits(reason xpv2.ConditionReason) {
	s.Helper()
	s.eventually("the condition says that the tailnet is another one", func() error {
		if err := s.refresh(s.mg); err != nil {
			return err
		}
		synced, c := s.mg.GetCondition(xpv2.TypeSynced), s.mg.GetCondition(xpv2.TypeReady)
		if c.Reason != reason || !strings.Contains(c.Message, meta.AnnotationMoveToTailnet+"=") {
			return errors.Errorf("Ready is %s: %s; Synced is %s: %s", c.Reason, c.Message, synced.Status, synced.Message)
		}
		if synced.ObservedGeneration != s.mg.GetGeneration() && c.ObservedGeneration != s.mg.GetGeneration() {
			return errors.Errorf("generation %d is not reconciled", s.mg.GetGeneration())
		}
		return nil
	})
	if err := s.kind.Check(s.env, s.mg); err != nil {
		s.Errorf("the object in the tailnet from before changed: %v", err)
	}
	s.single("the tailnet from before")
	s.counts(0)
	if w := s.other.writes(); len(w) > 0 {
		s.Errorf("the other tailnet was written: %v", w)
	}
}

// counts fails the test unless the other tailnet has that many objects of ours.
func (s *swap) counts(want int) {
	s.Helper()
	if s.kind.Count == nil {
		return
	}
	if n := s.kind.Count(s.other) - s.base; n != want {
		s.Errorf("there are %d objects of ours in the other tailnet, want %d", n, want)
	}
}

// TestOtherTailnet swaps the credential of a provider config for one of another tailnet, under an object
// of every kind. The object in the first tailnet stays, no other is made, and the deletion waits.
func TestOtherTailnet(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		devices bool
		want    xpv2.ConditionReason
	}{
		"Devices":   {reason: "A tailnet with another domain is another tailnet", devices: true, want: meta.ReasonTailnetChanged},
		"NoDevices": {reason: "A tailnet without devices is not the same tailnet", want: meta.ReasonTailnetUnknown},
	}
	for _, k := range kindCases() {
		for name, tc := range cases {
			t.Run(k.Kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				t.Log(tc.reason)
				s := newSwap(t, k, tc.devices)
				s.lead(otherClient, otherClient)
				s.waits(tc.want)
				if k.Skip[stepDelete] == "" {
					s.must(shared.kube.Delete(t.Context(), s.mg))
					s.eventually("the deletion is noticed", func() error {
						if err := s.refresh(s.mg); err != nil {
							return err
						}
						if s.mg.GetDeletionTimestamp() == nil {
							return errors.New("the cache is behind")
						}
						return nil
					})
					s.waits(tc.want)
				}
				s.lead(simtest.ClientID, simtest.ClientSecret)
				s.delete()
				s.gone()
				s.counts(0)
			})
		}
	}
}

// TestMoveToTailnet moves an object of every kind to another tailnet with an annotation.
func TestMoveToTailnet(t *testing.T) {
	t.Parallel()
	for _, k := range kindCases() {
		// The node of a Machine is logged in to the first tailnet until somebody deletes its device, and
		// the device that a Device names is in that one.
		if k.Kind == v1alpha1.MachineKind || k.Kind == v1alpha1.DeviceKind {
			continue
		}
		t.Run(k.Kind, func(t *testing.T) {
			t.Parallel()
			s := newSwap(t, k, true)
			s.lead(otherClient, otherClient)
			s.waits(meta.ReasonTailnetChanged)
			original, ok := s.mg.DeepCopyObject().(resource.ModernManaged)
			if !ok {
				t.Fatalf("%T is no managed resource", s.mg)
			}
			s.change(s.mg, func() {
				xpmeta.AddAnnotations(s.mg, map[string]string{meta.AnnotationMoveToTailnet: otherTailnet})
			})
			s.eventually("the object is made in the other tailnet", func() error {
				if err := s.refresh(s.mg); err != nil {
					return err
				}
				if err := ready(s.mg); err != nil {
					return err
				}
				return k.Check(s.other, s.mg)
			})
			s.counts(s.ours())
			s.delete()
			s.counts(0)
			// The objects that it made stay in the first one.
			if err := k.Check(s.env, original); err != nil {
				t.Errorf("the object in the first tailnet changed: %v", err)
			}
			s.single("the tailnet from before")
		})
	}
}
