// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package device

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

var (
	testTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	errBoom  = errors.New("boom")
)

// A fakeAPI is a tailnet in memory. It records writes.
type fakeAPI struct {
	devices    map[string]*tailscale.Device
	attributes map[string]any
	writes     []string
	reads      int // Reads of attributes.
	errTags    error
}

func (f *fakeAPI) Devices(context.Context, tailscale.Staleness) ([]tailscale.Device, error) {
	var out []tailscale.Device
	for _, id := range slices.Sorted(maps.Keys(f.devices)) {
		out = append(out, *f.devices[id])
	}
	return out, nil
}

func (f *fakeAPI) Device(_ context.Context, id string) (*tailscale.Device, error) {
	d, ok := f.devices[id]
	if !ok {
		return nil, &tailscale.Error{Class: tailscale.ClassNotFound}
	}
	return d, nil
}

func (f *fakeAPI) DeleteDevice(_ context.Context, id string) error {
	f.writes = append(f.writes, "delete")
	delete(f.devices, id)
	return nil
}

func (f *fakeAPI) SetDeviceTags(_ context.Context, id string, tags []string) error {
	if f.errTags != nil {
		return f.errTags
	}
	f.writes = append(f.writes, "tags")
	f.devices[id].Tags = tags
	return nil
}

func (f *fakeAPI) SetDeviceAuthorized(_ context.Context, id string, authorized bool) error {
	f.writes = append(f.writes, "authorized")
	f.devices[id].Authorized = authorized
	return nil
}

func (f *fakeAPI) SetDeviceKeyExpiryDisabled(_ context.Context, id string, disabled bool) error {
	f.writes = append(f.writes, "key")
	f.devices[id].KeyExpiryDisabled = disabled
	return nil
}

func (f *fakeAPI) SetDeviceName(_ context.Context, id, label string) error {
	f.writes = append(f.writes, "name")
	f.devices[id].Name = label + ".tail1234.ts.net"
	return nil
}

func (f *fakeAPI) EditDeviceRoutes(_ context.Context, id string, approve, withdraw []string) error {
	f.writes = append(f.writes, "routes")
	f.devices[id].EnabledRoutes = tailscale.EditRoutes(f.devices[id].EnabledRoutes, approve, withdraw)
	return nil
}

func (f *fakeAPI) DeviceAttributes(context.Context, string) (map[string]any, error) {
	f.reads++
	return maps.Clone(f.attributes), nil
}

func (f *fakeAPI) SetDeviceAttribute(_ context.Context, _, key string, value any) error {
	f.writes = append(f.writes, key)
	if n, ok := value.(int64); ok {
		value = float64(n) // As JSON decodes it.
	}
	f.attributes[key] = value
	return nil
}

func (f *fakeAPI) DeleteDeviceAttribute(_ context.Context, _, key string) error {
	f.writes = append(f.writes, "no "+key)
	delete(f.attributes, key)
	return nil
}

// theirs returns a device with the settings of its owner.
func theirs(change ...func(*tailscale.Device)) *tailscale.Device {
	d := &tailscale.Device{
		NodeID: "n1CNTRL", Name: "printer.tail1234.ts.net", Hostname: "printer", User: "ann@example.com", OS: "linux",
		Addresses: []string{"100.64.0.1", "fd7a::1"}, ConnectedToControl: true, Authorized: true, ClientVersion: "1.102.5",
		Expires: tsclient.Time{Time: testTime.Add(time.Hour)}, AdvertisedRoutes: []string{"10.1.0.0/16", "10.0.0.0/16"}, EnabledRoutes: []string{"10.0.0.0/16"},
	}
	for _, f := range change {
		f(d)
	}
	return d
}

func object(change ...func(*v1alpha1.Device)) *v1alpha1.Device {
	m := &v1alpha1.Device{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "printer", UID: "1", ResourceVersion: "1", CreationTimestamp: metav1.NewTime(testTime)},
		Spec:       v1alpha1.DeviceSpec{ForProvider: v1alpha1.DeviceParameters{NodeID: "n1CNTRL"}},
	}
	for _, f := range change {
		f(m)
	}
	return m
}

