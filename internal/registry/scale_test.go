// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// TestManyDevices checks that the members of a service do not cost more memory in a larger tailnet: each
// observation of a shared service asks for them several times.
func TestManyDevices(t *testing.T) {
	const devices, most = 20000, 16 << 10
	v := View{}
	for i := range devices {
		v.Devices = append(v.Devices, tailscale.Device{NodeID: fmt.Sprintf("n%d", i), Name: fmt.Sprintf("d%d.tail1234.ts.net", i), ConnectedToControl: i%2 == 0})
	}
	cases := map[string]struct {
		reason string
		nodes  []string
		alive  bool
	}{
		"Online":  {reason: "A cluster with a machine that is online is alive.", nodes: []string{"n1", "n19998"}, alive: true},
		"Offline": {reason: "A cluster whose machines are offline is not, without any other sign of life.", nodes: []string{"n1", "n19999"}},
		"Gone":    {reason: "Nor is a cluster whose machines are gone.", nodes: []string{"gone"}},
	}
	want := map[string]bool{}
	for name, tc := range cases {
		r := Record{Cluster: name, Operator: "team/web", Service: "svc:web", Nodes: tc.nodes}
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		v.Services = append(v.Services, tailscale.Service{Name: RecordName("svc:web", name), Annotations: map[string]string{
			meta.AnnotationSharedService: "svc:web", meta.AnnotationSchemaVersion: meta.SchemaVersion, meta.AnnotationRecord: string(b),
		}})
		want[name] = tc.alive
	}
	v.DevicesAt = v.DevicesAt.Add(2 * ExpiresAfter)
	members, ignored := v.Members("svc:web")
	got := map[string]bool{}
	for _, m := range members {
		got[m.Cluster] = m.Alive
	}
	if diff := cmp.Diff(want, got); diff != "" || len(ignored) > 0 {
		t.Errorf("Members(...): ignored %v, -want, +got:\n%s", ignored, diff)
	}
	r := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			v.Members("svc:web")
		}
	})
	if r.AllocedBytesPerOp() > most {
		t.Errorf("Members(...) among %d devices allocates %d bytes, want at most %d", devices, r.AllocedBytesPerOp(), most)
	}
}
