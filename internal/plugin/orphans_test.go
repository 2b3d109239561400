// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	fakediscovery "k8s.io/client-go/discovery/fake"
	clienttesting "k8s.io/client-go/testing"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"tailscale.com/types/key"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/secrets"
	"github.com/tailscale-gateway/tailscale-gateway/internal/marks"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/orphans"
	"github.com/tailscale-gateway/tailscale-gateway/internal/policyfile"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// hostile is a text that a terminal would obey.
const hostile = "\x1b[2J\u202egone"

// A world is a tailnet, a cluster and a clock that both share.
type world struct {
	t           *testing.T
	sim         *simtest.Running
	url         string
	api         *tailscale.Client
	kube        client.Client
	clock       *clocktesting.FakePassiveClock
	uninstalled bool // The kinds of the provider do not exist any more.
	deny        string
	powerless   bool // The caller may create nothing.
	person      person
	// starting is called while a command waits.
	starting func()
	input    string // Standard input.
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{t: t, sim: simtest.StartAPI(t), clock: clocktesting.NewFakePassiveClock(time.Now())}
	// The API's clock is that of the world, so that no test waits.
	front := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Date", w.clock.Now().UTC().Format(http.TimeFormat))
		w.sim.ServeHTTP(rw, r)
	}))
	t.Cleanup(front.Close)
	w.url = front.URL
	api, err := newPool(w.clock).Client("test", tailscale.Config{URL: w.url, Tailnet: "-", ClientID: simtest.ClientID, ClientSecret: simtest.ClientSecret})
	if err != nil {
		t.Fatal(err)
	}
	w.api = api
	s, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []schema.GroupVersionKind{gatewayKind, routeKind, crdKind} {
		s.AddKnownTypeWithName(k, &metav1.PartialObjectMetadata{})
		s.AddKnownTypeWithName(listKind(k), &metav1.PartialObjectMetadataList{})
	}
	objects = append(objects,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: kubeSystem, UID: "me"}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "xp", Name: "oauth"}, Data: map[string][]byte{
			meta.SecretKeyClientID: []byte(simtest.ClientID), meta.SecretKeyClientSecret: []byte(simtest.ClientSecret),
		}},
		&v1alpha1.ClusterProviderConfig{ObjectMeta: metav1.ObjectMeta{Name: "main"}, Spec: v1alpha1.ProviderConfigSpec{
			ClusterID: "me", APIURL: w.url, Tailnet: "-",
			Credentials: v1alpha1.Credentials{OAuthSecretRef: &xpv2.SecretReference{Namespace: "xp", Name: "oauth"}},
		}})
	w.kube = interceptor.NewClient(fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			gvk, err := c.GroupVersionKindFor(o)
			if err != nil {
				return err
			}
			if w.uninstalled && (gvk.Group == v1alpha1.Group || gvk.Group == gatewayKind.Group) {
				return &apimeta.NoKindMatchError{GroupKind: gvk.GroupKind()}
			}
			return c.Get(ctx, k, o, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if review, ok := o.(*authv1.SelfSubjectAccessReview); ok {
				review.Status.Allowed = !w.powerless
				return nil
			}
			return c.Create(ctx, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, o ...client.ListOption) error {
			gvk, err := c.GroupVersionKindFor(l)
			if err != nil {
				return err
			}
			if w.deny != "" && strings.HasPrefix(gvk.Kind, w.deny) {
				return kerrors.NewForbidden(schema.GroupResource{Resource: gvk.Kind}, "", nil)
			}
			if w.uninstalled && (gvk.Group == v1alpha1.Group || gvk.Group == gatewayKind.Group) {
				return &apimeta.NoKindMatchError{GroupKind: gvk.GroupKind()}
			}
			return c.List(ctx, l, o...)
		},
	})
	return w
}

