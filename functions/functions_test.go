// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package functions

import (
	"context"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

// A named function returns its name as the response's tag.
type named struct {
	fnv1.UnimplementedFunctionRunnerServiceServer

	name string
}

func (n named) RunFunction(context.Context, *fnv1.RunFunctionRequest) (*fnv1.RunFunctionResponse, error) {
	return &fnv1.RunFunctionResponse{Meta: &fnv1.ResponseMeta{Tag: n.name}}, nil
}

func object(t *testing.T, kind string) *structpb.Struct {
	t.Helper()
	s, err := structpb.NewStruct(map[string]any{"apiVersion": "gateway.tailscale.com/v1alpha1", "kind": kind})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRouter(t *testing.T) {
	cases := map[string]struct {
		reason string

		// composite and input are kinds. An empty input means that the step has none.
		composite, input string

		// want is the function that runs, and fatal a part of the fatal result.
		want, fatal string
	}{
		"Composite":        {reason: "A composite in a namespace is of the kind itself.", composite: "TailscaleServices", want: "TailscaleServices"},
		"Claimed":          {reason: "A composite of a claim begins with X.", composite: "XTailscaleGateway", want: "TailscaleGateway"},
		"Input":            {reason: "The input determines the function in a composite of another kind.", composite: "XApp", input: "TailscaleEndpointsInput", want: "TailscaleEndpoints"},
		"InputOfOurs":      {reason: "The input determines the function in a composite of the product.", composite: "TailscaleServices", input: "TailscaleTailnetInput", want: "TailscaleTailnet"},
		"UnknownComposite": {reason: "A composite of another kind needs an input.", composite: "XApp", fatal: `kind "App"`},
		"UnknownInput":     {reason: "An input must be of one of the product's kinds.", composite: "TailscaleServices", input: "AppInput", fatal: `kind "App"`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := New(logging.NewNopLogger(), Options{})
			for k := range r.kinds {
				r.kinds[k] = named{name: k}
			}
			req := &fnv1.RunFunctionRequest{Observed: &fnv1.State{Composite: &fnv1.Resource{Resource: object(t, tc.composite)}}}
			if tc.input != "" {
				req.Input = object(t, tc.input)
			}
			rsp, err := r.RunFunction(t.Context(), req)
			if err != nil {
				t.Fatal(err)
			}
			if got := rsp.GetMeta().GetTag(); tc.fatal == "" && got != tc.want {
				t.Errorf("\n%s\nRunFunction(...): want function %q, got %q: %v", tc.reason, tc.want, got, rsp.GetResults())
			}
			fatal := ""
			for _, res := range rsp.GetResults() {
				if res.GetSeverity() == fnv1.Severity_SEVERITY_FATAL {
					fatal = res.GetMessage()
				}
			}
			if !strings.Contains(fatal, tc.fatal) || tc.fatal == "" && fatal != "" {
				t.Errorf("\n%s\nRunFunction(...): want fatal result with %q, got %q", tc.reason, tc.fatal, fatal)
			}
		})
	}
}
