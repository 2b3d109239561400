// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package authkey

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

var errBoom = errors.New("boom")

// A fakeAPI holds a tailnet's keys in memory.
type fakeAPI struct {
	w      *world
	keys   map[string]*tailscale.Key
	minted int
	gets   int

	lostReply bool // The next key is created, but the response is lost.
	errRevoke error
}

func (f *fakeAPI) AuthKeys(context.Context, tailscale.Staleness) ([]tailscale.Key, error) {
	var out []tailscale.Key
	for _, id := range slices.Sorted(maps.Keys(f.keys)) {
		if k := f.keys[id]; !k.Invalid && f.w.at.Before(k.Expires) {
			out = append(out, *k)
		}
	}
	return out, nil
}

func (f *fakeAPI) AuthKey(_ context.Context, id string) (*tailscale.Key, error) {
	f.gets++
	k, ok := f.keys[id]
	if !ok {
		return nil, &tailscale.Error{Class: tailscale.ClassNotFound}
	}
	out := *k
	out.Invalid = out.Invalid || !f.w.at.Before(out.Expires)
	return &out, nil
}

func (f *fakeAPI) CreateAuthKey(_ context.Context, r tailscale.AuthKeyRequest) (*tailscale.Key, error) {
	f.minted++
	id := "k" + strconv.Itoa(f.minted)
	k := &tailscale.Key{ID: id, KeyType: tailscale.KeyTypeAuth, Description: r.Description, Created: f.w.at, Expires: f.w.at.Add(r.Expiry)}
	k.Capabilities.Devices.Create.Tags = r.Tags
	k.Capabilities.Devices.Create.Reusable = r.Reusable
	f.keys[id] = k
	if f.lostReply {
		f.lostReply = false
		return nil, errBoom
	}
	out := *k
	out.Key = "tskey-auth-" + id
	return &out, nil
}

func (f *fakeAPI) RevokeAuthKey(_ context.Context, id string) error {
	if f.errRevoke != nil {
		return f.errRevoke
	}
	if k := f.keys[id]; k != nil {
		k.Invalid, k.Revoked = true, f.w.at
	}
	return nil
}

// A world is a cluster, a tailnet and an object.
type world struct {
	t    *testing.T
	kube client.Client
	api  *fakeAPI
	mg   *v1alpha1.AuthKey
	at   time.Time
}

func newWorld(t *testing.T, mg *v1alpha1.AuthKey, more ...client.Object) *world {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{t: t, mg: mg, at: testTime}
	w.api = &fakeAPI{w: w, keys: map[string]*tailscale.Key{}}
	w.kube = fake.NewClientBuilder().WithScheme(s).WithObjects(append(more, mg)...).WithStatusSubresource(&v1alpha1.AuthKey{}).Build()
	return w
}

func (w *world) external() *external {
	return &external{api: w.api, clusterID: "cluster", kube: w.kube, record: event.NewNopRecorder(), clock: func() time.Time { return w.at }}
}

// reconcile runs one reconciliation of the managed reconciler, and reports whether there was
// nothing to do.
func (w *world) reconcile() (bool, error) {
	w.t.Helper()
	ctx, e := w.t.Context(), w.external()
	if err := w.kube.Get(ctx, client.ObjectKeyFromObject(w.mg), w.mg); err != nil {
		w.t.Fatalf("cannot get AuthKey: %v", err)
	}
	o, err := e.Observe(ctx, w.mg)
	if err != nil {
		return false, err
	}
	rest := false
	switch {
	case !o.ResourceExists:
		status := w.mg.Status.DeepCopy()
		_, err = e.Create(ctx, w.mg)
		w.mg.Status = *status
		if uerr := w.kube.Update(ctx, w.mg); uerr != nil {
			w.t.Fatalf("cannot update AuthKey: %v", uerr)
		}
	case !o.ResourceUpToDate:
		_, err = e.Update(ctx, w.mg)
	default:
		rest = true
	}
	if serr := w.kube.Status().Update(ctx, w.mg); serr != nil {
		w.t.Fatalf("cannot update status: %v", serr)
	}
	return rest, err
}