func newExternal(t *testing.T, f *fakeAPI, others ...client.Object) *external {
	t.Helper()
	s := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(s); err != nil {
		t.Fatal(err)
	}
	kube := fake.NewClientBuilder().WithScheme(s).WithObjects(others...).WithIndex(&v1alpha1.Device{}, indexNodeID, byNodeID).Build()
	return &external{api: f, kube: kube, attributes: newAttributes(), clock: func() time.Time { return testTime }}
}

func newAPI(ds ...*tailscale.Device) *fakeAPI {
	f := &fakeAPI{devices: map[string]*tailscale.Device{}, attributes: map[string]any{"node:os": "linux", "custom:theirs": true}}
	for _, d := range ds {
		f.devices[d.NodeID] = d
	}
	return f
}

func everything(m *v1alpha1.Device) {
	m.Spec.ForProvider = v1alpha1.DeviceParameters{
		NodeID: "n1CNTRL", Name: ptr.To("scanner"), Tags: []v1alpha1.Tag{"tag:web", "tag:k8s"}, Authorized: ptr.To(false),
		KeyExpiryDisabled: ptr.To(true), Routes: &[]string{"10.1.0.0/16", "10.0.0.0/16"},
		PostureAttributes: []v1alpha1.PostureAttribute{
			{Key: "custom:tier", String: ptr.To("gold")}, {Key: "custom:level", Number: ptr.To[int64](3)}, {Key: "custom:ok", Bool: ptr.To(true)},
		},
	}
}

