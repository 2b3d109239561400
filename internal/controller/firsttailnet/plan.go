// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package firsttailnet

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	"github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// kind is that of a TailscaleTailnet, which has no namespace, also where the other kinds are claims.
func kind() schema.GroupVersionKind {
	return v1alpha1.SchemeGroupVersion.WithKind(v1alpha1.TailscaleTailnetKind)
}

// facts are the input of a plan.
type facts struct {
	// request is the chart's ConfigMap, or nil.
	request *corev1.ConfigMap

	// exists reports whether there is a TailscaleTailnet of the requested name. It counts only while
	// the request is pending.
	exists bool
}

// A plan describes the steps for a request.
type plan struct {
	// create is the TailscaleTailnet to create, or nil.
	create *unstructured.Unstructured

	// record is the name to record after that. Empty means that there is nothing to record.
	record string
}

// pending returns the requested name, or "" if there is no request, or if the provider has recorded
// that it acted on it.
func pending(request *corev1.ConfigMap) string {
	if request == nil || xpmeta.WasDeleted(request) {
		return ""
	}
	name := request.Data[meta.FirstTailnetName]
	if request.Data[meta.FirstTailnetCreated] == name {
		return ""
	}
	return name
}

// decide returns the plan for facts, or an error if the request describes no object.
func decide(f facts) (plan, error) {
	name := pending(f.request)
	if name == "" {
		return plan{}, nil
	}
	if f.exists {
		return plan{record: name}, nil
	}
	spec := map[string]any{}
	if err := yaml.Unmarshal([]byte(f.request.Data[meta.FirstTailnetSpec]), &spec); err != nil {
		return plan{}, errors.Wrapf(err, "cannot parse %s", meta.FirstTailnetSpec)
	}
	o := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	o.SetGroupVersionKind(kind())
	o.SetName(name)
	return plan{create: o, record: name}, nil
}
