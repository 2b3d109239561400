//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
)

// rename applies a function to all strings of a message.
func rename(t *testing.T, m protoreflect.Message, mapping func(string) string) {
	t.Helper()
	if a, ok := m.Interface().(*anypb.Any); ok {
		if a.GetTypeUrl() == "" {
			return
		}
		inner, err := a.UnmarshalNew()
		if err != nil {
			t.Fatalf("import the package of %s: %v", a.GetTypeUrl(), err)
		}
		rename(t, inner.ProtoReflect(), mapping)
		if a.Value, err = (proto.MarshalOptions{Deterministic: true}).Marshal(inner); err != nil {
			t.Fatal(err)
		}
		return
	}
	renamed := func(v protoreflect.Value) protoreflect.Value {
		return protoreflect.ValueOfString(mapping(v.String()))
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		text, message := f.Kind() == protoreflect.StringKind, f.Message() != nil
		switch {
		case f.IsMap():
			descriptor := f.MapValue()
			v.Map().Range(func(k protoreflect.MapKey, e protoreflect.Value) bool {
				if descriptor.Message() != nil {
					rename(t, e.Message(), mapping)
				} else if descriptor.Kind() == protoreflect.StringKind {
					v.Map().Set(k, renamed(e))
				}
				return true
			})
		case f.IsList():
			for i := range v.List().Len() {
				if message {
					rename(t, v.List().Get(i).Message(), mapping)
				} else if text {
					v.List().Set(i, renamed(v.List().Get(i)))
				}
			}
		case message:
			rename(t, v.Message(), mapping)
		case text:
			m.Set(f, renamed(v))
		}
		return true
	})
}
