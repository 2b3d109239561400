// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
)

func keysClient(t *testing.T, url string, maxAge time.Duration) *Client {
	t.Helper()
	c, err := NewClient(
		Config{URL: url, ClientID: simtest.ClientID, ClientSecret: simtest.ClientSecret},
		Options{Rate: 1000, Burst: 1000, ListMaxAge: maxAge, Metrics: NewMetrics()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAuthKeys(t *testing.T) {
	sim := simtest.StartAPI(t)
	c, ctx := keysClient(t, sim.URL, time.Hour), t.Context()
	valid := func() []string {
		t.Helper()
		ks, err := c.Keys().AuthKeys(ctx, Cached)
		if err != nil {
			t.Fatalf("AuthKeys(...): %v", err)
		}
		var ids []string
		for _, k := range ks {
			if k.Key != "" {
				t.Errorf("AuthKeys(...): a list must hold no secret")
			}
			ids = append(ids, k.ID)
		}
		return ids
	}
	if got := valid(); len(got) != 0 {
		t.Fatalf("AuthKeys(...): want none, got %v", got)
	}
	k, err := c.Keys().CreateAuthKey(ctx, AuthKeyRequest{Description: "tsgw one", Tags: []string{"tag:k8s"}, Expiry: time.Hour, Reusable: true, Ephemeral: true})
	if err != nil {
		t.Fatalf("CreateAuthKey(...): %v", err)
	}
	create := k.Capabilities.Devices.Create
	if k.Key == "" || !create.Reusable || !create.Ephemeral || create.Preauthorized || k.Expires.Sub(k.Created) != time.Hour {
		t.Errorf("CreateAuthKey(...): want the requested key, got %+v", create)
	}
	if diff := cmp.Diff([]string{k.ID}, valid()); diff != "" {
		t.Errorf("AuthKeys(...) after a write: -want, +got:\n%s", diff)
	}
	got, err := c.Keys().AuthKey(ctx, k.ID)
	if err != nil || got.Invalid || got.Key != "" || got.Description != "tsgw one" {
		t.Errorf("AuthKey(...): want a valid key without its secret, got %v", err)
	}
	for range 2 {
		if err := c.Keys().RevokeAuthKey(ctx, k.ID); err != nil {
			t.Errorf("RevokeAuthKey(...): %v", err)
		}
	}
	if got := valid(); len(got) != 0 {
		t.Errorf("AuthKeys(...) after it was revoked: want none, got %v", got)
	}
	if got, err = c.Keys().AuthKey(ctx, k.ID); err != nil || !got.Invalid || got.Revoked.IsZero() {
		t.Errorf("AuthKey(...) of a revoked key: want an invalid key, got %v", err)
	}
	if _, err := c.Keys().AuthKey(ctx, "kNobody"); !IsNotFound(err) {
		t.Errorf("AuthKey(...) of a missing key: want NotFound, got %v", err)
	}
	if n := sim.Calls()["GET /api/v2/tailnet/{tailnet}/keys"]; n != 1 {
		t.Errorf("want one list call, got %d", n)
	}
}

func TestAuthKeyWithLostReplyIsListed(t *testing.T) {
	sim := simtest.StartAPI(t)
	c := keysClient(t, sim.URL, time.Hour)
	if _, err := c.Keys().AuthKeys(t.Context(), Cached); err != nil {
		t.Fatal(err)
	}
	if err := sim.SetFaults(tailnetsim.Fault{Method: http.MethodPost, Path: "keys", Count: 1, DropReply: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Keys().CreateAuthKey(t.Context(), AuthKeyRequest{Description: "tsgw lost", Tags: []string{"tag:k8s"}, Expiry: time.Hour}); err == nil {
		t.Fatal("CreateAuthKey(...): want an error")
	}
	ks, err := c.Keys().AuthKeys(t.Context(), Cached)
	if err != nil || len(ks) != 1 || ks[0].Description != "tsgw lost" {
		t.Errorf("AuthKeys(...): want the key whose reply was lost, got %d, %v", len(ks), err)
	}
}

// TestAuthKeysByIDOnly uses an API that lists only identifiers.
func TestAuthKeysByIDOnly(t *testing.T) {
	n := &idKeys{ids: []string{"k1", "k2"}}
	c := keysClient(t, n.start(t), time.Nanosecond)
	for range 3 {
		ks, err := c.Keys().AuthKeys(t.Context(), Cached)
		if err != nil || len(ks) != 1 || ks[0].ID != "k1" || ks[0].Description != "tsgw" {
			t.Fatalf("AuthKeys(...): want only the auth key, with its description, got %v, %v", ks, err)
		}
	}
	if n.gets.Load() != 2 {
		t.Errorf("want one request per key, got %d calls", n.gets.Load())
	}
}

// TestAuthKeysByIDOnlyContinues uses an API that lists only identifiers, and that answers fewer
// requests for keys in one load than there are keys.
func TestAuthKeysByIDOnlyContinues(t *testing.T) {
	const keys, perLoad = 300, 80
	n := &idKeys{}
	for i := range keys {
		n.ids = append(n.ids, fmt.Sprintf("k%d", i))
	}
	c := keysClient(t, n.start(t), time.Nanosecond)
	var got []Key
	var err error
	for range keys/perLoad + 1 {
		n.remaining.Store(perLoad)
		if got, err = c.Keys().AuthKeys(t.Context(), Cached); err == nil {
			break
		}
		if ClassOf(err) != ClassRateLimited {
			t.Fatalf("AuthKeys(...): want to be rate limited, got %v", err)
		}
	}
	if err != nil || len(got) != keys-1 {
		t.Fatalf("AuthKeys(...): want %d keys after enough loads, got %d, %v", keys-1, len(got), err)
	}
	if n.gets.Load() != keys {
		t.Errorf("want one request per key, got %d", n.gets.Load())
	}
}

// idKeys is an API that lists only the identifiers of keys. All are auth keys except for k2.
type idKeys struct {
	ids       []string
	gets      atomic.Int32 // Requests for keys.
	remaining atomic.Int32 // Requests for keys until the API refuses them. Negative means all.
}

func (n *idKeys) start(t *testing.T) string {
	t.Helper()
	n.remaining.Store(-1)
	m := http.NewServeMux()
	answer := func(w http.ResponseWriter, v any) {
		if err := json.NewEncoder(w).Encode(v); err != nil {
			t.Errorf("cannot answer: %v", err)
		}
	}
	m.HandleFunc("POST /api/v2/oauth/token", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer(w, map[string]any{"access_token": "notasecret", "token_type": "Bearer", "expires_in": 3600})
	})
	m.HandleFunc("GET /api/v2/tailnet/-/keys", func(w http.ResponseWriter, _ *http.Request) {
		ids := []map[string]string{}
		for _, id := range n.ids {
			ids = append(ids, map[string]string{"id": id})
		}
		answer(w, map[string]any{"keys": ids})
	})
	m.HandleFunc("GET /api/v2/tailnet/-/keys/{id}", func(w http.ResponseWriter, r *http.Request) {
		if n.remaining.Load() == 0 {
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		n.remaining.Add(-1)
		n.gets.Add(1)
		kind := "auth"
		if r.PathValue("id") == "k2" {
			kind = "client"
		}
		answer(w, map[string]any{"id": r.PathValue("id"), "keyType": kind, "created": time.Now(), "description": "tsgw"})
	})
	s := httptest.NewServer(m)
	t.Cleanup(s.Close)
	return s.URL
}