func (w *world) settle() {
	w.t.Helper()
	for range 6 {
		rest, err := w.reconcile()
		if err != nil {
			w.t.Fatalf("cannot reconcile: %v", err)
		}
		if rest {
			return
		}
	}
	w.t.Fatal("the object is not up to date after all reconciliations")
}

func (w *world) change(f func(*v1alpha1.AuthKey)) {
	w.t.Helper()
	f(w.mg)
	if err := w.kube.Update(w.t.Context(), w.mg); err != nil {
		w.t.Fatalf("cannot update AuthKey: %v", err)
	}
}

func (w *world) secret() *corev1.Secret {
	w.t.Helper()
	s := &corev1.Secret{}
	if err := w.kube.Get(w.t.Context(), types.NamespacedName{Namespace: "default", Name: "node-key"}, s); err != nil {
		w.t.Fatalf("cannot get Secret: %v", err)
	}
	return s
}

// holds fails the test unless the key with the ID is the only valid one, in the Secret, and
// recorded.
func (w *world) holds(id string) {
	w.t.Helper()
	type seen struct {
		Valid                    []string
		Secret, Name, ID, Status string
	}
	var valid []string
	ks, err := w.api.AuthKeys(w.t.Context(), tailscale.Cached)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, k := range ks {
		valid = append(valid, k.ID)
	}
	got := seen{
		Valid: valid, Secret: string(w.secret().Data[secretKey]), Name: xpmeta.GetExternalName(w.mg), ID: w.mg.Status.AtProvider.ID,
		Status: string(w.mg.GetCondition(xpv2.TypeReady).Status),
	}
	want := seen{Valid: []string{id}, Secret: "tskey-auth-" + id, Name: id, ID: id, Status: "True"}
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Fatalf("-want, +got:\n%s", diff)
	}
}

func TestLifecycle(t *testing.T) {
	w := newWorld(t, authKey())
	w.settle()
	w.holds("k1")
	if !metav1.IsControlledBy(w.secret(), w.mg) {
		t.Error("the Secret is not controlled by the object")
	}

	// Nothing happens until rotation is due.
	w.at = testTime.Add(20*24*time.Hour - time.Second)
	w.settle()
	w.holds("k1")
	w.at = testTime.Add(20 * 24 * time.Hour)
	w.settle()
	w.holds("k2")

	w.at = w.at.Add(time.Hour)
	w.change(func(m *v1alpha1.AuthKey) { m.SetAnnotations(withToken(m, "again")) })
	w.settle()
	w.holds("k3")
	w.settle()
	if w.mg.Status.AtProvider.Reissued != "again" || w.api.minted != 3 {
		t.Errorf("want one key for one token, got %d keys, token %q", w.api.minted, w.mg.Status.AtProvider.Reissued)
	}
	// The controller handles another token later, because it comes too soon.
	w.change(func(m *v1alpha1.AuthKey) { m.SetAnnotations(withToken(m, "and again")) })
	w.settle()
	w.holds("k3")
	w.at = w.at.Add(reissueInterval)
	w.settle()
	w.holds("k4")

	// The key is revoked.
	w.at = w.at.Add(time.Hour)
	if err := w.api.RevokeAuthKey(t.Context(), "k4"); err != nil {
		t.Fatal(err)
	}
	w.settle()
	w.holds("k5")

	// The Secret is deleted.
	w.at = w.at.Add(time.Hour)
	if err := w.kube.Delete(t.Context(), w.secret()); err != nil {
		t.Fatal(err)
	}
	w.settle()
	w.holds("k6")

	w.change(func(m *v1alpha1.AuthKey) { m.Spec.ForProvider.Tags = []v1alpha1.Tag{"tag:k8s", "tag:web"} })
	w.settle()
	w.holds("k7")
	if diff := cmp.Diff([]string{"tag:k8s", "tag:web"}, w.mg.Status.AtProvider.Tags); diff != "" {
		t.Errorf("status.tags: -want, +got:\n%s", diff)
	}

	// A node uses the key.
	w.at = w.at.Add(time.Hour)
	w.api.keys["k7"].Invalid = true
	w.settle()
	if !w.mg.Status.AtProvider.Used || w.mg.GetCondition(xpv2.TypeReady).Status != corev1.ConditionTrue {
		t.Errorf("want Used and Ready, got %+v", w.mg.Status.AtProvider)
	}
	gets := w.api.gets
	w.at = w.at.Add(90 * 24 * time.Hour)
	delete(w.api.keys, "k7")
	w.settle()
	if w.api.minted != 7 || w.api.gets != gets || !w.mg.Status.AtProvider.Used {
		t.Errorf("want a used key to stay used without a request, got %d keys and %d calls", w.api.minted, w.api.gets-gets)
	}
	w.change(func(m *v1alpha1.AuthKey) { m.Spec.ForProvider.RenewWhenUsed = true })
	w.settle()
	w.holds("k8")
}

