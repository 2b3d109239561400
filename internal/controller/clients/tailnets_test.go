// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/permits"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// tailnets is one API with the tailnets of several credentials, by OAuth client ID or API access token. A
// credential that it does not have may read nothing.
type tailnets map[string]tailnet

type tailnet struct {
	id      string
	domain  string // Empty without devices.
	devices int    // The status of the list of devices. The default is 200.
}

// RoundTrip implements http.RoundTripper.
func (a tailnets) RoundTrip(r *http.Request) (*http.Response, error) {
	reply := func(status int, v any) (*http.Response, error) {
		b, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		return &http.Response{
			StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
			Body: io.NopCloser(strings.NewReader(string(b))),
		}, nil
	}
	if strings.HasSuffix(r.URL.Path, "/oauth/token") {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		form, err := url.ParseQuery(string(b))
		if err != nil {
			return nil, err
		}
		return reply(http.StatusOK, map[string]any{"access_token": form.Get("client_id"), "token_type": "Bearer", "expires_in": 3600})
	}
	t, ok := a[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	if user, _, basic := r.BasicAuth(); basic {
		t, ok = a[user]
	}
	devices := []map[string]any{}
	if t.domain != "" {
		devices = append(devices, map[string]any{"nodeId": "n1", "name": "device." + t.domain})
	}
	switch {
	case strings.HasSuffix(r.URL.Path, "/devices") && t.devices != 0:
		return reply(t.devices, map[string]any{"message": "refused"})
	case strings.HasSuffix(r.URL.Path, "/devices") && ok:
		return reply(http.StatusOK, map[string]any{"devices": devices})
	case strings.HasSuffix(r.URL.Path, "/organizations/-/tailnets") && t.id != "":
		return reply(http.StatusOK, map[string]any{"tailnets": []any{map[string]any{"id": t.id, "orgId": "o1", "dnsName": t.domain}}})
	}
	return reply(http.StatusForbidden, map[string]any{"message": "refused"})
}

// A recorder holds the reasons of events.
type recorder struct {
	event.Recorder

	reasons []string
}

// Event records the reason of an event.
func (r *recorder) Event(_ runtime.Object, e event.Event) {
	r.reasons = append(r.reasons, string(e.Reason))
}

// TestTailnetOfResource changes the credential of a provider config under a resource.
func TestTailnetOfResource(t *testing.T) {
	type want struct {
		reason    xpv2.ConditionReason
		err       string // Part of an error that is no condition.
		advice    []string
		events    []string
		recorded  string // Name of the tailnet that is recorded afterwards.
		forgotten bool
	}
	const (
		a = "a.ts.net"
		b = "b.ts.net"
	)
	cases := map[string]struct {
		reason            string
		previous, current tailnet
		same              bool // The credential stays.
		annotations       map[string]string
		config            map[string]string
		joined            string
		deleted           bool
		want              want
	}{
		"SameDomain":   {reason: "A new credential of the same tailnet takes over.", previous: tailnet{domain: a}, current: tailnet{domain: a}, want: want{recorded: a}},
		"SameID":       {reason: "A tailnet that was renamed has the same ID.", previous: tailnet{id: "T1", domain: a}, current: tailnet{id: "T1", domain: b}, want: want{recorded: "T1"}},
		"Renamed":      {reason: "A credential leads to one tailnet, whatever its name.", previous: tailnet{domain: a}, current: tailnet{domain: b}, same: true, want: want{recorded: a}},
		"IDLater":      {reason: "The ID is recorded once the credential may read it.", current: tailnet{id: "T1", domain: a}, same: true, want: want{recorded: "T1"}},
		"DevicesGone":  {reason: "The same credential leads to the same tailnet, with or without devices.", previous: tailnet{domain: a}, same: true, want: want{recorded: a}},
		"APIAway":      {reason: "The same credential works while the identity cannot be read.", previous: tailnet{devices: 503}, current: tailnet{devices: 503}, same: true, want: want{recorded: "before"}},
		"FirstDevice":  {reason: "The record is completed under the same credential.", current: tailnet{domain: a}, same: true, want: want{recorded: a}},
		"Corrected":    {reason: "A credential that the API refuses leads to no tailnet, and another one replaces it.", previous: tailnet{devices: 401}, current: tailnet{}, want: want{recorded: "after"}},
		"Expired":      {reason: "The record stays while the API refuses the credential.", current: tailnet{devices: 401}, same: true, want: want{recorded: "before"}},
		"OtherDomain":  {reason: "Another tailnet is refused.", previous: tailnet{domain: a}, current: tailnet{domain: b}, want: want{reason: meta.ReasonTailnetChanged, advice: []string{a, b, meta.AnnotationMoveToTailnet + "=" + b}, events: []string{"TailnetChanged"}, recorded: a}},
		"OtherID":      {reason: "Another ID is another tailnet.", previous: tailnet{id: "T1", domain: a}, current: tailnet{id: "T2", domain: a}, want: want{reason: meta.ReasonTailnetChanged, advice: []string{"T1", meta.AnnotationMoveToTailnet + "=T2"}, events: []string{"TailnetChanged"}, recorded: "T1"}},
		"OtherDeleted": {reason: "A deletion waits.", previous: tailnet{domain: a}, current: tailnet{domain: b}, deleted: true, want: want{reason: meta.ReasonTailnetChanged, events: []string{"TailnetChanged"}, recorded: a}},
		"NoDevices":    {reason: "A tailnet without devices may be another one.", previous: tailnet{domain: a}, want: want{reason: meta.ReasonTailnetUnknown, advice: []string{a, meta.AnnotationSameTailnet + "=after", meta.AnnotationMoveToTailnet + "=after"}, events: []string{"TailnetUnknown"}, recorded: a}},
		"HadNone":      {reason: "So may one of which nothing is recorded.", current: tailnet{domain: b}, want: want{reason: meta.ReasonTailnetUnknown, advice: []string{"of the credential before", meta.AnnotationSameTailnet + "=" + b}, events: []string{"TailnetUnknown"}, recorded: "before"}},
		"MayNotRead":   {reason: "So may one whose devices the credential may not read.", previous: tailnet{domain: a}, current: tailnet{devices: 403}, want: want{reason: meta.ReasonTailnetUnknown, advice: []string{"devices:core:read"}, events: []string{"TailnetUnknown"}, recorded: a}},
		"CannotRead":   {reason: "A failure says nothing, and ends.", previous: tailnet{domain: a}, current: tailnet{devices: 401}, want: want{err: "cannot learn to which tailnet", recorded: a}},
		"Moved": {
			reason: "A user moves the object.", previous: tailnet{domain: a}, current: tailnet{domain: b}, annotations: map[string]string{meta.AnnotationMoveToTailnet: b},
			want: want{events: []string{"MovedToTailnet"}, recorded: b, forgotten: true},
		},
		"MovedDeleted": {
			reason: "So that its deletion does not wait for a tailnet that is lost.", previous: tailnet{domain: a}, current: tailnet{domain: b}, deleted: true, annotations: map[string]string{meta.AnnotationMoveToTailnet: b},
			want: want{events: []string{"MovedToTailnet"}, recorded: b, forgotten: true},
		},
		"MovedUnknown": {
			reason: "Also to a tailnet that only its credential names.", previous: tailnet{domain: a}, annotations: map[string]string{meta.AnnotationMoveToTailnet: "after"},
			want: want{events: []string{"MovedToTailnet"}, recorded: "after", forgotten: true},
		},
		"Same": {
			reason: "A user says that it is the same tailnet: the records of the object stay.", previous: tailnet{domain: a}, annotations: map[string]string{meta.AnnotationSameTailnet: "after"},
			want: want{events: []string{"ConfirmedTailnet"}, recorded: "after"},
		},
		"SameByConfig": {
			reason: "An annotation of the config is for all of its objects.", previous: tailnet{domain: a}, config: map[string]string{meta.AnnotationSameTailnet: "after"},
			want: want{events: []string{"ConfirmedTailnet"}, recorded: "after"},
		},
		"MovedElsewhere": {
			reason: "An annotation permits the change that it names, and no other.", previous: tailnet{domain: a}, current: tailnet{domain: b}, annotations: map[string]string{meta.AnnotationMoveToTailnet: "c.ts.net"},
			want: want{reason: meta.ReasonTailnetChanged, events: []string{"TailnetChanged"}, recorded: a},
		},
		"Joined":        {reason: "An object of an earlier version shows its tailnet.", joined: a, current: tailnet{domain: a}, want: want{recorded: a}},
		"JoinedOther":   {reason: "It waits in another one.", joined: a, current: tailnet{domain: b}, want: want{reason: meta.ReasonTailnetChanged, events: []string{"TailnetChanged"}}},
		"JoinedDeleted": {reason: "The record of a deleted device goes before the object does; the tailnet may have no other device.", joined: a, deleted: true},
		"JoinedUnknown": {reason: "Also in one without devices.", joined: a, want: want{reason: meta.ReasonTailnetUnknown, events: []string{"TailnetUnknown"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			kube := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(objects(secretOf("before"))...).Build()
			api := tailnets{"before": tc.previous, "after": tc.current}
			pool := func() *tailscale.Pool {
				return tailscale.NewPool(tailscale.Options{Rate: 1000, Burst: 1000, Metrics: tailscale.NewMetrics(), Transport: api})
			}
			record, events, forgotten := permits.New(kube, "system"), &recorder{}, false
			connector := NewConnector(kube, pool(), record, nil).Residing(Residence{
				Events: events,
				Joined: func(context.Context, resource.ModernManaged) (string, error) { return tc.joined, nil },
				Forget: func(context.Context, resource.ModernManaged) error { forgotten = true; return nil },
			})
			mg := &v1alpha1.Webhook{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "w", UID: "w"}}
			mg.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: v1alpha1.ClusterProviderConfigKind, Name: "home"})
			if tc.joined == "" {
				if _, err := connector.Connect(t.Context(), mg); err != nil {
					t.Fatalf("\n%s\nConnect(...): %v", tc.reason, err)
				}
			}
			swap(t, kube, tc.same, tc.config)
			if tc.same {
				api["before"] = tc.current
			}
			// The provider starts again, so that nothing is in a cache.
			connector.pool = pool()
			mg.SetAnnotations(tc.annotations)
			if tc.deleted {
				at := metav1.Now()
				mg.SetDeletionTimestamp(&at)
			}
			var err error
			for range 2 {
				_, err = connector.Connect(t.Context(), mg)
			}
			ready := mg.GetCondition(xpv2.TypeReady)
			if ready.Reason != tc.want.reason || (err != nil) != (tc.want.reason != "" || tc.want.err != "") || err != nil && !strings.Contains(err.Error(), tc.want.err) {
				t.Fatalf("\n%s\nConnect(...): want the reason %q, got %q, %v", tc.reason, tc.want.reason, ready.Reason, err)
			}
			for _, part := range tc.want.advice {
				if !strings.Contains(ready.Message, part) {
					t.Errorf("\n%s\nwant %q in the condition, got: %s", tc.reason, part, ready.Message)
				}
			}
			if diff := cmp.Diff(tc.want.events, events.reasons); diff != "" {
				t.Errorf("\n%s\nevents: -want, +got:\n%s", tc.reason, diff)
			}
			if forgotten != tc.want.forgotten {
				t.Errorf("\n%s\nwant the records to be removed: %t, got %t", tc.reason, tc.want.forgotten, forgotten)
			}
			if diff := cmp.Diff(tc.want.recorded, recordedName(t, record)); diff != "" {
				t.Errorf("\n%s\nrecorded tailnet: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestTailnetIsNotRead spares credentials that lead to a known tailnet, or that may read nothing.
func TestTailnetIsNotRead(t *testing.T) {
	cases := map[string]tailnets{"Known": {"before": {domain: "a.ts.net"}}, "NotReadable": {}}
	for name, api := range cases {
		t.Run(name, func(t *testing.T) {
			kube := fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(objects(secretOf("before"))...).Build()
			calls := counter{next: api, calls: map[string]int{}}
			c := NewConnector(kube, tailscale.NewPool(tailscale.Options{Rate: 1000, Burst: 1000, Metrics: tailscale.NewMetrics(), Transport: calls}), permits.New(kube, "system"), nil)
			mg := &v1alpha1.Webhook{ObjectMeta: metav1.ObjectMeta{Namespace: "apps", Name: "w", UID: "w"}}
			mg.SetProviderConfigReference(&xpv2.ProviderConfigReference{Kind: v1alpha1.ClusterProviderConfigKind, Name: "home"})
			for range 5 {
				if _, err := c.Connect(t.Context(), mg); err != nil {
					t.Fatalf("Connect(...): %v", err)
				}
			}
			want := map[string]int{"/api/v2/oauth/token": 1, "/api/v2/tailnet/-/devices": 1, "/api/v2/organizations/-/tailnets": 1}
			if diff := cmp.Diff(want, calls.calls); diff != "" {
				t.Errorf("calls: -want, +got:\n%s", diff)
			}
		})
	}
}

// A counter counts requests by path.
type counter struct {
	next  http.RoundTripper
	calls map[string]int
}

// RoundTrip implements http.RoundTripper.
func (c counter) RoundTrip(r *http.Request) (*http.Response, error) {
	c.calls[r.URL.Path]++
	return c.next.RoundTrip(r)
}

func TestTailnetEncoding(t *testing.T) {
	want := tailscale.TailnetIdentity{ID: "T 1", Domain: "a.ts.net", Credential: "k&1/my tailnet", URL: "https://api.tailscale.com"}
	s := encodeTailnet(want)
	if strings.ContainsAny(s, " \n") {
		t.Errorf("encodeTailnet(...): %q has spaces, which separate the fields of permits", s)
	}
	if got, err := decodeTailnet(s); err != nil || got != want {
		t.Errorf("decodeTailnet(...): want %v, got %v, %v", want, got, err)
	}
	for _, s := range []string{"nonsense", "id=%zz"} {
		if got, err := decodeTailnet(s); err == nil {
			t.Errorf("decodeTailnet(%q): want an error, got %v", s, got)
		}
	}
}

func secretOf(id string) map[string][]byte {
	return map[string][]byte{meta.SecretKeyClientID: []byte(id), meta.SecretKeyClientSecret: []byte("hush")}
}

// swap writes another credential to the Secret of the config, unless it stays, and annotations to the
// config.
func swap(t *testing.T, kube client.Client, same bool, annotations map[string]string) {
	t.Helper()
	s, pc := &corev1.Secret{}, &v1alpha1.ClusterProviderConfig{}
	for _, o := range []client.Object{s, pc} {
		key := client.ObjectKey{Name: "home"}
		if o == client.Object(s) {
			key = client.ObjectKey{Namespace: "team", Name: "oauth"}
		}
		if err := kube.Get(t.Context(), key, o); err != nil {
			t.Fatal(err)
		}
	}
	if !same {
		s.Data = secretOf("after")
	}
	pc.SetAnnotations(annotations)
	for _, o := range []client.Object{s, pc} {
		if err := kube.Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}

// recordedName returns the name of the tailnet that the record has for the resource.
func recordedName(t *testing.T, r *permits.Store) string {
	t.Helper()
	s, err := r.Tailnet(t.Context(), "w")
	if err != nil {
		t.Fatal(err)
	}
	if s == "" {
		return ""
	}
	i, err := decodeTailnet(s)
	if err != nil {
		t.Fatal(err)
	}
	return i.Names()[0]
}