// run runs the command, and returns its exit code and its outputs.
func (w *world) run(args ...string) (int, string, string) {
	w.t.Helper()
	out, errs := &bytes.Buffer{}, &bytes.Buffer{}
	s := &session{ctx: w.t.Context(), input: strings.NewReader(w.input), out: out, errs: errs, time: w.clock, kube: func() (client.Client, error) { return w.kube, nil }}
	s.server = func() (server, error) {
		return &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{}, FakedServerVersion: &version.Info{GitVersion: "v1.35.4"}}, nil
	}
	s.wait, s.person = w.wait, w.person
	code := s.run(&cli{}, args)
	return code, out.String(), errs.String()
}

// wait moves the clock.
func (w *world) wait(_ context.Context, d time.Duration) error {
	w.clock.SetTime(w.clock.Now().Add(d))
	if w.starting != nil {
		w.starting()
	}
	return nil
}

func (w *world) put(s tailscale.Service) {
	w.t.Helper()
	if _, err := w.api.Services().PutService(w.t.Context(), s); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) owned(name, owner string) {
	w.put(tailscale.Service{Name: name, DisplayName: hostile, Ports: []string{"tcp:80"}, Tags: []string{"tag:k8s"}, Annotations: map[string]string{meta.AnnotationOwner: owner}})
}

func (w *world) record(service, cluster, operator string) {
	b, _ := json.Marshal(registry.Record{Service: service, Cluster: cluster, Operator: operator, Updated: w.clock.Now().Add(-time.Hour)})
	w.put(tailscale.Service{Name: registry.RecordName(service, cluster), Ports: []string{"tcp:80"}, Tags: []string{"tag:k8s"}, Annotations: map[string]string{
		meta.AnnotationOwner: cluster + "/" + operator, meta.AnnotationSchemaVersion: meta.SchemaVersion,
		meta.AnnotationSharedService: service, meta.AnnotationRecord: string(b),
	}})
}

func (w *world) shared(name, owner string) {
	w.put(tailscale.Service{Name: name, Ports: []string{"tcp:80"}, Tags: []string{"tag:k8s"}, Annotations: map[string]string{
		meta.AnnotationSchemaVersion: meta.SchemaVersion, meta.AnnotationOwnerOperator: owner,
	}})
}

func (w *world) key(description string) {
	w.t.Helper()
	if _, err := w.api.Keys().CreateAuthKey(w.t.Context(), tailscale.AuthKeyRequest{Description: description, Tags: []string{"tag:k8s"}, Expiry: time.Hour}); err != nil {
		w.t.Fatal(err)
	}
}

// device joins an offline device, and returns the Secret with its state.
func (w *world) device(id, machine string) *corev1.Secret {
	w.t.Helper()
	private := key.NewNode()
	if _, err := w.sim.Join(tailnetsim.Puppet{NodeID: id, Hostname: machine, Tags: []string{"tag:k8s"}, Offline: true, NodeKey: private.Public()}); err != nil {
		w.t.Fatal(err)
	}
	profile, err := json.Marshal(map[string]any{"Config": map[string]any{"NodeID": id, "PrivateNodeKey": private}})
	if err != nil {
		w.t.Fatal(err)
	}
	return stateOf(machine, map[string][]byte{"_current-profile": []byte("profile-1"), "profile-1": profile})
}

func stateOf(machine string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: machine, Finalizers: []string{secrets.FinalizerState},
			Labels: map[string]string{meta.LabelMachine: machine, meta.LabelSecretType: meta.SecretTypeState},
		},
		Data: data,
	}
}

