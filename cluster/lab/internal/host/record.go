// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// sysctls are settings of the whole machine that kubelet and kube-proxy change.
// They are restored when the lab is removed.
var sysctls = []string{"vm.overcommit_memory", "vm.panic_on_oom", "kernel.panic", "kernel.panic_on_oops", "kernel.keys.root_maxkeys", "kernel.keys.root_maxbytes"}

// A record is the state of the machine before the lab.
type record struct {
	// Existed reports which of foreignDirs existed.
	Existed map[string]bool `json:"existed"`
	// Sysctls by name.
	Sysctls map[string]string `json:"sysctls"`
}

func recordPath(p Paths) string { return filepath.Join(p.State, "before.json") }

func sysctlPath(name string) string { return "/proc/sys/" + strings.ReplaceAll(name, ".", "/") }

// Record saves the state of the machine before a lab changes it. An existing
// record stays unchanged.
func Record(p Paths) error {
	if _, ok := readRecord(p); ok {
		return nil
	}
	r := record{Existed: map[string]bool{}, Sysctls: map[string]string{}}
	for _, d := range foreignDirs {
		_, err := os.Lstat(d)
		r.Existed[d] = err == nil
	}
	for _, s := range sysctls {
		if b, err := os.ReadFile(sysctlPath(s)); err == nil {
			r.Sysctls[s] = strings.TrimSpace(string(b))
		}
	}
	b, err := json.Marshal(r)
	if err != nil {
		return errors.Wrap(err, "cannot encode the machine's record")
	}
	if err := os.MkdirAll(p.State, 0o755); err != nil { // Secrets in it have stricter modes.
		return errors.Wrap(err, "cannot make the lab's folder")
	}
	return errors.Wrap(os.WriteFile(recordPath(p), b, 0o644), "cannot write the machine's record") // No secret.
}

func readRecord(p Paths) (record, bool) {
	b, err := os.ReadFile(recordPath(p))
	if err != nil {
		return record{}, false
	}
	var r record
	if err := json.Unmarshal(b, &r); err != nil {
		return record{}, false
	}
	return r, true
}

func restoreSysctls(p Paths) error {
	r, ok := readRecord(p)
	if !ok {
		return nil
	}
	for name, value := range r.Sysctls {
		current, err := os.ReadFile(sysctlPath(name))
		if err != nil || strings.TrimSpace(string(current)) == value {
			continue
		}
		if err := os.WriteFile(sysctlPath(name), []byte(value), 0o644); err != nil { // Not a new file.
			return errors.Wrapf(err, "cannot restore %s", name)
		}
	}
	return nil
}
