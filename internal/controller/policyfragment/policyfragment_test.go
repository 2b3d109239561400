// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package policyfragment

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

func object(change ...func(*v1alpha1.PolicyFragment)) *v1alpha1.PolicyFragment {
	mg := &v1alpha1.PolicyFragment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: v1alpha1.PolicyFragmentSpec{ForProvider: v1alpha1.PolicyFragmentParameters{
			Grants:        []v1alpha1.PolicyObject{raw(`{"dst":["svc:web"],"ip":["tcp:443"],"src":["tag:web"]}`)},
			TagOwners:     map[string][]string{"tag:web": {"tag:k8s-operator"}, "tag:bare": nil},
			AutoApprovers: &v1alpha1.PolicyAutoApprovers{Services: map[string][]string{"svc:web": {"tag:web"}}, ExitNode: []string{"tag:web"}},
			Hosts:         map[string]string{"db": "10.0.0.1"},
		}},
	}
	for _, f := range change {
		f(mg)
	}
	return mg
}

func raw(s string) v1alpha1.PolicyObject {
	return v1alpha1.PolicyObject{RawExtension: runtime.RawExtension{Raw: []byte(s)}}
}

func named(name string) func(*v1alpha1.PolicyFragment) {
	return func(mg *v1alpha1.PolicyFragment) { mg.Name = name }
}

func adopt(mg *v1alpha1.PolicyFragment) {
	mg.Spec.ForProvider.AdoptionPolicy = v1alpha1.AdoptionPolicyAdopt
}

func hosts(k, v string) func(*v1alpha1.PolicyFragment) {
	return func(mg *v1alpha1.PolicyFragment) {
		mg.Spec.ForProvider = v1alpha1.PolicyFragmentParameters{Hosts: map[string]string{k: v}}
	}
}

// A tailnet is a simulated tailnet with a client.
type tailnet struct {
	*simtest.Running

	client *tailscale.Client
}

func start(t *testing.T, policy string) tailnet {
	t.Helper()
	r := simtest.StartAPI(t, func(o *tailnetsim.Options) { o.Policy = policy })
	c, err := tailscale.NewClient(tailscale.Config{URL: r.URL, ClientID: simtest.ClientID, ClientSecret: simtest.ClientSecret},
		tailscale.Options{Rate: 1000, Burst: 1000, ListMaxAge: time.Hour, Metrics: tailscale.NewMetrics()})
	if err != nil {
		t.Fatal(err)
	}
	return tailnet{Running: r, client: c}
}

func (n tailnet) external() *external {
	return &external{api: n.client.PolicyFile(), clusterID: "c1", record: event.NewNopRecorder(), warned: &warned{}}
}