// fragment adds an entry with a mark to the policy file.
func (w *world) fragment(owner, tag string) {
	w.t.Helper()
	_, err := w.api.PolicyFile().EditPolicyFile(w.t.Context(), func(text string) (string, error) {
		out, _, err := policyfile.Merge([]byte(text), owner, []policyfile.Entry{{Section: "tagOwners", Key: tag, Value: []byte("[]")}}, policyfile.Options{})
		return string(out), err
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// left returns all services, devices, keys and owners of policy entries, sorted.
func (w *world) left() []string {
	w.t.Helper()
	ctx := w.t.Context()
	out := []string{}
	services, err := w.api.Services().Services(ctx, tailscale.Current)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, s := range services {
		out = append(out, s.Name)
	}
	devices, err := w.api.Devices().Devices(ctx, tailscale.Current)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, d := range devices {
		out = append(out, d.NodeID)
	}
	keys, err := w.api.Keys().AuthKeys(ctx, tailscale.Current)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, k := range keys {
		out = append(out, marks.Text(k.Description))
	}
	p, err := w.api.PolicyFile().PolicyFile(ctx, tailscale.Current)
	if err != nil {
		w.t.Fatal(err)
	}
	owners, err := policyfile.Owners([]byte(p.Text))
	if err != nil {
		w.t.Fatal(err)
	}
	out = append(out, sortedKeys(owners)...)
	slices.Sort(out)
	return out
}

// full fills a tailnet with objects of living and former objects, of other clusters and by hand.
func full(t *testing.T) *world {
	t.Helper()
	w := newWorld(t,
		&v1alpha1.VIPService{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "living"}},
		&v1alpha1.PolicyFragment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "living"}},
		&v1alpha1.AuthKey{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "living"}})
	w.owned("svc:gone", "me/ns/gone")
	w.owned("svc:living", "me/ns/living")
	w.owned("svc:theirs", "other/ns/gone")
	w.put(tailscale.Service{Name: "svc:byhand", Ports: []string{"tcp:80"}, Tags: []string{"tag:k8s"}})
	w.shared("svc:both", "me/ns/both")
	w.record("svc:both", "me", "ns/both")
	w.record("svc:both", "other", "ns/both")
	w.shared("svc:alone", "me/ns/alone")
	w.record("svc:alone", "me", "ns/alone")
	w.shared("svc:last", "other/ns/last")
	w.key(marks.AuthKey("me", "ns", "gone") + " ns-gone")
	w.key(marks.AuthKey("me", "ns", "living") + " ns-living")
	w.key(marks.AuthKey("other", "ns", "gone") + " ns-theirs")
	w.key("by hand")
	w.fragment("me/ns/gone", "tag:a")
	w.fragment("me/ns/living", "tag:b")
	w.fragment("other/ns/gone", "tag:c")
	own := w.device("nOWN", "gone-0")
	w.device("nVICTIM", "victim-0")
	forged := stateOf("forged-0", map[string][]byte{"device_id": []byte("nVICTIM")})
	for _, o := range []client.Object{own, forged, route("r1", "gone")} {
		if err := w.kube.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func route(name, gateway string) *metav1.PartialObjectMetadata {
	r := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "eg", Name: name, Labels: map[string]string{
		meta.LabelGenerated: "egress", meta.LabelGateway: gateway, meta.LabelGatewayNamespace: "ns",
	}}}
	r.SetGroupVersionKind(routeKind)
	return r
}

// untouchable returns the objects of the full tailnet that no deletion may remove.
func untouchable() []string {
	out := []string{
		"svc:living", "svc:theirs", "svc:byhand", "svc:both", registry.RecordName("svc:both", "other"), "svc:last",
		"ns-living", "ns-theirs", "by hand", "me/ns/living", "other/ns/gone", "nVICTIM",
	}
	slices.Sort(out)
	return out
}

func TestOrphansDryRun(t *testing.T) {
	w := full(t)
	initial := w.left()
	code, out, errs := w.run("orphans", "--older-than=0", "--all")
	if code != ExitFound || errs != "" {
		t.Fatalf("orphans: code %d, %s\n%s", code, errs, out)
	}
	if diff := cmp.Diff(initial, w.left()); diff != "" {
		t.Errorf("orphans without --delete changed the tailnet: -before, +after:\n%s", diff)
	}
	if strings.ContainsFunc(out, func(r rune) bool { return r != '\n' && (r < 0x20 || r > 0x7e) }) {
		t.Errorf("orphans: the output has characters that a terminal obeys:\n%q", out)
	}
	if !strings.Contains(out, `"\x1b[2J\u202egone"`) {
		t.Errorf("orphans: the output does not have the quoted name:\n%s", out)
	}
	for _, secret := range []string{simtest.ClientSecret, "privkey", "tskey"} {
		if strings.Contains(out, secret) {
			t.Errorf("orphans: the output has the secret %q", secret)
		}
	}
	for range 3 {
		if _, repeat, _ := w.run("orphans", "--older-than=0", "--all"); repeat != out {
			t.Fatalf("orphans: two outputs differ: -first, +second:\n%s", cmp.Diff(out, repeat))
		}
	}
}

