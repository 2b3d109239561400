// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscaled"
)

func TestKey(t *testing.T) {
	tool := Tool{Name: "etcd", Outputs: []Output{{Name: "etcd"}}}
	files := map[string][]byte{"go.mod": []byte("module a"), "go.sum": []byte("b")}
	base := Key(tool, files, "go1.26.8")
	if len(base) != 8 {
		t.Errorf("Key(...): want 8 digits, got %q", base)
	}
	if repeated := Key(tool, files, "go1.26.8"); repeated != base {
		t.Errorf("Key(...): the same input gives %q and %q", base, repeated)
	}
	cases := map[string]struct {
		reason string
		tool   Tool
		files  map[string][]byte
		goVer  string
	}{
		"File": {
			reason: "Another dependency should result in another binary.",
			tool:   tool, files: map[string][]byte{"go.mod": []byte("module a"), "go.sum": []byte("c")}, goVer: "go1.26.8",
		},
		"Boundary": {
			reason: "Bytes that move from one file to the next should count.",
			tool:   tool, files: map[string][]byte{"go.mod": []byte("module ab"), "go.sum": []byte("")}, goVer: "go1.26.8",
		},
		"Go": {
			reason: "Another version of Go should result in another binary.",
			tool:   tool, files: files, goVer: "go1.27.0",
		},
		"Flags": {
			reason: "Other flags should result in another binary.",
			tool:   Tool{Name: "etcd", Tags: "x", Outputs: tool.Outputs}, files: files, goVer: "go1.26.8",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Key(tc.tool, tc.files, tc.goVer); got == base {
				t.Errorf("\n%s\nKey(...): got the same key %q", tc.reason, got)
			}
		})
	}
}

// TestTableAgreesWithModules checks that the version of a tool in the table is that in go.mod,
// or in the requirements.txt of a wheel.
func TestTableAgreesWithModules(t *testing.T) {
	for _, tool := range Table() {
		file, want := "go.mod", tool.Module+" "+tool.Version
		if tool.Wheel != "" {
			file, want = "requirements.txt", tool.Wheel+"=="+strings.TrimPrefix(tool.Version, "v")+" "
		}
		body, err := os.ReadFile(filepath.Join("..", "..", "..", "tools", cmp.Or(tool.Folder, tool.Name), file))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(body), want) {
			t.Errorf("%s of tool %q does not require %q", file, tool.Name, want)
		}
	}
}

// TestRemoveLines checks that text is removed only if it occurs exactly once.
func TestRemoveLines(t *testing.T) {
	cases := map[string]struct {
		reason, text, want string
	}{
		"Part":    {reason: "A whole line is removed.", text: "opts.X", want: "a\nb\n\tc\nb\n"},
		"Several": {reason: "Text may span lines.", text: "b\n\tc", want: "a\n\topts.X = 1\nb\n"},
		"Absent":  {reason: "Another version of the file is an error.", text: "opts.Y"},
		"Twice":   {reason: "Ambiguous text is an error.", text: "b\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			const body = "a\n\topts.X = 1\nb\n\tc\nb\n"
			file := filepath.Join(t.TempDir(), "a.go")
			if err := os.WriteFile(file, []byte(body), 0o644); err != nil {
				t.Fatal(err)
			}
			err := removeLines(file, tc.text)
			if (err != nil) != (tc.want == "") {
				t.Errorf("%s removeLines(...): %v", tc.reason, err)
			}
			got, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if want := cmp.Or(tc.want, body); string(got) != want {
				t.Errorf("%s removeLines(...): want %q, got %q", tc.reason, want, got)
			}
		})
	}
}

// TestProxies checks that the versions of proxies are the range that the product calls tested.
func TestProxies(t *testing.T) {
	all := Proxies()
	if oldest := all[0].Version; oldest != "v"+tailscaled.Oldest {
		t.Errorf("the oldest version is %s, and tailscaled.Oldest is %s", oldest, tailscaled.Oldest)
	}
	if newest := all[len(all)-1].Version; newest != "v"+tailscaled.Newest {
		t.Errorf("the newest version is %s, and tailscaled.Newest is %s", newest, tailscaled.Newest)
	}
	for _, tool := range all {
		if !tailscaled.Tested(tool.Version[1:]) || !tool.Optional {
			t.Errorf("tool %q must be optional and of a tested version", tool.Name)
		}
	}
}

func TestBuildAllCached(t *testing.T) {
	var out bytes.Buffer
	b := &Builder{Modules: filepath.Join("..", "..", "..", "tools"), Cache: t.TempDir(), GoVersion: "go0", Progress: &out}
	needed := 0
	for _, tool := range Table() {
		if tool.Optional {
			continue
		}
		needed++
		dir, err := b.Dir(tool)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.BuildAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Count(out.String(), "cached\n"), needed; got != want {
		t.Errorf("BuildAll(...): want %d cached, got:\n%s", want, out.String())
	}
}
