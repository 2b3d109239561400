// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machineset

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// hashLength of the annotation that tells what was applied, in hex digits.
const hashLength = 16

// Desired is an object of a set's spec as it is to be applied, but for its owner.
func Desired(set *v1alpha1.MachineSet, raw *runtime.RawExtension) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw.Raw, u); err != nil {
		return nil, errors.Wrap(err, "cannot decode it")
	}
	delete(u.Object, "status")
	u.SetName(set.GetName())
	u.SetNamespace(set.GetNamespace())
	xpmeta.AddLabels(u, map[string]string{meta.LabelMachineSet: set.GetName()})
	j, err := json.Marshal(u)
	if err != nil {
		return nil, errors.Wrap(err, "cannot encode it")
	}
	sum := sha256.Sum256(j)
	xpmeta.AddAnnotations(u, map[string]string{meta.AnnotationApplied: hex.EncodeToString(sum[:])[:hashLength]})
	return u, nil
}

// covers tells whether an object has all that is wanted of it. What others have
// added to it is theirs. What is not wanted any more shows in the hash.
func covers(have client.Object, gvk schema.GroupVersionKind, want *unstructured.Unstructured) (bool, error) {
	h, err := runtime.DefaultUnstructuredConverter.ToUnstructured(have)
	if err != nil {
		return false, errors.Wrapf(err, "cannot encode %s %q", gvk.Kind, have.GetName())
	}
	h["apiVersion"], h["kind"] = gvk.ToAPIVersionAndKind()
	current, err := json.Marshal(h)
	if err != nil {
		return false, errors.Wrapf(err, "cannot encode %s %q", gvk.Kind, have.GetName())
	}
	modified, err := json.Marshal(want)
	if err != nil {
		return false, errors.Wrapf(err, "cannot encode %s %q", gvk.Kind, have.GetName())
	}
	merged, err := strategicpatch.StrategicMergePatch(current, modified, have)
	if err != nil {
		return false, errors.Wrapf(err, "cannot compare %s %q", gvk.Kind, have.GetName())
	}
	m := map[string]any{}
	if err := json.Unmarshal(merged, &m); err != nil {
		return false, errors.Wrapf(err, "cannot decode %s %q", gvk.Kind, have.GetName())
	}
	c := map[string]any{}
	if err := json.Unmarshal(current, &c); err != nil {
		return false, errors.Wrapf(err, "cannot decode %s %q", gvk.Kind, have.GetName())
	}
	return equality.Semantic.DeepEqual(c, m), nil
}

// sentence is an error on one line, as a message of a status. None is empty.
func sentence(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if s == "" {
		return ""
	}
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}
