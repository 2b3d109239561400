// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package xds

import (
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// TestShare sets each field of the messages in turn, also those that a later version of the API adds.
func TestShare(t *testing.T) {
	cases := map[string]struct {
		message proto.Message
		share   func(proto.Message) proto.Message
	}{
		"Route":       {message: &routev3.Route{}, share: func(m proto.Message) proto.Message { return shareRoute(m.(*routev3.Route)) }},
		"RouteMatch":  {message: &routev3.RouteMatch{}, share: func(m proto.Message) proto.Message { return shareMatch(m.(*routev3.RouteMatch)) }},
		"RouteAction": {message: &routev3.RouteAction{}, share: func(m proto.Message) proto.Message { return shareAction(m.(*routev3.RouteAction)) }},
		"RetryPolicy": {message: &routev3.RetryPolicy{}, share: func(m proto.Message) proto.Message { return share(m.(*routev3.RetryPolicy)) }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			fields := tc.message.ProtoReflect().Descriptor().Fields()
			for i := range fields.Len() {
				m := tc.message.ProtoReflect().New()
				setField(m, fields.Get(i))
				if got := tc.share(m.Interface()); !proto.Equal(got, m.Interface()) {
					t.Errorf("field %s: want %v, got %v", fields.Get(i).Name(), m.Interface(), got)
				}
			}
			m := tc.message.ProtoReflect().New()
			m.SetUnknown(protoreflect.RawFields{0xf8, 0x7f, 0x01})
			if got := tc.share(m.Interface()); !proto.Equal(got, m.Interface()) {
				t.Errorf("unknown field: want %v, got %v", m.Interface(), got)
			}
		})
	}
}

// setField gives a field a value that is not its default.
func setField(m protoreflect.Message, f protoreflect.FieldDescriptor) {
	switch {
	case f.IsList():
		l := m.Mutable(f).List()
		if f.Message() != nil {
			l.AppendMutable()
			return
		}
		l.Append(valueOf(f))
	case f.IsMap():
		v := m.NewField(f).Map()
		v.Set(protoreflect.ValueOfString("key").MapKey(), v.NewValue())
		m.Set(f, protoreflect.ValueOfMap(v))
	case f.Message() != nil:
		m.Mutable(f)
	default:
		m.Set(f, valueOf(f))
	}
}

// valueOf returns a value of a scalar field that is not its default.
func valueOf(f protoreflect.FieldDescriptor) protoreflect.Value {
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(true)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(1)
	case protoreflect.StringKind:
		return protoreflect.ValueOfString("value")
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(1)
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(1)
	}
	panic("a field of kind " + f.Kind().String())
}
