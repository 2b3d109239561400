// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"tailscale.com/client/tailscale/v2"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
)

// TestAddTailnet reads the state of a real simulator.
func TestAddTailnet(t *testing.T) {
	r := simtest.StartAPI(t)
	read := func() Snapshot {
		t.Helper()
		b, err := json.Marshal(r.State())
		if err != nil {
			t.Fatal(err)
		}
		s := Snapshot{}
		if err := s.AddTailnet("one", b); err != nil {
			t.Fatal(err)
		}
		return s
	}
	key := r.NewKey(t, false, "tag:k8s")
	id, err := r.Join(tailnetsim.Puppet{Hostname: "web-0", AuthKey: key.Key})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Client(t).VIPServices().CreateOrUpdate(t.Context(), tailscale.VIPService{Name: "svc:web", Ports: []string{"tcp:80"}, Tags: []string{"tag:k8s"}}); err != nil {
		t.Fatal(err)
	}
	initial := read()
	tailnet := initial.Tailnets["one"]
	d := tailnet.Devices[id]
	if d.Name == "" || d.Created == "" || d.NodeKey == "" || len(d.Addresses) != 2 {
		t.Errorf("AddTailnet(...): the device is %+v", d)
	}
	if len(tailnet.Services["svc:web"]) == 0 || tailnet.Keys[key.ID] == "" || tailnet.KeysMade != 1 {
		t.Errorf("AddTailnet(...): got %+v", tailnet)
	}
	if diff := cmp.Diff([]string(nil), Differences(initial, read(), Same)); diff != "" {
		t.Errorf("the state did not change: -want, +got:\n%s", diff)
	}

	// A key that was made and revoked is still counted.
	if err := r.Client(t).Keys().Delete(t.Context(), r.NewKey(t, false, "tag:k8s").ID); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"tailnet one: 1 keys were made"}, Differences(initial, read(), Same)); diff != "" {
		t.Errorf("a key was made: -want, +got:\n%s", diff)
	}

	for name, state := range map[string]string{"NoJSON": "no state", "NoCalls": `{"devices": []}`} {
		if err := (&Snapshot{}).AddTailnet("one", []byte(state)); err == nil {
			t.Errorf("AddTailnet(...): %s has no error", name)
		}
	}
}
