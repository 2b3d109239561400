// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package sbom

import (
	"debug/buildinfo"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestNew(t *testing.T) {
	info := &buildinfo.BuildInfo{
		GoVersion: "go1.26.7",
		Main:      debug.Module{Path: "example.org/main", Version: "(devel)"},
		Deps: []*debug.Module{
			{Path: "example.org/b", Version: "v1.0.0"},
			{Path: "example.org/a/v2", Version: "v2.0.0-20260101000000-abcdefabcdef"},
			{Path: "example.org/c", Version: "v1.0.0", Replace: &debug.Module{Path: "example.org/fork", Version: "v1.0.1"}},
		},
	}
	hex := strings.Repeat("a", 64)
	img := Artifact{Name: "agent", Version: "v0.1.0", Platform: "linux/arm64", Purpose: PurposeContainer, Hex: hex, Source: "https://example.org/source", Created: time.Unix(0, 0)}
	doc, err := New(img, info)
	if err != nil {
		t.Fatal(err)
	}
	second, err := New(img, info)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(doc), string(second)); diff != "" {
		t.Errorf("two documents of one binary differ:\n%s", diff)
	}
	for _, want := range []string{
		`"spdxVersion": "SPDX-2.3"`, `"created": "1970-01-01T00:00:00Z"`,
		`"SPDXID": "SPDXRef-Module-example.org-a-v2"`, `"referenceLocator": "pkg:golang/example.org/main@v0.1.0"`,
		`"referenceLocator": "pkg:golang/example.org/fork@v1.0.1"`, `"referenceLocator": "pkg:golang/stdlib@go1.26.7"`,
	} {
		if !strings.Contains(string(doc), want) {
			t.Errorf("the document has no %s", want)
		}
	}
	if err := Check(doc, hex, info); err != nil {
		t.Error(err)
	}

	cases := map[string]struct {
		reason string
		doc    string
		hex    string
		info   *buildinfo.BuildInfo
		want   string
	}{
		"OtherImage": {reason: "A document is of one artifact.", doc: string(doc), hex: strings.Repeat("b", 64), info: info, want: "another artifact"},
		"Missing": {
			reason: "A document lists each module of the binary.", doc: string(doc), hex: hex,
			info: &buildinfo.BuildInfo{GoVersion: info.GoVersion, Main: info.Main, Deps: append([]*debug.Module{{Path: "example.org/more", Version: "v1.0.0"}}, info.Deps...)},
			want: "does not list example.org/more v1.0.0",
		},
		"OtherVersion": {
			reason: "A document names the version that the binary has.", doc: string(doc), hex: hex,
			info: &buildinfo.BuildInfo{GoVersion: "go0.1", Main: info.Main, Deps: info.Deps}, want: "does not list stdlib go0.1",
		},
		"Surplus": {
			reason: "A document lists no other modules.", doc: string(doc), hex: hex,
			info: &buildinfo.BuildInfo{GoVersion: info.GoVersion, Main: info.Main, Deps: info.Deps[1:]}, want: "modules, the binary has",
		},
		"NoSPDX": {reason: "A document has a version of SPDX.", doc: `{}`, hex: hex, info: info, want: "version of SPDX"},
		"NoJSON": {reason: "A document is JSON.", doc: `x`, hex: hex, info: info, want: "cannot decode"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if err := Check([]byte(tc.doc), tc.hex, tc.info); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: want an error with %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}
