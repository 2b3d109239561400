// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package sidebyside

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
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

func TestResident(t *testing.T) {
	const uid = "0a1b-2c"
	proc := t.TempDir()
	for pid, files := range map[string]map[string]string{
		"1":  {"cgroup": "0::/tsgw-one/kubepods/pod" + uid + "/a\n", "status": "Name:\ta\nVmRSS:\t  1024 kB\n"},
		"22": {"cgroup": "0::/tsgw-one/kubepods/pod" + uid + "/b\n", "status": "VmRSS:\t    10 kB\n"},
		"33": {"cgroup": "0::/tsgw-one/kubepods/podother/b\n", "status": "VmRSS:\t    99 kB\n"},
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
	got, err := resident(proc, uid)
	if err != nil {
		t.Fatal(err)
	}
	if got != 1034 {
		t.Errorf("resident(...): want 1034 KiB, got %v", got)
	}
}

func TestCounters(t *testing.T) {
	got, err := counters(`# HELP circuit_breaker_opens_total Breakers.
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