func (n tailnet) policy(t *testing.T) string {
	t.Helper()
	p, err := n.Client(t).PolicyFile().Raw(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p.HuJSON
}

// edit changes the policy file without the controller.
func (n tailnet) edit(t *testing.T, from, to string) {
	t.Helper()
	text := n.policy(t)
	if !strings.Contains(text, from) {
		t.Fatalf("%q is not in the policy file:\n%s", from, text)
	}
	if err := n.Client(t).PolicyFile().Set(t.Context(), strings.Replace(text, from, to, 1), ""); err != nil {
		t.Fatal(err)
	}
	if _, err := n.client.PolicyFile().PolicyFile(t.Context(), tailscale.Current); err != nil {
		t.Fatal(err)
	}
}

// reconcile runs the managed reconciler's steps until nothing is left to do.
func (n tailnet) reconcile(t *testing.T, mg *v1alpha1.PolicyFragment) error {
	t.Helper()
	for range 5 {
		e := n.external()
		o, err := e.Observe(t.Context(), mg)
		if err != nil {
			return err
		}
		switch deleted := xpmeta.WasDeleted(mg); {
		case deleted && !o.ResourceExists, !deleted && o.ResourceExists && o.ResourceUpToDate:
			return nil
		case deleted:
			_, err = e.Delete(t.Context(), mg)
		case !o.ResourceExists:
			_, err = e.Create(t.Context(), mg)
		default:
			_, err = e.Update(t.Context(), mg)
		}
		if err != nil {
			return err
		}
	}
	t.Fatal("the object is not up to date after all reconciliations")
	return nil
}

func deleted(mg *v1alpha1.PolicyFragment) *v1alpha1.PolicyFragment {
	at := metav1.Now()
	mg.DeletionTimestamp = &at
	return mg
}

func wantReady(t *testing.T, mg *v1alpha1.PolicyFragment, status corev1.ConditionStatus, reason xpv2.ConditionReason, message string) {
	t.Helper()
	c := mg.GetCondition(xpv2.TypeReady)
	if c.Status != status || (reason != "" && c.Reason != reason) || !strings.Contains(c.Message, message) {
		t.Errorf("want Ready %s %s with %q, got %+v", status, reason, message, c)
	}
}

func TestLifecycle(t *testing.T) {
	n := start(t, tailnetsim.DefaultPolicy)
	mg := object()
	if err := n.reconcile(t, mg); err != nil {
		t.Fatal(err)
	}
	wantReady(t, mg, corev1.ConditionTrue, "", "")
	entries := int32(6)
	if diff := cmp.Diff(v1alpha1.PolicyFragmentObservation{Owner: "c1/default/web", Entries: &entries}, mg.Status.AtProvider); diff != "" {
		t.Errorf("status: -want, +got:\n%s", diff)
	}
	if got := xpmeta.GetExternalName(mg); got != "c1/default/web" {
		t.Errorf("external name: %q", got)
	}

	// An unchanged object needs no requests.
	n.ResetCalls()
	for range 10 {
		if err := n.reconcile(t, mg); err != nil {
			t.Fatal(err)
		}
	}
	if calls := n.Calls(); len(calls) > 0 {
		t.Errorf("calls without changes: %v", calls)
	}

	// Drift is corrected, and entries of others are kept.
	n.edit(t, `"db": "10.0.0.1"`, `"db": "10.0.0.2", "other": "10.0.0.3"`)
	if err := n.reconcile(t, mg); err != nil {
		t.Fatal(err)
	}
	if p := n.policy(t); !strings.Contains(p, `"db": "10.0.0.1", "other": "10.0.0.3"`) {
		t.Errorf("drift was not corrected:\n%s", p)
	}

	// Entries that are no longer wanted are removed, and new ones are added.
	mg.Spec.ForProvider.AutoApprovers = nil
	mg.Spec.ForProvider.Groups = map[string][]string{"group:ops": {"ann@example.com"}}
	if err := n.reconcile(t, mg); err != nil {
		t.Fatal(err)
	}
	if p := n.policy(t); strings.Contains(p, "exitNode") || strings.Contains(p, "svc:web\":") || !strings.Contains(p, "group:ops") {
		t.Errorf("the update was not written:\n%s", p)
	}

	// In the end the file is unchanged, except for the entries of others.
	n.edit(t, `"db": "10.0.0.1", "other": "10.0.0.3",`, `"db": "10.0.0.1",`)
	if err := n.reconcile(t, deleted(mg)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tailnetsim.DefaultPolicy, n.policy(t)); diff != "" {
		t.Errorf("after deletion: -want, +got:\n%s", diff)
	}
}

func TestShared(t *testing.T) {
	n := start(t, tailnetsim.DefaultPolicy)
	first, two := object(), object(named("two"))
	for _, mg := range []*v1alpha1.PolicyFragment{first, two} {
		if err := n.reconcile(t, mg); err != nil {
			t.Fatal(err)
		}
		wantReady(t, mg, corev1.ConditionTrue, "", "")
	}
	// After the first object is deleted, its tag still has an owner; otherwise the second object's
	// grant would be invalid.
	if err := n.reconcile(t, deleted(first)); err != nil {
		t.Fatal(err)
	}
	if p := n.policy(t); strings.Contains(p, "c1/default/web") || !strings.Contains(p, `"tag:web": ["tag:k8s-operator"]`) {
		t.Errorf("after deletion of the first:\n%s", p)
	}
	if err := n.reconcile(t, deleted(two)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tailnetsim.DefaultPolicy, n.policy(t)); diff != "" {
		t.Errorf("after deletion of both: -want, +got:\n%s", diff)
	}
}

func TestConflict(t *testing.T) {
	byHand := "{\n\t\"hosts\": {\n\t\t\"db\": \"10.9.9.9\",\n\t},\n}\n"
	cases := map[string]struct {
		reason  string
		policy  string
		first   *v1alpha1.PolicyFragment
		mg      *v1alpha1.PolicyFragment
		ready   corev1.ConditionStatus
		cause   xpv2.ConditionReason
		message string
		want    []v1alpha1.PolicyConflict
		excerpt string
	}{
		"ByHand": {
			reason: "An entry written by hand stays and is reported.",
			policy: byHand, mg: object(hosts("db", "10.0.0.1")),
			ready: corev1.ConditionFalse, cause: meta.ReasonConflict, message: `hosts "db" is set to something else by hand`,
			want: []v1alpha1.PolicyConflict{{Path: `hosts["db"]`}}, excerpt: `"db": "10.9.9.9"`,
		},
		"Owned": {
			reason: "An entry of another object stays and is reported, even with adoption.",
			policy: "{}", first: object(named("first"), hosts("db", "10.9.9.9")), mg: object(hosts("db", "10.0.0.1"), adopt),
			ready: corev1.ConditionFalse, cause: meta.ReasonConflict, message: "by c1/default/first",
			want: []v1alpha1.PolicyConflict{{Path: `hosts["db"]`, Owner: "c1/default/first"}}, excerpt: `"db": "10.9.9.9"`,
		},
		"Satisfied": {
			reason: "An entry that matches the spec is enough, and nothing is written.",
			policy: byHand, mg: object(hosts("db", "10.9.9.9")), ready: corev1.ConditionTrue, excerpt: `"db": "10.9.9.9"`,
		},
		"Adopted": {
			reason: "An entry written by hand is taken over with adoption.",
			policy: byHand, mg: object(hosts("db", "10.0.0.1"), adopt), ready: corev1.ConditionTrue, excerpt: `"db": "10.0.0.1"`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n := start(t, tc.policy)
			for _, mg := range []*v1alpha1.PolicyFragment{tc.first, tc.mg} {
				if mg == nil {
					continue
				}
				if err := n.reconcile(t, mg); err != nil {
					t.Fatalf("%s\n%v", tc.reason, err)
				}
			}
			wantReady(t, tc.mg, tc.ready, tc.cause, tc.message)
			if diff := cmp.Diff(tc.want, tc.mg.Status.AtProvider.Conflicts); diff != "" {
				t.Errorf("%s\nconflicts: -want, +got:\n%s", tc.reason, diff)
			}
			if p := n.policy(t); !strings.Contains(p, tc.excerpt) {
				t.Errorf("%s\nwant %s in:\n%s", tc.reason, tc.excerpt, p)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	n := start(t, tailnetsim.DefaultPolicy)
	mg := object(func(mg *v1alpha1.PolicyFragment) { mg.Spec.ForProvider.TagOwners = nil })
	err := n.reconcile(t, mg)
	if tailscale.ClassOf(err) != tailscale.ClassInvalid {
		t.Errorf("want the API's refusal, got %v", err)
	}
	wantReady(t, mg, corev1.ConditionFalse, meta.ReasonPolicyRefused, `tag not found: "tag:web"`)
	if diff := cmp.Diff(tailnetsim.DefaultPolicy, n.policy(t)); diff != "" {
		t.Errorf("the policy file changed: -want, +got:\n%s", diff)
	}

	// Entries that others need cannot be deleted, and the object reports this.
	owner := object(func(mg *v1alpha1.PolicyFragment) {
		mg.Spec.ForProvider = v1alpha1.PolicyFragmentParameters{TagOwners: map[string][]string{"tag:web": {"tag:k8s-operator"}}}
	}, named("owner"))
	for _, mg := range []*v1alpha1.PolicyFragment{owner, mg} {
		if err := n.reconcile(t, mg); err != nil {
			t.Fatal(err)
		}
	}
	wantReady(t, mg, corev1.ConditionTrue, "", "")
	if err := n.reconcile(t, deleted(owner)); tailscale.ClassOf(err) != tailscale.ClassInvalid {
		t.Errorf("want the API's refusal, got %v", err)
	}
	wantReady(t, owner, corev1.ConditionFalse, "", "remove what needs it first")
	for _, mg := range []*v1alpha1.PolicyFragment{mg, owner} {
		if err := n.reconcile(t, deleted(mg)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLostReply(t *testing.T) {
	n := start(t, tailnetsim.DefaultPolicy)
	mg := object()
	if err := n.SetFaults(tailnetsim.Fault{Method: "POST", Path: "/acl$", Count: 1, DropReply: true}); err != nil {
		t.Fatal(err)
	}
	if err := n.reconcile(t, mg); tailscale.ClassOf(err) != tailscale.ClassUnavailable {
		t.Errorf("want a lost reply, got %v", err)
	}
	// A crash also lost the annotations.
	retry := object()
	if err := n.reconcile(t, retry); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(n.policy(t), `{"src": ["tag:web"]`); got != 1 {
		t.Errorf("want one grant, got %d", got)
	}
	if err := n.reconcile(t, deleted(retry)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tailnetsim.DefaultPolicy, n.policy(t)); diff != "" {
		t.Errorf("after deletion: -want, +got:\n%s", diff)
	}
}

func TestExternalName(t *testing.T) {
	n := start(t, tailnetsim.DefaultPolicy)
	first := object(named("first"))
	if err := n.reconcile(t, first); err != nil {
		t.Fatal(err)
	}
	// A cluster keeps its entries after its ID changes.
	e := &external{api: n.client.PolicyFile(), clusterID: "c2", record: event.NewNopRecorder(), warned: &warned{}}
	if o, err := e.Observe(t.Context(), first); err != nil || !o.ResourceExists || !o.ResourceUpToDate {
		t.Errorf("Observe(...): %+v, %v", o, err)
	}
	mg := object()
	xpmeta.SetExternalName(mg, "c1/default/first")
	if o, err := n.external().Observe(t.Context(), mg); err == nil {
		t.Errorf("another object's entries were taken: %+v", o)
	}
	wantReady(t, mg, corev1.ConditionFalse, meta.ReasonForeignObject, "adoptionPolicy")
	adopt(mg)
	o, err := n.external().Observe(t.Context(), mg)
	if diff := cmp.Diff(managed.ExternalObservation{ResourceExists: true, ResourceUpToDate: true}, o); diff != "" || err != nil {
		t.Errorf("Observe(...): %v, -want, +got:\n%s", err, diff)
	}
}

func TestUnavailable(t *testing.T) {
	n := start(t, tailnetsim.DefaultPolicy)
	if err := n.SetFaults(tailnetsim.Fault{Path: "/acl", Status: 403}); err != nil {
		t.Fatal(err)
	}
	if _, err := n.external().Observe(t.Context(), object()); tailscale.ClassOf(err) != tailscale.ClassForbidden || !strings.Contains(err.Error(), "policy_file:read") {
		t.Errorf("want an error that names the scope, got %v", err)
	}
}
