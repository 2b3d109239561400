// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/test/lifecycle"
)

func init() { addCase(deviceCase()) }

// deviceCase creates the device with the object, so that it counts as the object's: deletionPolicy
// Delete deletes it at the end.
func deviceCase() kindCase[*v1alpha1.Device] {
	nodeID := func(mg *v1alpha1.Device) string {
		if id := mg.Spec.ForProvider.NodeID; id != "" {
			return id
		}
		return xpmeta.GetExternalName(mg)
	}
	exitNode := []string{"0.0.0.0/0", "::/0"}
	join := func(e *env, hostname string) string {
		id, err := e.sim.Join(tailnetsim.Puppet{Hostname: hostname, Tags: []string{"tag:k8s"}, Routes: []string{"10.0.0.0/16"}})
		e.must(err)
		// An admin has approved the device as an exit node, which no step changes.
		e.must(e.tailnet.Devices().SetSubnetRoutes(e.Context(), id, exitNode))
		return id
	}
	return kindCase[*v1alpha1.Device]{
		Kind: v1alpha1.DeviceKind,
		New: func(e *env) *v1alpha1.Device {
			return &v1alpha1.Device{Spec: v1alpha1.DeviceSpec{ForProvider: v1alpha1.DeviceParameters{
				NodeID: join(e, "router"), Name: ptr.To("gateway"), Tags: []v1alpha1.Tag{"tag:web"}, Authorized: ptr.To(true),
				KeyExpiryDisabled: ptr.To(true), Routes: &[]string{"10.0.0.0/16"},
				PostureAttributes: []v1alpha1.PostureAttribute{{Key: "custom:tier", Number: ptr.To[int64](1)}, {Key: "custom:site", String: ptr.To("berlin")}},
				DeletionPolicy:    v1alpha1.DeviceDelete,
			}}}
		},
		Others: func(e *env) func() (any, error) {
			id := join(e, "others")
			return func() (any, error) { return e.tailnet.Devices().GetWithAllFields(e.Context(), id) }
		},
		Count: func(e *env) int {
			all, err := e.tailnet.Devices().List(e.Context())
			e.must(err)
			return len(all)
		},
		Check: func(e *env, mg *v1alpha1.Device) error {
			d, err := e.tailnet.Devices().GetWithAllFields(e.Context(), nodeID(mg))
			if err != nil {
				return err
			}
			attrs, err := e.tailnet.Devices().GetPostureAttributes(e.Context(), nodeID(mg))
			if err != nil {
				return err
			}
			type seen struct {
				Name              string
				Tags, Routes      []string
				KeyExpiryDisabled bool
				Attributes        map[string]any
			}
			p := mg.Spec.ForProvider
			if p.Name == nil || p.Routes == nil || p.KeyExpiryDisabled == nil {
				return errors.New("the object names too little to check")
			}
			want := seen{Name: *p.Name, Tags: lifecycle.Texts(p.Tags), Routes: lifecycle.Texts(append(slices.Clone(*p.Routes), exitNode...)), KeyExpiryDisabled: *p.KeyExpiryDisabled, Attributes: map[string]any{}}
			for _, a := range p.PostureAttributes {
				if a.String != nil {
					want.Attributes[a.Key] = *a.String
				}
				if a.Number != nil {
					want.Attributes[a.Key] = float64(*a.Number)
				}
			}
			slices.Sort(d.Tags)
			name, _, _ := strings.Cut(d.Name, ".")
			got := seen{Name: name, Tags: d.Tags, Routes: lifecycle.Texts(d.EnabledRoutes), KeyExpiryDisabled: d.KeyExpiryDisabled, Attributes: map[string]any{}}
			for k, v := range attrs.Attributes {
				if strings.HasPrefix(k, "custom:") {
					got.Attributes[k] = v
				}
			}
			return lifecycle.Differ(want, got)
		},
		Drift: func(e *env, mg *v1alpha1.Device) {
			ds, id := e.tailnet.Devices(), nodeID(mg)
			e.must(ds.SetTags(e.Context(), id, []string{"tag:db"}))
			e.must(ds.SetName(e.Context(), id, "renamed"))
			e.must(ds.SetSubnetRoutes(e.Context(), id, exitNode))
			e.must(ds.SetAuthorized(e.Context(), id, false))
		},
		Update: func(_ *env, mg *v1alpha1.Device) {
			p := &mg.Spec.ForProvider
			p.Name, p.Tags, p.Routes = ptr.To("changed"), []v1alpha1.Tag{"tag:k8s", "tag:web"}, &[]string{}
			p.PostureAttributes = []v1alpha1.PostureAttribute{{Key: "custom:tier", Number: ptr.To[int64](2)}}
		},
		Foreign: func(_ *env, mg *v1alpha1.Device) string {
			// It joined with the object, and is unchanged.
			return mg.Spec.ForProvider.NodeID
		},
		Adopt: func(mg *v1alpha1.Device, id string) {
			mg.Spec.ForProvider.NodeID = ""
			xpmeta.SetExternalName(mg, id)
		},
		Skip: map[step]string{
			stepRefuse:        "every device has another owner, and its node ID cannot be mistaken",
			stepWithoutUpdate: "a device exists already, so all writes are updates",
			stepObserveNone:   "the provider waits for a missing device with any policy",
		},
		Bad: []badInput[*v1alpha1.Device]{
			{Name: "AnotherNode", OnUpdate: true, Break: func(mg *v1alpha1.Device) { mg.Spec.ForProvider.NodeID = "nOtherCNTRL" }, Want: []string{"spec.forProvider.nodeID", "is immutable"}},
			{Name: "BadNodeID", Break: func(mg *v1alpha1.Device) { mg.Spec.ForProvider.NodeID = "a/b" }, Want: []string{"spec.forProvider.nodeID", "should match"}},
			{Name: "NameWithDomain", Break: func(mg *v1alpha1.Device) { mg.Spec.ForProvider.Name = ptr.To("a.ts.net") }, Want: []string{"spec.forProvider.name", "should match"}},
			{Name: "BadTag", Break: func(mg *v1alpha1.Device) { mg.Spec.ForProvider.Tags = []v1alpha1.Tag{"k8s"} }, Want: []string{"spec.forProvider.tags[0]", "must be tag:"}},
			{Name: "BadRoute", Break: func(mg *v1alpha1.Device) { mg.Spec.ForProvider.Routes = &[]string{"10.0.0.0"} }, Want: []string{"spec.forProvider.routes[0]", "CIDR"}},
			{Name: "RouteOfHost", Break: func(mg *v1alpha1.Device) { mg.Spec.ForProvider.Routes = &[]string{"10.0.3.4/16"} }, Want: []string{"spec.forProvider.routes[0]", "no bits of a host"}},
			{Name: "RouteSpelling", Break: func(mg *v1alpha1.Device) { mg.Spec.ForProvider.Routes = &[]string{"FD00:0::/64"} }, Want: []string{"spec.forProvider.routes[0]", "lower-case"}},
			{Name: "NotCustom", Break: func(mg *v1alpha1.Device) { mg.Spec.ForProvider.PostureAttributes[0].Key = "node:os" }, Want: []string{"postureAttributes[0].key", "should match"}},
			{Name: "TwoValues", Break: func(mg *v1alpha1.Device) { mg.Spec.ForProvider.PostureAttributes[0].Bool = ptr.To(true) }, Want: []string{"postureAttributes[0]", "exactly one"}},
			{Name: "BadDeletionPolicy", Break: func(mg *v1alpha1.Device) { mg.Spec.ForProvider.DeletionPolicy = "Forget" }, Want: []string{"spec.forProvider.deletionPolicy", "Orphan"}},
		},
	}
}