func TestOrphansDelete(t *testing.T) {
	w := full(t)
	code, out, errs := w.run("orphans", "--older-than=0", "--delete")
	if code != ExitFound {
		t.Errorf("orphans --delete: want code %d for the device that stays, got %d", ExitFound, code)
	}
	if diff := cmp.Diff(untouchable(), w.left()); diff != "" {
		t.Errorf("orphans --delete: -want, +got:\n%s\n%s%s", diff, out, errs)
	}
	l := &corev1.SecretList{}
	if err := w.kube.List(t.Context(), l, client.InNamespace("ns")); err != nil {
		t.Fatal(err)
	}
	if len(l.Items) != 1 || l.Items[0].GetName() != "forged-0" {
		t.Errorf("orphans --delete: want the Secret forged-0 alone, got %v", l.Items)
	}
	s, err := w.api.Services().Service(t.Context(), "svc:both")
	if err != nil || !registry.Shared(s) {
		t.Errorf("orphans --delete: the shared service of another cluster changed: %v, %v", s, err)
	}
}

// TestOrphansGrace checks that nothing whose age is unknown or young is deleted by default.
func TestOrphansGrace(t *testing.T) {
	w := full(t)
	initial := w.left()
	if code, out, errs := w.run("orphans", "--delete"); code != ExitFound {
		t.Fatalf("orphans --delete: code %d\n%s%s", code, out, errs)
	}
	if diff := cmp.Diff(initial, w.left()); diff != "" {
		t.Errorf("orphans --delete within the grace: -want, +got:\n%s", diff)
	}
}

// TestOrphansAfterRemoval checks a cluster whose provider and kinds are gone.
func TestOrphansAfterRemoval(t *testing.T) {
	w := full(t)
	w.uninstalled = true
	if code, _, errs := w.run("orphans"); code != ExitFailed || !strings.Contains(errs, "--credentials") {
		t.Errorf("orphans: want an error that names --credentials, got code %d, %s", code, errs)
	}
	args := []string{"orphans", "--credentials=xp/oauth", "--api-url=" + w.url, "--older-than=0"}
	code, out, errs := w.run(append(args, "--delete")...)
	if code != ExitFound {
		t.Errorf("orphans --delete: code %d, %s", code, errs)
	}
	want := slices.DeleteFunc(untouchable(), func(s string) bool { return s == "svc:living" || s == "ns-living" || s == "me/ns/living" })
	if diff := cmp.Diff(want, w.left()); diff != "" {
		t.Errorf("orphans --delete: -want, +got:\n%s\n%s%s", diff, out, errs)
	}
}

// TestOrphansUnknownLiving checks that nothing counts as an orphan while a list is refused.
func TestOrphansUnknownLiving(t *testing.T) {
	for _, kind := range []string{"VIPService", "Machine", "AuthKey", "PolicyFragment", "OAuthClient", "FederatedIdentity", "TailscaleGateway", "ClusterProviderConfig"} {
		w := full(t)
		initial := w.left()
		w.deny = kind
		if code, _, errs := w.run("orphans", "--delete", "--older-than=0"); code != ExitFailed || !strings.Contains(errs, kind) {
			t.Errorf("orphans without permission to list kind %s: want code %d and its name, got %d, %s", kind, ExitFailed, code, errs)
		}
		if diff := cmp.Diff(initial, w.left()); diff != "" {
			t.Errorf("orphans without permission to list kind %s: -want, +got:\n%s", kind, diff)
		}
	}
}

