// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim_test

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"tailscale.com/client/tailscale/v2"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
)

// decode makes a request and reads its JSON reply of the wanted status.
func decode(t *testing.T, req *http.Request, want int, out any) {
	t.Helper()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatalf("cannot do %s %s: %v", req.Method, req.URL.Path, err)
	}
	if res.StatusCode != want {
		t.Errorf("%s %s: want %d, got %d", req.Method, req.URL.Path, want, res.StatusCode)
	}
	if res.Header.Get("Date") == "" {
		t.Errorf("%s %s: no Date", req.Method, req.URL.Path)
	}
	if err := json.NewDecoder(res.Body).Decode(out); err != nil {
		t.Errorf("%s %s: cannot decode: %v", req.Method, req.URL.Path, err)
	}
	if err := res.Body.Close(); err != nil {
		t.Errorf("cannot close: %v", err)
	}
}

func TestDevices(t *testing.T) {
	r := simtest.Start(t)
	id := simtest.NodeID(t, r.NewNode(t, "machine", "tag:k8s"))
	c, ctx := r.Client(t).Devices(), t.Context()

	simtest.Eventually(t, "the device has a home DERP", func() bool {
		d, err := c.GetWithAllFields(ctx, id)
		return err == nil && d.ClientConnectivity != nil && d.ClientConnectivity.DERP != ""
	})
	list := must[[]tailscale.Device](t)(c.List(ctx, tailscale.WithFields(tailscale.IncludeFieldsAll)))
	if len(list) != 1 || list[0].NodeID != id || list[0].Hostname != "machine" || list[0].User != "tagged-devices" || !list[0].Authorized {
		t.Errorf("list: %+v", list)
	}
	if got := must[[]tailscale.Device](t)(c.List(ctx, tailscale.WithFilter("tags", []string{"tag:none"}))); len(got) != 0 {
		t.Errorf("filtered list: %+v", got)
	}
	mustDo(t, c.SetName(ctx, id, "named"))
	mustDo(t, c.SetKey(ctx, id, tailscale.DeviceKey{KeyExpiryDisabled: true}))
	mustDo(t, c.SetTags(ctx, id, []string{"tag:k8s"}))
	if code, _ := status(t, c.SetTags(ctx, id, []string{"tag:none"})); code != http.StatusBadRequest {
		t.Errorf("a foreign tag: %d", code)
	}
	mustDo(t, c.SetSubnetRoutes(ctx, id, []string{"10.1.0.0/16"}))
	routes := must[*tailscale.DeviceRoutes](t)(c.SubnetRoutes(ctx, id))
	if diff := cmp.Diff(&tailscale.DeviceRoutes{Advertised: []string{}, Enabled: []string{"10.1.0.0/16"}}, routes); diff != "" {
		t.Errorf("routes: -want, +got:\n%s", diff)
	}
	mustDo(t, c.SetIPv4Address(ctx, id, "100.70.0.7"))
	mustDo(t, c.SetPostureAttribute(ctx, id, "custom:a", tailscale.DevicePostureAttributeRequest{Value: "b"}))
	attrs := must[*tailscale.DevicePostureAttributes](t)(c.GetPostureAttributes(ctx, id))
	if diff := cmp.Diff("b", attrs.Attributes["custom:a"]); diff != "" {
		t.Errorf("attribute: -want, +got:\n%s", diff)
	}
	mustDo(t, c.DeletePostureAttribute(ctx, id, "custom:a"))
	mustDo(t, c.SetAuthorized(ctx, id, false))
	d := must[*tailscale.Device](t)(c.Get(ctx, id))
	if d.Authorized || d.Name != "named."+r.Domain() || d.Addresses[0] != "100.70.0.7" {
		t.Errorf("device after changes: %+v", d)
	}
	mustDo(t, c.Delete(ctx, d.ID))
	if _, err := c.Get(ctx, id); !tailscale.IsNotFound(err) {
		t.Errorf("a deleted device: %v", err)
	}
}