func withToken(m *v1alpha1.AuthKey, token string) map[string]string {
	a := maps.Clone(m.GetAnnotations())
	if a == nil {
		a = map[string]string{}
	}
	a[AnnotationReissue] = token
	return a
}

func TestLostReply(t *testing.T) {
	w := newWorld(t, authKey())
	w.api.lostReply = true
	if _, err := w.reconcile(); !errors.Is(err, errBoom) {
		t.Fatalf("want the error, got: %v", err)
	}
	w.settle()
	w.holds("k2")
	w.at = w.at.Add(20 * 24 * time.Hour)
	w.api.lostReply = true
	if _, err := w.reconcile(); !errors.Is(err, errBoom) {
		t.Fatalf("want the error, got: %v", err)
	}
	w.settle()
	w.holds("k4")
}

// TestSecretNotWritable uses an object whose connection Secret cannot be written for some time.
func TestSecretNotWritable(t *testing.T) {
	cases := map[string]struct {
		reason string
		// dry means that the dry run fails, before the key is created.
		dry       bool
		errRevoke error
		minted    int
		valid     int
	}{
		"Forbidden": {reason: "A key that cannot be recorded is not created.", dry: true},
		"Fails":     {reason: "A key that could not be recorded is revoked.", minted: 30},
		"FailsAndRevokeFails": {
			reason: "No other key is created until an unrecorded key is revoked.", errRevoke: errBoom, minted: 1, valid: 1,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, authKey())
			whole := w.kube
			w.kube = interceptor.NewClient(whole.(client.WithWatch), interceptor.Funcs{
				Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
					co := &client.CreateOptions{}
					co.ApplyOptions(opts)
					if _, ok := o.(*corev1.Secret); ok && (tc.dry || len(co.DryRun) == 0) {
						return errBoom
					}
					return c.Create(ctx, o, opts...)
				},
			})
			w.api.errRevoke = tc.errRevoke
			for range 30 {
				if _, err := w.reconcile(); !errors.Is(err, errBoom) {
					t.Fatalf("\n%s\nwant the error, got: %v", tc.reason, err)
				}
			}
			valid, err := w.api.AuthKeys(t.Context(), tailscale.Cached)
			if err != nil || w.api.minted != tc.minted || len(valid) != tc.valid {
				t.Errorf("\n%s\nwant %d keys created and %d valid, got %d and %d, %v", tc.reason, tc.minted, tc.valid, w.api.minted, len(valid), err)
			}
			w.kube, w.api.errRevoke = whole, nil
			w.settle()
			w.holds("k" + strconv.Itoa(tc.minted+1))
		})
	}
}

func TestRevokeFails(t *testing.T) {
	w := newWorld(t, authKey())
	w.settle()
	w.at = w.at.Add(20 * 24 * time.Hour)
	w.api.errRevoke = errBoom
	for range 3 {
		if _, err := w.reconcile(); !errors.Is(err, errBoom) {
			t.Fatalf("want the error, got: %v", err)
		}
	}
	w.api.errRevoke = nil
	w.settle()
	w.holds("k2")
}

