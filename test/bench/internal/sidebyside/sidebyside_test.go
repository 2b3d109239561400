// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package sidebyside

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

func TestExports(t *testing.T) {
	got, err := exports("[1/1] building tailscale-operator v1 ... cached\nexport A=\"b c\"\nexport D=\"\"\n")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"A": "b c", "D": ""}, got); diff != "" {
		t.Errorf("exports(...): -want, +got:\n%s", diff)
	}
	if _, err := exports("export A=unquoted"); err == nil {
		t.Error("exports(...): want an error for a value without quotes")
	}
}

func TestUsage(t *testing.T) {
	const uid = "0a1b-2c"
	// The start of proc_pid_stat(5), with an unusual but valid name.
	const stat = "1 (tail) scaled) S 1 1 1 0 -1 4194560 1 2 3 4 %s 7 8 20 0 9 0 100"
	proc := t.TempDir()
	for pid, files := range map[string]map[string]string{
		"1":  {"cgroup": "0::/tsgw-one/kubepods/pod" + uid + "/a\n", "status": "Name:\ta\nVmRSS:\t  1024 kB\nRssAnon:\t 512 kB\n", "stat": fmt.Sprintf(stat, "3 4")},
		"22": {"cgroup": "0::/tsgw-one/kubepods/pod" + uid + "/b\n", "status": "VmRSS:\t    10 kB\n", "stat": fmt.Sprintf(stat, "0 100")},
		"33": {"cgroup": "0::/tsgw-one/kubepods/podother/b\n", "status": "VmRSS:\t    99 kB\n", "stat": fmt.Sprintf(stat, "9 9")},
		"44": {"cgroup": "0::/tsgw-one/kubepods/pod" + uid + "/c\n", "status": "Name:\tkernel\n"},
		"55": {"cgroup": "0::/tsgw-one/kubepods/pod" + uid + "/d\n"},
	} {
		for name, body := range files {
			path := filepath.Join(proc, pid, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	dirs, err := processes(proc, []string{"another", uid})
	if err != nil {
		t.Fatal(err)
	}
	if len(dirs) != 4 {
		t.Errorf("processes(...): want the pod's 4, got %v", dirs)
	}
	resident, anonymous, times := 0.0, 0.0, map[string]time.Duration{}
	for _, dir := range dirs {
		for field, sum := range map[string]*float64{"VmRSS": &resident, "RssAnon": &anonymous} {
			kib, err := memory(dir, field)
			if err != nil {
				t.Fatal(err)
			}
			*sum += kib
		}
		program, took, err := processor(dir)
		if err != nil {
			t.Fatal(err)
		}
		times[program] += took
	}
	if resident != 1034 || anonymous != 512 {
		t.Errorf("memory(...): want 1034 and 512 KiB, got %v and %v", resident, anonymous)
	}
	want := map[string]time.Duration{"tail) scaled": 1070 * time.Millisecond, "": 0}
	if diff := cmp.Diff(want, times); diff != "" {
		t.Errorf("processor(...): a process that has ended has no name and no time: -want, +got:\n%s", diff)
	}
}

func TestManifests(t *testing.T) {
	for name, tc := range map[string]struct {
		reason   string
		manifest string
		want     string
	}{
		"Ingress": {
			reason:   "Without targets there is no list of endpoints.",
			manifest: proxies{name: "in", connectionType: "ingress", networking: "Kernel", replicas: 2}.manifest(),
			want:     "tailnet: bench\n  proxy:\n    replicas: 2\n    connectionType: ingress\n    networking: Kernel\n",
		},
		"Egress": {
			reason:   "Each target is an endpoint of the same host.",
			manifest: proxies{name: "out", connectionType: "egress", networking: "Userspace", replicas: 1, targets: []string{"a", "b"}, target: "h.example"}.manifest(),
			want:     "  endpoints:\n  - name: a\n    tailscaleFQDN: h.example\n    port: 8080\n  - name: b\n    tailscaleFQDN: h.example\n    port: 8080\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.HasSuffix(tc.manifest, tc.want) {
				t.Errorf("%s\nwant the end:\n%s\ngot:\n%s", tc.reason, tc.want, tc.manifest)
			}
		})
	}
}

func TestCounters(t *testing.T) {
	got, err := ParseCounters(`# HELP circuit_breaker_opens_total Breakers.
circuit_breaker_opens_total{controller="a"} 1
circuit_breaker_opens_total{controller="b"} 2
circuit_breaker_events_total{controller="a",result="Allowed"} 900
function_run_function_request_total{function_name="x",grpc_target="dns:///x:9443"} 1.5e+01
`)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Counters{Opens: 3, Calls: 15}, got); diff != "" {
		t.Errorf("Each counter is summed over its labels: -want, +got:\n%s", diff)
	}
}

func TestCreation(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	event := func(kind watch.EventType, name, ready string) watch.Event {
		return watch.Event{Type: kind, Object: &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": name},
			"status":   map[string]any{"conditions": []any{map[string]any{"type": "Synced", "status": "True"}, map[string]any{"type": "Ready", "status": ready}}},
		}}}
	}
	c := creation{}
	for i, e := range []watch.Event{
		event(watch.Added, "a", "Unknown"), event(watch.Added, "b", "False"), event(watch.Modified, "a", "True"),
		event(watch.Modified, "a", "False"), event(watch.Modified, "a", "True"), event(watch.Modified, "b", "True"), event(watch.Modified, "b", "True"),
	} {
		if err := c.see(e, at(i)); err != nil {
			t.Fatal(err)
		}
	}
	want := Creation{Flips: 1, Writes: []int{3, 4}, Took: []time.Duration{4 * time.Second, 4 * time.Second}}
	if diff := cmp.Diff(want, c.result()); diff != "" {
		t.Errorf("result(): -want, +got:\n%s", diff)
	}
	if c.settled(2, at(14), 10*time.Second) || !c.settled(2, at(15), 10*time.Second) || c.settled(3, at(99), time.Second) {
		t.Error("settled(...): want it 10 seconds after the last object became ready, and not while one is missing")
	}
	if err := c.see(event(watch.Deleted, "a", "True"), at(9)); err == nil {
		t.Error("see(...): want an error for a deletion")
	}
}
