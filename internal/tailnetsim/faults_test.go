// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim_test

import (
	"net/http"
	"testing"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
)

func TestFaultProbability(t *testing.T) {
	r := simtest.StartAPI(t)
	drops := func(seed uint64) int {
		if err := r.SetFaults(tailnetsim.Fault{Path: "/vip-services$", Probability: 0.3, Seed: seed, Status: 500}); err != nil {
			t.Fatal(err)
		}
		n := 0
		for range 200 {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.URL+"/api/v2/tailnet/-/vip-services", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.SetBasicAuth(simtest.APIKey, "")
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			if err := resp.Body.Close(); err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode == http.StatusInternalServerError {
				n++
			}
		}
		return n
	}
	first, second := drops(7), drops(7)
	if first != second {
		t.Errorf("the same seed spoilt %d requests, then %d", first, second)
	}
	if first < 30 || first > 90 {
		t.Errorf("a probability of 0.3 spoilt %d of 200 requests", first)
	}
	if err := r.SetFaults(tailnetsim.Fault{Probability: 1.5}); err == nil {
		t.Error("a probability of 1.5 was accepted")
	}
}
