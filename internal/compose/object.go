// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"encoding/json"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
)

// scheme has the kinds of all objects that functions compose.
var scheme = runtime.NewScheme()

func init() {
	b := runtime.NewSchemeBuilder(
		appsv1.AddToScheme,
		corev1.AddToScheme,
		networkingv1.AddToScheme,
		policyv1.AddToScheme,
		rbacv1.AddToScheme,
		gatewayv1alpha1.AddToScheme,
		tailnetv1alpha1.AddToScheme,
	)
	if err := b.AddToScheme(scheme); err != nil {
		panic(err)
	}
}

// toStruct encodes an object for server-side apply: with its kind, and without status or nulls,
// which would claim fields that a function does not set. It does not use the SDK's composed.From,
// whose encoder includes every false and 0 although they should be omitted when empty, and drops
// emptyDir: {}.
func toStruct(o runtime.Object) (*structpb.Struct, error) {
	kinds, _, err := scheme.ObjectKinds(o)
	if err != nil {
		return nil, errors.Wrapf(err, "cannot find the kind of a %T", o)
	}
	if len(kinds) > 1 {
		return nil, errors.Errorf("cannot find the kind of a %T: it has %d kinds", o, len(kinds))
	}
	m, err := toMap(o)
	if err != nil {
		return nil, err
	}
	m["apiVersion"], m["kind"] = kinds[0].ToAPIVersionAndKind()
	delete(m, "status")
	dropNulls(m)
	s, err := structpb.NewStruct(m)
	return s, errors.Wrapf(err, "cannot convert a %T to a struct", o)
}

func toMap(v any) (map[string]any, error) {
	j, err := json.Marshal(v)
	if err != nil {
		return nil, errors.Wrapf(err, "cannot encode a %T", v)
	}
	m := map[string]any{}
	return m, errors.Wrapf(json.Unmarshal(j, &m), "cannot decode a %T", v)
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

// fromStruct decodes an object. Fields that its type lacks, such as Crossplane's
// own in a composite's spec, are ignored.
func fromStruct(s *structpb.Struct, dst any) error {
	j, err := protojson.Marshal(s)
	if err != nil {
		return errors.Wrapf(err, "cannot encode a struct for a %T", dst)
	}
	return errors.Wrapf(json.Unmarshal(j, dst), "cannot decode a %T", dst)
}