func TestReconcile(t *testing.T) {
	rival := func(change ...func(*v1alpha1.Device)) *v1alpha1.Device {
		return object(append([]func(*v1alpha1.Device){func(m *v1alpha1.Device) {
			m.Namespace, m.Name, m.UID, m.CreationTimestamp = "other", "rival", "0", metav1.NewTime(testTime.Add(-time.Hour))
		}}, change...)...)
	}
	tags := func(m *v1alpha1.Device) { m.Spec.ForProvider.Tags = []v1alpha1.Tag{"tag:k8s"} }
	cases := map[string]struct {
		reason string
		mg     *v1alpha1.Device
		device *tailscale.Device
		others []client.Object
		writes []string
		ready  xpv2.Condition
	}{
		"NothingWanted": {
			reason: "Fields that are not set are left unchanged.",
			mg:     object(), device: theirs(), ready: xpv2.Available(),
		},
		"Everything": {
			reason: "Fields that are set are corrected.",
			mg:     object(everything), device: theirs(), ready: xpv2.Available(),
			writes: []string{"authorized", "tags", "key", "name", "routes", "custom:level", "custom:ok", "custom:tier"},
		},
		"NoRoutes": {
			reason: "An empty list withdraws no route that somebody else has approved.",
			mg:     object(func(m *v1alpha1.Device) { m.Spec.ForProvider.Routes = &[]string{} }), device: theirs(), ready: xpv2.Available(),
		},
		"ExitNodeStays": {
			reason: "An exit node that an admin has approved stays one, and host bits and spelling are no drift.",
			mg:     object(func(m *v1alpha1.Device) { m.Spec.ForProvider.Routes = &[]string{"10.0.3.4/16", "FD00:0::/64"} }),
			device: theirs(func(d *tailscale.Device) { d.EnabledRoutes = []string{"0.0.0.0/0", "10.0.0.0/16", "::/0", "fd00::/64"} }),
			ready:  xpv2.Available(),
		},
		"OrderMeansNothing": {
			reason: "The order of tags and routes is no drift.",
			mg: object(func(m *v1alpha1.Device) {
				m.Spec.ForProvider.Tags = []v1alpha1.Tag{"tag:b", "tag:a"}
				m.Spec.ForProvider.Routes = &[]string{"10.1.0.0/16", "10.0.0.0/16"}
			}),
			device: theirs(func(d *tailscale.Device) {
				d.Tags, d.EnabledRoutes = []string{"tag:a", "tag:b"}, []string{"10.0.0.0/16", "10.1.0.0/16"}
			}),
			ready: xpv2.Available(),
		},
		"LockedOut": {
			reason: "A device that Tailnet Lock does not trust is not ready, with a message.",
			mg:     object(), device: theirs(func(d *tailscale.Device) { d.TailnetLockError, d.NodeKey = "not signed", "nodekey:abc" }),
			ready: func() xpv2.Condition {
				c := xpv2.Unavailable().WithMessage("Tailnet Lock does not trust the device: not signed; on a trusted signing device run: tailscale lock sign nodekey:abc")
				c.Reason = meta.ReasonTailnetLocked
				return c
			}(),
		},
		"NoDevice": {
			reason: "The controller waits for a missing device, and never creates it.",
			mg:     object(tags),
			ready:  xpv2.Unavailable().WithMessage("The tailnet has no device with node ID n1CNTRL; it is looked for again"),
		},
		"NoNodeID": {
			reason: "Without a node ID the condition says what to do.",
			mg:     object(func(m *v1alpha1.Device) { m.Spec.ForProvider.NodeID = "" }), device: theirs(),
			ready: xpv2.Unavailable().WithMessage("Set spec.forProvider.nodeID, or the annotation crossplane.io/external-name, to the device's node ID"),
		},
		"ByExternalName": {
			reason: "The external name can replace the field.",
			mg: object(tags, func(m *v1alpha1.Device) {
				m.Spec.ForProvider.NodeID = ""
				xpmeta.SetExternalName(m, "n1CNTRL")
			}),
			device: theirs(), ready: xpv2.Available(), writes: []string{"tags"},
		},
		"KeyExpired": {
			reason: "A device whose key has expired is not ready.",
			mg:     object(), device: theirs(func(d *tailscale.Device) { d.Expires.Time = testTime.Add(-time.Second) }),
			ready: xpv2.Unavailable().WithMessage("The device's node key has expired; log the device in again"),
		},
		"ObserveOnly": {
			reason: "An object that only observes changes nothing, also if another object manages the device.",
			mg: object(everything, func(m *v1alpha1.Device) {
				m.SetManagementPolicies(xpv2.ManagementPolicies{xpv2.ManagementActionObserve})
			}),
			device: theirs(), others: []client.Object{rival()}, ready: xpv2.Available(),
		},
		"OlderClaim": {
			reason: "Of two objects for one device the younger changes nothing and reports the conflict.",
			mg:     object(tags), device: theirs(), others: []client.Object{rival()}, ready: conflict("other/rival"),
		},
		"YoungerClaim": {
			reason: "The older object continues to manage the device.",
			mg:     object(tags), device: theirs(), ready: xpv2.Available(), writes: []string{"tags"},
			others: []client.Object{rival(func(m *v1alpha1.Device) { m.CreationTimestamp = metav1.NewTime(testTime.Add(time.Hour)) })},
		},
		"SameAge": {
			reason: "Objects of the same second are distinguished by their UIDs.",
			mg:     object(tags), device: theirs(), ready: conflict("other/rival"),
			others: []client.Object{rival(func(m *v1alpha1.Device) { m.CreationTimestamp = metav1.NewTime(testTime) })},
		},
		"ClaimOfAnotherDevice": {
			reason: "An object for another device causes no conflict.",
			mg:     object(tags), device: theirs(), ready: xpv2.Available(), writes: []string{"tags"},
			others: []client.Object{rival(func(m *v1alpha1.Device) { m.Spec.ForProvider.NodeID = "n2CNTRL" })},
		},
		"ClaimObserves": {
			reason: "An object that only observes causes no conflict.",
			mg:     object(tags), device: theirs(), ready: xpv2.Available(), writes: []string{"tags"},
			others: []client.Object{rival(func(m *v1alpha1.Device) {
				m.SetManagementPolicies(xpv2.ManagementPolicies{xpv2.ManagementActionObserve})
			})},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newAPI()
			if tc.device != nil {
				f.devices[tc.device.NodeID] = tc.device
			}
			for i := range 2 {
				e := newExternal(t, f, append(tc.others, tc.mg.DeepCopy())...)
				o, err := e.Observe(t.Context(), tc.mg)
				if err != nil || !o.ResourceExists {
					t.Fatalf("\n%s\nObserve(...): %+v, %v", tc.reason, o, err)
				}
				if i == 1 && !o.ResourceUpToDate {
					t.Errorf("\n%s\nObserve(...): want no changes after an update, got %q", tc.reason, o.Diff)
				}
				if _, err := e.Update(t.Context(), tc.mg); err != nil {
					t.Fatalf("\n%s\nUpdate(...): %v", tc.reason, err)
				}
			}
			if diff := cmp.Diff(tc.writes, f.writes); diff != "" {
				t.Errorf("\n%s\nwrites: -want, +got:\n%s", tc.reason, diff)
			}
			got := tc.mg.GetCondition(xpv2.TypeReady)
			if !got.Equal(tc.ready) {
				t.Errorf("\n%s\nReady: want %v, got %v", tc.reason, tc.ready, got)
			}
		})
	}
}

