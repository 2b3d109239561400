// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

const url = "https://hooks.example.com"

var errBoom = errors.New("boom")

// A tailnet holds webhooks.
type tailnet struct {
	hooks   []tailscale.Webhook
	created int
	rotated int
	deleted []string
	err     error // Error of every list call.
}

func (n *tailnet) Webhooks(context.Context, tailscale.Staleness) ([]tailscale.Webhook, error) {
	return n.hooks, n.err
}

func (n *tailnet) Webhook(_ context.Context, id string) (*tailscale.Webhook, error) {
	return nil, &tailscale.Error{Class: tailscale.ClassNotFound, Message: id}
}

func (n *tailnet) CreateWebhook(_ context.Context, _, _ string, subscriptions []string) (*tailscale.Webhook, error) {
	n.created++
	w := hook("new", subscriptions...)
	secret := "notasecret"
	w.Secret = &secret
	return &w, nil
}

func (n *tailnet) SetWebhookSubscriptions(context.Context, string, []string) error { return nil }

func (n *tailnet) RotateWebhookSecret(context.Context, string) (string, error) {
	n.rotated++
	return "rotated-notasecret", nil
}

func (n *tailnet) DeleteWebhook(_ context.Context, id string) error {
	n.deleted = append(n.deleted, id)
	return nil
}

func hook(id string, subscriptions ...string) tailscale.Webhook {
	w := tailscale.Webhook{EndpointID: id, EndpointURL: url}
	for _, s := range subscriptions {
		w.Subscriptions = append(w.Subscriptions, tsclient.WebhookSubscriptionType(s))
	}
	return w
}

func object(edit ...func(mg *v1alpha1.Webhook)) *v1alpha1.Webhook {
	mg := &v1alpha1.Webhook{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "one", UID: "uid"},
		Spec: v1alpha1.WebhookSpec{ForProvider: v1alpha1.WebhookParameters{
			EndpointURL: url, Subscriptions: []v1alpha1.WebhookSubscription{"policyUpdate", "nodeCreated"},
		}},
	}
	mg.SetManagementPolicies(xpv2.ManagementPolicies{xpv2.ManagementActionAll})
	mg.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: v1alpha1.ClusterProviderConfigKind, Name: "one"})
	for _, f := range edit {
		f(mg)
	}
	return mg
}

func named(id string) func(mg *v1alpha1.Webhook) {
	return func(mg *v1alpha1.Webhook) { xpmeta.SetExternalName(mg, id) }
}

func pending(mg *v1alpha1.Webhook) { xpmeta.SetExternalCreatePending(mg, time.Now()) }

func deleted(mg *v1alpha1.Webhook) {
	at := metav1.Now()
	mg.DeletionTimestamp, mg.Finalizers = &at, []string{"f"}
}

func connected(mg *v1alpha1.Webhook) {
	mg.SetWriteConnectionSecretToReference(&xpv2.LocalSecretReference{Name: "s"})
}

func clientOf(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	return fake.NewClientBuilder().WithScheme(s).WithObjects(objects...).Build()
}