// TestDeleterRefuses hands items of others to the deleter, as a report without its guards would.
func TestDeleterRefuses(t *testing.T) {
	w := full(t)
	initial := w.left()
	_, out, _ := w.run("orphans", "--all", "--older-than=0", "-o", "json")
	var o output
	if err := json.Unmarshal([]byte(out), &o); err != nil {
		t.Fatal(err)
	}
	d := &deleter{kube: w.kube, api: w.api, cluster: "me", progress: &bytes.Buffer{}, wait: w.wait}
	n := 0
	for _, r := range o.Items {
		if r.Verdict == orphans.VerdictOrphan {
			continue
		}
		n++
		if err := d.delete(t.Context(), r.Item); err == nil {
			t.Errorf("delete(%s %s of %s): want an error", r.Kind, r.Name, r.Cluster)
		}
		// The same with a wrong verdict: the tailnet's marks count.
		r.Verdict, r.Cluster = orphans.VerdictOrphan, "me"
		_ = d.delete(t.Context(), r.Item)
	}
	if n < 4 {
		t.Errorf("want at least four items of others, got %d", n)
	}
	if diff := cmp.Diff(initial, w.left()); diff != "" {
		t.Errorf("delete of items of others: -want, +got:\n%s", diff)
	}
}

func TestHelp(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("secret.txt", []byte("notasecret"), 0o600); err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(t.TempDir(), "images.txt")
	if err := os.WriteFile(list, []byte("agent@sha256:"+strings.Repeat("a", 64)), 0o600); err != nil {
		t.Fatal(err)
	}
	for command, examples := range map[string][]string{
		"orphans": {exampleList, exampleDelete, exampleAfter}, "uninstall": {exampleUninstall},
		"check": {exampleCheck, exampleCheckRoutes, exampleCheckImages}, "status": {exampleStatus, exampleStatusNamespace}, "version": {exampleVersion},
		"install": {exampleInstall, exampleInstallTailnet, exampleInstallSecret}, "drain": {exampleDrain, exampleUndo},
	} {
		var objects []client.Object
		if command == "drain" {
			objects = append(objects, tailnetObject())
		}
		w := newWorld(t, objects...)
		code, out, _ := w.run(command, "--help")
		if code != ExitNone {
			t.Errorf("%s --help: code %d", command, code)
		}
		for _, e := range examples {
			if !strings.Contains(out, e) {
				t.Errorf("%s --help: lacks the example %q:\n%s", command, e, out)
			}
			args := strings.Fields(strings.NewReplacer("kubectl tailscale-gateway ", "", "crossplane-system/tailscale-oauth", "xp/oauth", "images.txt", list).Replace(e))
			if strings.Contains(e, "--credentials") || command == "install" {
				args = append(args, "--api-url="+w.url)
			}
			if code, out, errs := w.run(args...); code == ExitFailed {
				t.Errorf("%s: code %d\n%s%s", e, code, out, errs)
			}
		}
	}
}

func TestUsage(t *testing.T) {
	for name, args := range map[string][]string{
		"UnknownFlag": {"orphans", "--nonsense"}, "NegativeAge": {"orphans", "--older-than=-1h"}, "BadAge": {"orphans", "--older-than=week"},
		"BadFormat": {"orphans", "-o", "xml"}, "BadFormer": {"orphans", "--former=web"}, "BadSecret": {"orphans", "--credentials=oauth"},
		"Both": {"orphans", "--provider-config=main", "--cluster-id=x"}, "NoConfig": {"orphans", "--provider-config=nonsense"}, "NoCommand": {},
	} {
		if code, _, errs := newWorld(t).run(args...); code != ExitFailed || errs == "" {
			t.Errorf("%s: want code %d and a message, got %d, %q", name, ExitFailed, code, errs)
		}
	}
	if code, out, _ := newWorld(t).run("--version"); code != ExitNone || out == "" {
		t.Errorf("--version: code %d, %q", code, out)
	}
}
