// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// identity lists the fields of a status that an upgrade must not change.
var identity = [][]string{
	{"spec", "clusterIP"},
	{"status", "addresses"},
	{"status", "vipServiceStatus", "addresses"},
	{"status", "vipServiceStatus", "dnsName"},
	{"status", "atProvider", "nodeID"},
	{"status", "atProvider", "addresses"},
}

// machinery lists the fields of a composite's spec that belong to Crossplane: revisions of
// Compositions change with a version.
var machinery = []string{"crossplane", "compositionRef", "compositionRevisionRef", "compositionRevisionSelector", "compositionUpdatePolicy", "resourceRef", "resourceRefs"}

// A Detail is how much of an object a snapshot holds.
type Detail int

const (
	// Presence is for objects that a component may create again.
	Presence Detail = iota

	// UID is for objects that must stay the same.
	UID

	// Everything is for objects that users write, and for those in the tailnet.
	Everything
)

// AddObjects adds the objects of a list of kubectl get -o json.
func (s *Snapshot) AddObjects(list []byte, d Detail) error {
	l := &unstructured.UnstructuredList{}
	if err := l.UnmarshalJSON(list); err != nil {
		return errors.Wrap(err, "cannot decode list of objects")
	}
	if s.Objects == nil {
		s.Objects = map[string]Object{}
	}
	for _, o := range l.Items {
		s.Objects[key(o)] = object(o, d)
	}
	return nil
}

func key(o unstructured.Unstructured) string {
	return o.GetKind() + " " + strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
}

func object(o unstructured.Unstructured, d Detail) Object {
	out := Object{}
	if d == Presence {
		return out
	}
	out.UID = string(o.GetUID())
	for _, path := range identity {
		if v, ok, err := unstructured.NestedFieldNoCopy(o.Object, path...); ok && err == nil {
			if out.Identity == nil {
				out.Identity = map[string]any{}
			}
			out.Identity[strings.Join(path, ".")] = v
		}
	}
	if d != Everything {
		return out
	}
	if spec, ok, err := unstructured.NestedMap(o.Object, "spec"); ok && err == nil {
		for _, f := range machinery {
			delete(spec, f)
		}
		out.Spec = spec
	}
	out.Conditions = conditions(o)
	return out
}

// conditions returns the conditions of an object by type, as STATUS/REASON.
func conditions(o unstructured.Unstructured) map[string]string {
	out := map[string]string{}
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions") // Absent is empty.
	for _, c := range list {
		if m, ok := c.(map[string]any); ok {
			out[fmt.Sprint(m["type"])] = fmt.Sprintf("%v/%v", m["status"], m["reason"])
		}
	}
	return out
}

// createKey is how the simulator counts requests that create keys.
const createKey = "POST /api/v2/tailnet/{tailnet}/keys"

// AddTailnet adds the state of a simulated tailnet.
func (s *Snapshot) AddTailnet(name string, state []byte) error {
	var st struct {
		Devices []struct {
			NodeID    string   `json:"nodeId"`
			Name      string   `json:"name"`
			Created   string   `json:"created"`
			NodeKey   string   `json:"nodeKey"`
			Addresses []string `json:"addresses"`
		} `json:"devices"`
		Keys []struct {
			ID      string `json:"id"`
			Created string `json:"created"`
		} `json:"keys"`
		Services []struct {
			Name  string   `json:"name"`
			Addrs []string `json:"addrs"`
		} `json:"services"`
		Calls map[string]int `json:"calls"`
	}
	if err := json.Unmarshal(state, &st); err != nil {
		return errors.Wrapf(err, "cannot decode state of tailnet %q", name)
	}
	if len(st.Calls) == 0 {
		return errors.Errorf("the state of tailnet %q counts no requests", name)
	}
	t := Tailnet{Devices: map[string]Device{}, Services: map[string][]string{}, Keys: map[string]string{}, KeysMade: st.Calls[createKey]}
	for _, d := range st.Devices {
		t.Devices[d.NodeID] = Device{Name: d.Name, Created: d.Created, NodeKey: d.NodeKey, Addresses: slices.Sorted(slices.Values(d.Addresses))}
	}
	for _, k := range st.Keys {
		t.Keys[k.ID] = k.Created
	}
	for _, v := range st.Services {
		t.Services[v.Name] = slices.Sorted(slices.Values(v.Addrs))
	}
	if s.Tailnets == nil {
		s.Tailnets = map[string]Tailnet{}
	}
	s.Tailnets[name] = t
	return nil
}

// NotReady returns the objects whose condition Ready is not True, sorted.
func (s *Snapshot) NotReady() []string {
	var out []string
	for k, o := range s.Objects {
		if r, ok := o.Conditions["Ready"]; ok && !strings.HasPrefix(r, "True/") {
			out = append(out, k+": "+r)
		}
	}
	slices.Sort(out)
	return out
}