func TestStatus(t *testing.T) {
	seen := testTime.Add(-time.Hour)
	mg := object()
	e := newExternal(t, newAPI(theirs(func(d *tailscale.Device) {
		d.ConnectedToControl, d.LastSeen, d.UpdateAvailable = false, &tsclient.Time{Time: seen}, true
	})))
	if _, err := e.Observe(t.Context(), mg); err != nil {
		t.Fatal(err)
	}
	want := v1alpha1.DeviceObservation{
		NodeID: "n1CNTRL", Name: "printer.tail1234.ts.net", Hostname: "printer", User: "ann@example.com", OS: "linux",
		Addresses: []string{"100.64.0.1", "fd7a::1"}, Online: ptr.To(false), LastSeen: &metav1.Time{Time: seen}, Authorized: ptr.To(true),
		KeyExpiryDisabled: ptr.To(false), Expires: &metav1.Time{Time: testTime.Add(time.Hour)}, ClientVersion: "1.102.5", UpdateAvailable: ptr.To(true),
		AdvertisedRoutes: []string{"10.0.0.0/16", "10.1.0.0/16"}, EnabledRoutes: []string{"10.0.0.0/16"},
	}
	if diff := cmp.Diff(want, mg.Status.AtProvider); diff != "" {
		t.Errorf("status: -want, +got:\n%s", diff)
	}
}

func TestAttributes(t *testing.T) {
	f := newAPI(theirs())
	shared, at := newAttributes(), testTime
	mg := object(everything)
	reconcile := func() {
		t.Helper()
		e := newExternal(t, f, mg.DeepCopy())
		e.attributes, e.clock = shared, func() time.Time { return at }
		if _, err := e.Observe(t.Context(), mg); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Update(t.Context(), mg); err != nil {
			t.Fatal(err)
		}
	}
	reconcile()
	reconcile()
	if f.reads != 2 {
		t.Errorf("want a read before and after the write, got %d", f.reads)
	}
	for range 10 {
		reconcile()
	}
	if f.reads != 2 {
		t.Errorf("want no read without changes, got %d", f.reads-2)
	}
	// Another client changes an attribute.
	f.attributes["custom:level"] = float64(4)
	at = at.Add(attributesMaxAge + time.Second)
	reconcile()
	reconcile()
	if f.attributes["custom:level"] != float64(3) {
		t.Errorf("want drift to be corrected, got %v", f.attributes)
	}
	// The spec has one attribute less.
	mg.Spec.ForProvider.PostureAttributes = mg.Spec.ForProvider.PostureAttributes[1:]
	reconcile()
	reconcile()
	want := map[string]any{"node:os": "linux", "custom:theirs": true, "custom:level": float64(3), "custom:ok": true}
	if diff := cmp.Diff(want, f.attributes); diff != "" {
		t.Errorf("want unlisted attributes to be removed, and others to stay: -want, +got:\n%s", diff)
	}
}

