// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package golden

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// basePrefix begins the first line of a golden file that states its difference to another one, its
// base.
const basePrefix = "# base: "

// Read returns the whole content of a golden file. If the file states its difference to a base,
// that is the base with the difference applied.
func Read(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, errors.Wrap(err, "cannot read a golden file")
	}
	base, ok := baseOf(text)
	if !ok {
		return text, nil
	}
	original, err := readBase(path, base)
	if err != nil {
		return nil, err
	}
	whole, err := merge(original, text)
	return whole, errors.Wrapf(err, "%s: cannot apply the difference to %s", path, base)
}

// ComparePatch fails the test unless actual, which is YAML, equals what Read returns for the file at
// a path. The file states the difference to a base, the name of another golden file of the same
// folder without its extension, as an RFC 7386 merge patch. ComparePatch also fails if another patch
// is shorter. With -update it writes the file.
func ComparePatch(t *testing.T, path, base string, actual []byte, digests *Digests) {
	t.Helper()
	original, err := readBase(path, base)
	if err != nil {
		t.Error(err)
		return
	}
	patch, err := difference(original, actual)
	if err != nil {
		t.Errorf("%s: %v", path, err)
		return
	}
	if whole, err := Read(path); err == nil && !*update && !bytes.Equal(whole, actual) {
		reportDiff(t, path, whole, actual, digests)
		return
	}
	Compare(t, path, append([]byte(basePrefix+base+"\n"), patch...), digests)
}

// baseOf returns the name of the base of a golden file's content.
func baseOf(text []byte) (string, bool) {
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.CutPrefix(line, basePrefix)
}

// readBase returns the content of the base of the golden file at a path. A base has no base itself.
func readBase(path, base string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(filepath.Dir(path), base+filepath.Ext(path)))
	if err != nil {
		return nil, errors.Wrap(err, "cannot read a base")
	}
	if other, ok := baseOf(text); ok {
		return nil, errors.Errorf("%s: its base %s states a difference to %s itself", path, base, other)
	}
	return text, nil
}

// difference returns the merge patch that turns an original into actual.
func difference(original, actual []byte) ([]byte, error) {
	originalJSON, err := yaml.YAMLToJSON(original)
	if err != nil {
		return nil, errors.Wrap(err, "cannot parse the base")
	}
	actualJSON, err := yaml.YAMLToJSON(actual)
	if err != nil {
		return nil, errors.Wrap(err, "cannot parse what the test made")
	}
	j, err := jsonpatch.CreateMergePatch(originalJSON, actualJSON)
	if err != nil {
		return nil, errors.Wrap(err, "cannot make a patch")
	}
	patch, err := yaml.JSONToYAML(j)
	if err != nil {
		return nil, errors.Wrap(err, "cannot encode a patch")
	}
	whole, err := merge(original, patch)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(whole, actual) {
		return nil, errors.New("a merge patch cannot state this difference to the base: remove the base of the case")
	}
	return patch, nil
}

// merge applies a merge patch.
func merge(original, patch []byte) ([]byte, error) {
	originalJSON, err := yaml.YAMLToJSON(original)
	if err != nil {
		return nil, errors.Wrap(err, "cannot parse the base")
	}
	patchJSON, err := yaml.YAMLToJSON(patch)
	if err != nil {
		return nil, errors.Wrap(err, "cannot parse the patch")
	}
	j, err := jsonpatch.MergePatch(originalJSON, patchJSON)
	if err != nil {
		return nil, errors.Wrap(err, "cannot apply the patch")
	}
	whole, err := yaml.JSONToYAML(j)
	return whole, errors.Wrap(err, "cannot encode the whole")
}
