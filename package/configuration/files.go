// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package configuration embeds the files of the configuration, of which the configuration of claims and the
// inputs of functions are derived.
package configuration

import (
	"bytes"
	"embed"
	"io/fs"

	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

//go:embed xrds compositions activationpolicy.yaml
var embedded embed.FS

// Files returns the files of the configuration beside crossplane.yaml, by path.
func Files() (map[string][]byte, error) {
	out := map[string][]byte{}
	err := fs.WalkDir(embedded, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		out[path], err = fs.ReadFile(embedded, path)
		return err
	})
	return out, errors.Wrap(err, "cannot read the configuration")
}

// Encode returns an object in YAML, without its status.
func Encode(o any) ([]byte, error) {
	out, err := yaml.Marshal(o)
	if err != nil {
		return nil, errors.Wrap(err, "cannot encode")
	}
	// The zero status that Go's encoder adds would be an empty change.
	if i := bytes.Index(out, []byte("\nstatus:")); i >= 0 {
		out = out[:i+1]
	}
	return out, nil
}
