// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"path/filepath"
	"regexp"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// portRule is the validation of backends that reads a port. "crossplane resource validate"
// decodes the numbers of inputs as floats, and CEL rejects a float where the schema says
// integer: the rule would fail for every input. The functions check it themselves.
var portRule = regexp.MustCompile(`(?m)^ +- message: port is required unless kind is TailscaleGateway\n +rule: .*\n`)

// inputs copies the schemas of functions' inputs from one folder to another, without the
// rule that Crossplane's command line cannot evaluate.
func inputs(from, to string) error {
	found := false
	err := each(filepath.Join(from, "*.yaml"), func(name string, b []byte) error {
		out := portRule.ReplaceAll(b, nil)
		found = found || !bytes.Equal(out, b)
		return save(filepath.Join(to, name), out)
	})
	if err == nil && !found {
		return errors.New("no input has the rule of ports any more: correct hack/xrdgen")
	}
	return err
}
