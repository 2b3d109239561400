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

	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
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
	"github.com/tailscale-gateway/tailscale-gateway/internal/proxy"
)

// hashLength is the length, in hex digits, of the annotation with the hash of the applied object.
const hashLength = 16

// StatefulSet returns the StatefulSet to apply for a set that has pods, without its owner.
func StatefulSet(set *v1alpha1.MachineSet, img proxy.Images) (*unstructured.Unstructured, error) {
	return desired(set, appsv1.SchemeGroupVersion.WithKind("StatefulSet"), proxy.StatefulSet(options(set), img))
}

// podDisruptionBudget returns the PodDisruptionBudget to apply for a set that has pods, without its
// owner. It returns nil if the set is to have none.
func podDisruptionBudget(set *v1alpha1.MachineSet) (*unstructured.Unstructured, error) {
	b := proxy.PodDisruptionBudget(options(set))
	if b == nil {
		return nil, nil // Nil without an error means that there is none.
	}
	return desired(set, policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"), b)
}

func options(set *v1alpha1.MachineSet) proxy.Options {
	return proxy.Options{
		Name:      set.GetName(),
		Namespace: set.GetNamespace(),
		// A tailnet and its provider config have the same name.
		Tailnet: set.Spec.ProviderConfigReference.Name,
		Pods:    *set.Spec.Pods,
	}
}

// desired encodes an object for server-side apply. It omits status and nulls, which would claim
// fields.
func desired(set *v1alpha1.MachineSet, gvk schema.GroupVersionKind, o client.Object) (*unstructured.Unstructured, error) {
	j, err := json.Marshal(o)
	if err != nil {
		return nil, errors.Wrapf(err, "cannot encode %s %q", gvk.Kind, set.GetName())
	}
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(j, &u.Object); err != nil {
		return nil, errors.Wrapf(err, "cannot decode %s %q", gvk.Kind, set.GetName())
	}
	u.SetGroupVersionKind(gvk)
	delete(u.Object, "status")
	dropNulls(u.Object)
	xpmeta.AddLabels(u, map[string]string{meta.LabelMachineSet: set.GetName()})
	if j, err = json.Marshal(u); err != nil {
		return nil, errors.Wrapf(err, "cannot encode %s %q", gvk.Kind, set.GetName())
	}
	sum := sha256.Sum256(j)
	xpmeta.AddAnnotations(u, map[string]string{meta.AnnotationApplied: hex.EncodeToString(sum[:])[:hashLength]})
	return u, nil
}

func dropNulls(v any) {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if e == nil {
				delete(v, k)
				continue
			}
			dropNulls(e)
		}
	case []any:
		for _, e := range v {
			dropNulls(e)
		}
	}
}

// covers reports whether an object has every field that want has. Fields that others added are
// ignored. Fields that want no longer has show in the hash.
func covers(existing client.Object, gvk schema.GroupVersionKind, want *unstructured.Unstructured) (bool, error) {
	h, err := runtime.DefaultUnstructuredConverter.ToUnstructured(existing)
	if err != nil {
		return false, errors.Wrapf(err, "cannot encode %s %q", gvk.Kind, existing.GetName())
	}
	h["apiVersion"], h["kind"] = gvk.ToAPIVersionAndKind()
	current, err := json.Marshal(h)
	if err != nil {
		return false, errors.Wrapf(err, "cannot encode %s %q", gvk.Kind, existing.GetName())
	}
	modified, err := json.Marshal(want)
	if err != nil {
		return false, errors.Wrapf(err, "cannot encode %s %q", gvk.Kind, existing.GetName())
	}
	merged, err := strategicpatch.StrategicMergePatch(current, modified, existing)
	if err != nil {
		return false, errors.Wrapf(err, "cannot compare %s %q", gvk.Kind, existing.GetName())
	}
	m := map[string]any{}
	if err := json.Unmarshal(merged, &m); err != nil {
		return false, errors.Wrapf(err, "cannot decode %s %q", gvk.Kind, existing.GetName())
	}
	c := map[string]any{}
	if err := json.Unmarshal(current, &c); err != nil {
		return false, errors.Wrapf(err, "cannot decode %s %q", gvk.Kind, existing.GetName())
	}
	return equality.Semantic.DeepEqual(c, m), nil
}

// sentence returns an error as one line for a message of a status. An empty error stays empty.
func sentence(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if s == "" {
		return ""
	}
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}