func TestDelete(t *testing.T) {
	cases := map[string]struct {
		reason string
		setup  func(w *world)
	}{
		"OneKey":    {reason: "The key is revoked.", setup: func(*world) {}},
		"OrphanKey": {reason: "A key that was never recorded is revoked.", setup: func(w *world) { w.api.keys["k8"] = key("k8") }},
		"KeyUsed":   {reason: "A used key needs no revocation.", setup: func(w *world) { w.api.keys["k1"].Invalid = true }},
		"KeyGone":   {reason: "A deleted key needs no revocation.", setup: func(w *world) { delete(w.api.keys, "k1") }},
		"SecretGone": {reason: "The key is revoked without its Secret.", setup: func(w *world) {
			if err := w.kube.Delete(w.t.Context(), w.secret()); err != nil {
				w.t.Fatal(err)
			}
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, authKey())
			w.api.keys["k0"] = key("k0", func(k *tailscale.Key) { k.Description = "of somebody else" })
			w.settle()
			tc.setup(w)
			w.mg.SetDeletionTimestamp(&metav1.Time{Time: testTime})
			e := w.external()
			for range 3 {
				o, err := e.Observe(t.Context(), w.mg)
				if err != nil {
					t.Fatalf("\n%s\nObserve(...): %v", tc.reason, err)
				}
				if !o.ResourceExists {
					break
				}
				if _, err := e.Delete(t.Context(), w.mg); err != nil {
					t.Fatalf("\n%s\nDelete(...): %v", tc.reason, err)
				}
			}
			remaining, err := w.api.AuthKeys(t.Context(), tailscale.Cached)
			if err != nil || len(remaining) != 1 || remaining[0].ID != "k0" {
				t.Errorf("\n%s\nwant only the key of another owner to remain, got %v, %v", tc.reason, remaining, err)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	cases := map[string]struct {
		reason string
		mg     *v1alpha1.AuthKey
		more   []client.Object
		keys   []*tailscale.Key
		want   string
	}{
		"ForeignSecret": {
			reason: "A Secret of another owner is not overwritten.",
			mg:     authKey(),
			more:   []client.Object{&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "node-key"}}},
			want:   "not this AuthKey's",
		},
		"NoSecretWanted": {
			reason: "A key without a connection Secret is not created.",
			mg:     authKey(func(m *v1alpha1.AuthKey) { m.SetWriteConnectionSecretToReference(nil) }),
			want:   "writeConnectionSecretToRef is not set",
		},
		"NoAuthKey": {
			reason: "An OAuth client is not adopted as an auth key.",
			mg:     authKey(func(m *v1alpha1.AuthKey) { xpmeta.SetExternalName(m, "kclient") }),
			keys:   []*tailscale.Key{key("kclient", func(k *tailscale.Key) { k.KeyType, k.Invalid = "client", true })},
			want:   "not an auth key",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.mg, tc.more...)
			for _, k := range tc.keys {
				w.api.keys[k.ID] = k
			}
			if _, err := w.reconcile(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("\n%s\nwant an error with %q, got: %v", tc.reason, tc.want, err)
			}
			if w.api.minted != 0 {
				t.Errorf("\n%s\n%d keys were created", tc.reason, w.api.minted)
			}
		})
	}
}

func TestObserveOnly(t *testing.T) {
	w := newWorld(t, authKey(func(m *v1alpha1.AuthKey) {
		m.SetWriteConnectionSecretToReference(nil)
		m.SetManagementPolicies(xpv2.ManagementPolicies{xpv2.ManagementActionObserve})
		xpmeta.SetExternalName(m, "k9")
	}))
	w.api.keys["k9"] = key("k9", func(k *tailscale.Key) { k.Description = "of somebody else" })
	o, err := w.external().Observe(t.Context(), w.mg)
	if err != nil || !o.ResourceExists || w.mg.GetCondition(xpv2.TypeReady).Status != corev1.ConditionTrue {
		t.Errorf("Observe(...): want an existing key to be Ready, got %+v, %v", o, err)
	}
	delete(w.api.keys, "k9")
	if o, err := w.external().Observe(t.Context(), w.mg); err != nil || o.ResourceExists {
		t.Errorf("Observe(...): want no key, got %+v, %v", o, err)
	}
}