// TestAttributeIsOwnedBeforeItIsSeen verifies that an attribute is removed that was set but never
// observed.
func TestAttributeIsOwnedBeforeItIsSeen(t *testing.T) {
	f := newAPI(theirs())
	mg := object(everything)
	reconcile := func() {
		t.Helper()
		e := newExternal(t, f, mg.DeepCopy())
		if _, err := e.Observe(t.Context(), mg); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Update(t.Context(), mg); err != nil {
			t.Fatal(err)
		}
	}
	reconcile()
	// The provider stops before it has written the status.
	mg.Status = v1alpha1.DeviceStatus{}
	mg.Spec.ForProvider.PostureAttributes = nil
	reconcile()
	reconcile()
	want := map[string]any{"node:os": "linux", "custom:theirs": true}
	if diff := cmp.Diff(want, f.attributes); diff != "" {
		t.Errorf("want the attribute to be removed: -want, +got:\n%s", diff)
	}
	if got := mg.GetAnnotations()[annotationAttributes]; got != "" {
		t.Errorf("want no owned attributes at the end, got %q", got)
	}
}

func TestAttributesAreReadSeldom(t *testing.T) {
	a := newAttributes()
	n := 0
	for i := range 1000 {
		if a.due(string(rune('a'+i%26))+time.Duration(i).String(), testTime) {
			n++
		}
	}
	if n != attributesBurst {
		t.Errorf("1000 devices at once: want %d reads, got %d", attributesBurst, n)
	}
}

func TestUpdateGoesOn(t *testing.T) {
	f := newAPI(theirs())
	f.errTags = errBoom
	mg := object(everything)
	e := newExternal(t, f, mg.DeepCopy())
	if _, err := e.Observe(t.Context(), mg); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Update(t.Context(), mg); !errors.Is(err, errBoom) {
		t.Errorf("Update(...): want the error, got: %v", err)
	}
	if !slices.Contains(f.writes, "routes") {
		t.Errorf("Update(...): a refused change must not prevent others: %v", f.writes)
	}
}

func TestDelete(t *testing.T) {
	deleting := func(m *v1alpha1.Device) {
		m.DeletionTimestamp = &metav1.Time{Time: testTime}
		m.Spec.ForProvider.DeletionPolicy = v1alpha1.DeviceDelete
		m.Status.AtProvider.NodeID = "n1CNTRL"
	}
	cases := map[string]struct {
		reason string
		mg     *v1alpha1.Device
		others []client.Object
		want   []string
	}{
		"Orphan": {
			reason: "The product does not run the device, so it stays by default.",
			mg:     object(deleting, func(m *v1alpha1.Device) { m.Spec.ForProvider.DeletionPolicy = "" }),
		},
		"Delete": {
			reason: "The deletion policy Delete removes the device.",
			mg:     object(deleting), want: []string{"delete"},
		},
		"NotInCharge": {
			reason: "An object that did not manage the device does not delete it.",
			mg:     object(deleting),
			others: []client.Object{object(func(m *v1alpha1.Device) {
				m.Name, m.UID, m.CreationTimestamp = "older", types.UID("0"), metav1.NewTime(testTime.Add(-time.Hour))
			})},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newAPI(theirs())
			e := newExternal(t, f, tc.others...)
			for range 3 {
				o, err := e.Observe(t.Context(), tc.mg)
				if err != nil {
					t.Fatalf("\n%s\nObserve(...): %v", tc.reason, err)
				}
				if !o.ResourceExists {
					break
				}
				if _, err := e.Delete(t.Context(), tc.mg); err != nil {
					t.Fatalf("\n%s\nDelete(...): %v", tc.reason, err)
				}
			}
			if diff := cmp.Diff(tc.want, f.writes); diff != "" {
				t.Errorf("\n%s\nwrites: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPoll(t *testing.T) {
	mg := object()
	if got := poll(mg, time.Minute); got != pollUnsettled {
		t.Errorf("poll(...) of a device that is not ready: want %s, got %s", pollUnsettled, got)
	}
	mg.SetConditions(xpv2.Condition{Type: xpv2.TypeReady, Status: corev1.ConditionTrue})
	if got := poll(mg, time.Minute); got != time.Minute {
		t.Errorf("poll(...) of a device that is ready: want a minute, got %s", got)
	}
}
