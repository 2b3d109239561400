// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// tag is the size of the tag of each field below.
const tag = 1

// metadataSize returns the size of metadata as proto.Size does, in a fraction of the time: every route of
// Envoy Gateway has metadata, which is nested maps, and proto.Size allocates for each entry of a map.
func metadataSize(m *corev3.Metadata) int {
	if len(m.GetTypedFilterMetadata()) > 0 {
		return proto.Size(m)
	}
	n := len(m.ProtoReflect().GetUnknown())
	for k, s := range m.GetFilterMetadata() {
		n += entrySize(k, structSize(s))
	}
	return n
}

// entrySize returns the size of a map's entry, with a value of a size.
func entrySize(key string, value int) int {
	return tag + protowire.SizeBytes(tag+protowire.SizeBytes(len(key))+tag+protowire.SizeBytes(value))
}

func structSize(s *structpb.Struct) int {
	n := 0
	for k, v := range s.GetFields() {
		n += entrySize(k, valueSize(v))
	}
	return n
}

func valueSize(v *structpb.Value) int {
	switch kind := v.GetKind().(type) {
	case *structpb.Value_StringValue:
		return tag + protowire.SizeBytes(len(kind.StringValue))
	case *structpb.Value_StructValue:
		return tag + protowire.SizeBytes(structSize(kind.StructValue))
	case *structpb.Value_ListValue:
		n := 0
		for _, v := range kind.ListValue.GetValues() {
			n += tag + protowire.SizeBytes(valueSize(v))
		}
		return tag + protowire.SizeBytes(n)
	default:
		return proto.Size(v)
	}
}
