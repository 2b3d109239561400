// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// fakeAPI is a tailnet in memory.
type fakeAPI struct {
	keys    map[string]tailscale.Key
	devices map[string]tailscale.Device
	minted  int
	tags    []string
}

func newAPI() *fakeAPI {
	return &fakeAPI{keys: map[string]tailscale.Key{}, devices: map[string]tailscale.Device{}}
}

// A fakeDevices has the calls of devices, and a fakeKeys those of keys.
type (
	fakeDevices struct{ *fakeAPI }
	fakeKeys    struct{ *fakeAPI }
)

// areas returns the tailnet's API.
func (f *fakeAPI) areas() *api {
	return &api{devices: fakeDevices{f}, keys: fakeKeys{f}, tailnet: f}
}

func (f *fakeAPI) Domain(context.Context) (string, error) {
	for _, id := range slices.Sorted(maps.Keys(f.devices)) {
		d := f.devices[id]
		return tailnetOf(&d), nil
	}
	return "", nil
}

func (f fakeDevices) Devices(context.Context, tailscale.Staleness) ([]tailscale.Device, error) {
	return slices.Collect(maps.Values(f.devices)), nil
}

func (f fakeDevices) Device(_ context.Context, id string) (*tailscale.Device, error) {
	d, ok := f.devices[id]
	if !ok {
		return nil, &tailscale.Error{Class: tailscale.ClassNotFound}
	}
	return &d, nil
}

func (f fakeDevices) DeleteDevice(_ context.Context, id string) error {
	delete(f.devices, id)
	return nil
}

func (f fakeDevices) SetDeviceTags(_ context.Context, _ string, tags []string) error {
	f.tags = tags
	return nil
}

func (f fakeKeys) CreateAuthKey(_ context.Context, r tailscale.AuthKeyRequest) (*tailscale.Key, error) {
	f.minted++
	id := "k" + strconv.Itoa(f.minted)
	k := tailscale.Key{ID: id, KeyType: tailscale.KeyTypeAuth, Description: r.Description, Tags: r.Tags, Created: testTime}
	f.keys[id] = k
	k.Key = "tskey-auth-" + id
	return &k, nil
}

func (f fakeKeys) AuthKey(_ context.Context, id string) (*tailscale.Key, error) {
	k, ok := f.keys[id]
	if !ok {
		return nil, &tailscale.Error{Class: tailscale.ClassNotFound}
	}
	return &k, nil
}

func (f fakeKeys) KeysByDescription(_ context.Context, d string) ([]tailscale.Key, error) {
	var out []tailscale.Key
	for _, k := range f.keys {
		if k.Description == d && !k.Invalid && tailscale.IsAuthKey(k) {
			out = append(out, k)
		}
	}
	return out, nil
}

func (f fakeKeys) RevokeAuthKey(_ context.Context, id string) error {
	delete(f.keys, id)
	return nil
}

// use logs a device in with a key, as a pod does.
func (f *fakeAPI) use(key, nodeID string, created time.Time) {
	k := f.keys[key]
	k.Invalid = true
	f.keys[key] = k
	f.devices[nodeID] = tailscale.Device{
		NodeID: nodeID, Name: "default-edge-ingress-0.tail1234.ts.net", Hostname: "default-edge-ingress-0",
		Tags: []string{"tag:k8s"}, Authorized: true, ConnectedToControl: true, Created: tsclient.Time{Time: created},
	}
}

// offline disconnects a device, as the end of its pod does.
func (f *fakeAPI) offline(nodeID string) {
	d := f.devices[nodeID]
	d.ConnectedToControl = false
	f.devices[nodeID] = d
}

// A world has a cluster, a tailnet and a machine.
type world struct {
	t    *testing.T
	kube client.WithWatch
	api  *fakeAPI
	mg   *v1alpha1.Machine
	at   time.Time

	// deleted is the time when the machine was deleted. Zero means now.
	deleted time.Time
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	mg := machine()
	kube := fake.NewClientBuilder().WithScheme(s).WithObjects(append(objects, mg.DeepCopy())...).Build()
	return &world{t: t, kube: kube, api: newAPI(), mg: mg, at: testTime}
}