func TestObserve(t *testing.T) {
	older := object()
	older.Name, older.UID, older.CreationTimestamp = "older", "older", metav1.Time{Time: time.Unix(1, 0)}
	young := func(mg *v1alpha1.Webhook) { mg.CreationTimestamp = metav1.Time{Time: time.Unix(2, 0)} }
	type want struct {
		Exists, UpToDate bool
		Ready            xpv2.ConditionReason
		Err              string
	}
	cases := map[string]struct {
		reason  string
		mg      *v1alpha1.Webhook
		tailnet tailnet
		objects []client.Object
		want    want
	}{
		"ErrList":    {reason: "An error does not mean that the webhook is missing.", mg: object(), tailnet: tailnet{err: errBoom}, want: want{Err: "cannot list webhooks"}},
		"None":       {reason: "The webhook does not exist.", mg: object()},
		"UpToDate":   {reason: "The order of events is ignored.", mg: object(named("a")), tailnet: tailnet{hooks: []tailscale.Webhook{hook("a", "nodeCreated", "policyUpdate")}}, want: want{Exists: true, UpToDate: true, Ready: xpv2.ReasonAvailable}},
		"Drifted":    {reason: "Other events are corrected.", mg: object(named("a")), tailnet: tailnet{hooks: []tailscale.Webhook{hook("a", "nodeCreated")}}, want: want{Exists: true, Ready: xpv2.ReasonAvailable}},
		"SecretLost": {reason: "A connection Secret without the secret is updated.", mg: object(named("a"), connected), tailnet: tailnet{hooks: []tailscale.Webhook{hook("a", "nodeCreated", "policyUpdate")}}, want: want{Exists: true, Ready: xpv2.ReasonAvailable}},
		"Foreign":    {reason: "A webhook of another owner is refused.", mg: object(), tailnet: tailnet{hooks: []tailscale.Webhook{hook("a")}}, want: want{Ready: meta.ReasonForeignObject, Err: "adoptionPolicy"}},
		"Unrecorded": {reason: "A webhook whose creation had no response is recorded by the next Create.", mg: object(pending), tailnet: tailnet{hooks: []tailscale.Webhook{hook("a")}}},
		"Adopt": {
			reason: "Create adopts a webhook of another owner.", tailnet: tailnet{hooks: []tailscale.Webhook{hook("a")}},
			mg: object(func(mg *v1alpha1.Webhook) { mg.Spec.ForProvider.AdoptionPolicy = v1alpha1.AdoptionPolicyAdopt }),
		},
		"Unchangeable": {
			reason: "Tailscale cannot change a provider type.", tailnet: tailnet{hooks: []tailscale.Webhook{hook("a")}},
			mg:   object(named("a"), func(mg *v1alpha1.Webhook) { mg.Spec.ForProvider.ProviderType = "slack" }),
			want: want{Ready: meta.ReasonForeignObject, Err: "cannot change"},
		},
		"WrongName":      {reason: "No webhook is created for a wrong external name.", mg: object(named("typo")), want: want{Err: "correct or remove the annotation"}},
		"DeletedByHand":  {reason: "A webhook that was deleted by hand is created again.", mg: object(named("a"), pending)},
		"Conflict":       {reason: "The older object owns the webhook.", mg: object(young), objects: []client.Object{older}, want: want{Ready: meta.ReasonConflict, Err: "Webhook ns/older"}},
		"DeletedClaim":   {reason: "The older object's webhook stays.", mg: object(young, named("a"), deleted), objects: []client.Object{older}, tailnet: tailnet{hooks: []tailscale.Webhook{hook("a")}}, want: want{Ready: meta.ReasonConflict}},
		"DeletedOurs":    {reason: "The object's webhook is deleted.", mg: object(named("a"), deleted), tailnet: tailnet{hooks: []tailscale.Webhook{hook("a")}}, want: want{Exists: true, UpToDate: true}},
		"DeletedForeign": {reason: "A webhook of another owner stays.", mg: object(named("b"), deleted), tailnet: tailnet{hooks: []tailscale.Webhook{hook("a")}}, want: want{UpToDate: true}},
		"ObserveOnly": {
			reason: "A webhook of another owner can be observed.", tailnet: tailnet{hooks: []tailscale.Webhook{hook("a")}},
			mg: object(connected, func(mg *v1alpha1.Webhook) {
				mg.SetManagementPolicies(xpv2.ManagementPolicies{xpv2.ManagementActionObserve})
			}),
			want: want{Exists: true, Ready: xpv2.ReasonAvailable},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := &external{api: &tc.tailnet, kube: clientOf(t, tc.objects...), record: event.NewNopRecorder()}
			o, err := e.Observe(t.Context(), tc.mg)
			got := want{Exists: o.ResourceExists, UpToDate: o.ResourceUpToDate, Ready: tc.mg.GetCondition(xpv2.TypeReady).Reason}
			if err != nil {
				got.Err = tc.want.Err
				if tc.want.Err == "" || !strings.Contains(err.Error(), tc.want.Err) {
					got.Err = err.Error()
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("\n%s\nObserve(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCreate(t *testing.T) {
	cases := map[string]struct {
		reason  string
		mg      *v1alpha1.Webhook
		tailnet tailnet
		created int
		name    string
	}{
		"Made":       {reason: "The ID is recorded.", mg: object(), created: 1, name: "new"},
		"Unrecorded": {reason: "A webhook whose creation had no response is not created again.", mg: object(pending), tailnet: tailnet{hooks: []tailscale.Webhook{hook("a")}}, name: "a"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			e := &external{api: &tc.tailnet, kube: clientOf(t), record: event.NewNopRecorder()}
			if _, err := e.Observe(t.Context(), tc.mg); err != nil {
				t.Fatal(err)
			}
			if _, err := e.Create(t.Context(), tc.mg); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]any{tc.created, tc.name}, []any{tc.tailnet.created, xpmeta.GetExternalName(tc.mg)}); diff != "" {
				t.Errorf("\n%s\nCreate(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
	t.Run("CameBetween", func(t *testing.T) {
		n := &tailnet{}
		e := &external{api: n, kube: clientOf(t), record: event.NewNopRecorder()}
		mg := object()
		if _, err := e.Observe(t.Context(), mg); err != nil {
			t.Fatal(err)
		}
		n.hooks = []tailscale.Webhook{hook("theirs")}
		pending(mg)
		if _, err := e.Create(t.Context(), mg); err == nil {
			t.Fatal("a webhook that another client created meanwhile was adopted")
		}
		// The failed attempt must not record the webhook as the object's.
		if _, err := e.Observe(t.Context(), mg); err == nil || n.created > 0 {
			t.Errorf("a webhook that another client created meanwhile was adopted: %v, %d created", err, n.created)
		}
	})
}
