// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// keyOwnerRefs is the key of the list in the value of meta.AnnotationOwnerReferences.
const keyOwnerRefs = "ownerRefs"

// OwnerRefs are the owners of a service according to Tailscale's operator. Entries of other writers
// are kept byte for byte.
type OwnerRefs struct {
	fields map[string]json.RawMessage
	refs   []json.RawMessage
}

type ownerRef struct {
	OperatorID string          `json:"operatorID"`
	Resource   json.RawMessage `json:"resource,omitempty"`
}

// ParseOwnerRefs parses the value of the annotation. An empty value means that there are no owners.
func ParseOwnerRefs(value string) (OwnerRefs, error) {
	o := OwnerRefs{}
	if value == "" {
		return o, nil
	}
	if err := json.Unmarshal([]byte(value), &o.fields); err != nil {
		return o, errors.New("cannot read the owner references of Tailscale's operator")
	}
	if list, ok := o.fields[keyOwnerRefs]; ok {
		if err := json.Unmarshal(list, &o.refs); err != nil {
			return o, errors.New("cannot read the owner references of Tailscale's operator")
		}
	}
	return o, nil
}

// Exclusive reports whether the service belongs to one resource of one operator that does not share
// it (tailscale.com cmd/k8s-operator/api-server-proxy-pg.go).
func (o OwnerRefs) Exclusive() bool {
	return len(o.refs) > 0 && len(read(o.refs[0]).Resource) > 0
}

// Others returns the number of owners other than id.
func (o OwnerRefs) Others(id string) int {
	n := 0
	for _, r := range o.refs {
		if read(r).OperatorID != id {
			n++
		}
	}
	return n
}

// has reports whether id is an owner.
func (o OwnerRefs) has(id string) bool { return o.Others(id) < len(o.refs) }

// with returns the annotation's value with an owner appended.
func (o OwnerRefs) with(id string) (string, error) {
	b, err := json.Marshal(ownerRef{OperatorID: id})
	if err != nil {
		return "", errors.Wrap(err, "cannot encode an owner reference")
	}
	return o.encode(append(o.refs[:len(o.refs):len(o.refs)], b))
}

// without returns the annotation's value without an owner.
func (o OwnerRefs) without(id string) (string, error) {
	var refs []json.RawMessage
	for _, r := range o.refs {
		if read(r).OperatorID != id {
			refs = append(refs, r)
		}
	}
	return o.encode(refs)
}

// encode builds the JSON text itself, because the encoder would compact and escape the entries of
// other writers.
func (o OwnerRefs) encode(refs []json.RawMessage) (string, error) {
	fields := map[string]json.RawMessage{}
	maps.Copy(fields, o.fields)
	fields[keyOwnerRefs] = slices.Concat([]byte("["), bytes.Join(raws(refs), []byte(",")), []byte("]"))
	out := []byte("{")
	for i, k := range slices.Sorted(maps.Keys(fields)) {
		key, err := json.Marshal(k)
		if err != nil {
			return "", errors.Wrap(err, "cannot encode owner references")
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = slices.Concat(out, key, []byte(":"), fields[k])
	}
	return string(append(out, '}')), nil
}

func raws(messages []json.RawMessage) [][]byte {
	out := make([][]byte, len(messages))
	for i := range messages {
		out[i] = messages[i]
	}
	return out
}

// read returns the known fields of a reference. A reference with an unknown structure belongs to
// another owner.
func read(raw json.RawMessage) ownerRef {
	r := ownerRef{}
	if err := json.Unmarshal(raw, &r); err != nil {
		return ownerRef{}
	}
	return r
}

// OwnedAlone reports whether no other cluster is an owner of a service according to Tailscale's operator.
// A service that its object retains then stays as it is: its owner is who gets it back.
func OwnedAlone(s *tailscale.Service, cluster string) (bool, error) {
	refs, err := ParseOwnerRefs(s.Annotations[meta.AnnotationOwnerReferences])
	return err == nil && refs.Others(cluster) == 0, err
}

// Released returns annotations without this cluster's owner reference. It also removes all other
// annotations of this package, unless clusters still share the service.
func Released(annotations map[string]string, cluster string, shared bool) (map[string]string, error) {
	out := maps.Clone(annotations)
	if value, ok := out[meta.AnnotationOwnerReferences]; ok {
		refs, err := ParseOwnerRefs(value)
		if err != nil {
			return nil, err
		}
		if refs.has(cluster) {
			if out[meta.AnnotationOwnerReferences], err = refs.without(cluster); err != nil {
				return nil, err
			}
		}
	}
	if shared {
		return out, nil
	}
	if err := SetAnnotations(out, nil); err != nil {
		return nil, err
	}
	maps.DeleteFunc(out, func(k, _ string) bool { return strings.HasPrefix(k, reservedPrefix) })
	return out, nil
}