func (w *world) external() *external {
	w.t.Helper()
	return connectTo(w.t, w.kube, w.api.areas(), w.mg, w.at)
}

// connectTo returns the client of a Machine at a time.
func connectTo(t *testing.T, kube client.Client, a *api, mg *v1alpha1.Machine, at time.Time) *external {
	t.Helper()
	c := &connector{
		kube: kube,
		connect: func(context.Context, resource.ModernManaged) (connection, error) {
			return connection{api: a, clusterID: "cluster"}, nil
		},
		record: event.NewNopRecorder(),
		clock:  func() time.Time { return at },
	}
	e, err := c.Connect(t.Context(), mg)
	if err != nil {
		t.Fatalf("Connect(...): %v", err)
	}
	return e.(*external) // Connect returns nothing else.
}

// reconcile does what the managed reconciler does, and reports whether the machine was up to date.
func (w *world) reconcile() bool {
	w.t.Helper()
	e := w.external()
	o, err := e.Observe(w.t.Context(), w.mg)
	if err != nil {
		w.t.Fatalf("Observe(...): %v", err)
	}
	switch {
	case deleting(w.mg):
		if !o.ResourceExists {
			return true
		}
		_, err = e.Delete(w.t.Context(), w.mg)
	case !o.ResourceExists:
		_, err = e.Create(w.t.Context(), w.mg)
	case !o.ResourceUpToDate:
		_, err = e.Update(w.t.Context(), w.mg)
	default:
		return true
	}
	if err != nil {
		w.t.Fatalf("cannot reconcile: %v", err)
	}
	return false
}

func (w *world) settle() {
	w.t.Helper()
	for range 5 {
		if w.reconcile() {
			return
		}
	}
	w.t.Fatal("the machine does not settle")
}

func (w *world) secret(name string) *corev1.Secret {
	w.t.Helper()
	s := &corev1.Secret{}
	if err := w.kube.Get(w.t.Context(), types.NamespacedName{Namespace: "default", Name: name}, s); err != nil {
		w.t.Fatalf("cannot get Secret: %v", err)
	}
	return s
}

func (w *world) authKey() string {
	w.t.Helper()
	return authKeyOf(w.secret("edge-ingress-0-config").Data[meta.ConfigKey])
}

// record returns the machine's record.
func (w *world) record() record {
	w.t.Helper()
	r, err := recordOf(w.mg)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

// unrecord removes the machine's record, as if an earlier version had managed the machine.
func (w *world) unrecord() {
	w.t.Helper()
	stored := &v1alpha1.Machine{}
	if err := w.kube.Get(w.t.Context(), client.ObjectKeyFromObject(w.mg), stored); err != nil {
		w.t.Fatalf("cannot get Machine: %v", err)
	}
	for _, m := range []*v1alpha1.Machine{stored, w.mg} {
		delete(m.Annotations, annotationRecord)
		delete(m.Annotations, annotationTailnet)
	}
	if err := w.kube.Update(w.t.Context(), stored); err != nil {
		w.t.Fatalf("cannot update Machine: %v", err)
	}
	w.mg.SetResourceVersion(stored.GetResourceVersion())
}

// write changes the state Secret as a pod does.
func (w *world) write(data map[string]string) {
	w.t.Helper()
	s := w.secret("edge-ingress-0")
	s.Data = map[string][]byte{}
	for k, v := range data {
		s.Data[k] = []byte(v)
	}
	if err := w.kube.Update(w.t.Context(), s); err != nil {
		w.t.Fatalf("cannot update state Secret: %v", err)
	}
}

// empty fails the test if anything of the machine is left.
func (w *world) empty() {
	w.t.Helper()
	for id, k := range w.api.keys {
		if !k.Invalid {
			w.t.Errorf("key %s is left", id)
		}
	}
	if len(w.api.devices) != 0 {
		w.t.Errorf("devices are left: %v", slices.Collect(maps.Keys(w.api.devices)))
	}
	l := &corev1.SecretList{}
	if err := w.kube.List(w.t.Context(), l); err != nil || len(l.Items) != 0 {
		w.t.Errorf("Secrets are left: %d, %v", len(l.Items), err)
	}
}

func (w *world) ready() xpv2.Condition { return w.mg.GetCondition(xpv2.TypeReady) }
