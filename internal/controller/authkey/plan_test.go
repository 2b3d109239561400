// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package authkey

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

var testTime = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func authKey(change ...func(*v1alpha1.AuthKey)) *v1alpha1.AuthKey {
	m := &v1alpha1.AuthKey{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "node", UID: "uid"},
		Spec: v1alpha1.AuthKeySpec{ForProvider: v1alpha1.AuthKeyParameters{
			Tags: []v1alpha1.Tag{"tag:k8s"}, Expiry: &metav1.Duration{Duration: 30 * 24 * time.Hour},
		}},
	}
	m.SetWriteConnectionSecretToReference(&xpv2.LocalSecretReference{Name: "node-key"})
	for _, f := range change {
		f(m)
	}
	return m
}

func key(id string, change ...func(*tailscale.Key)) *tailscale.Key {
	k := &tailscale.Key{
		ID: id, KeyType: tailscale.KeyTypeAuth, Description: descriptionPrefix("cluster", authKey()) + "x",
		Created: testTime.Add(-time.Hour), Expires: testTime.Add(30*24*time.Hour - time.Hour),
	}
	for _, f := range change {
		f(k)
	}
	return k
}

// holding returns a connection Secret that a key was written to some time ago.
func holding(id string, age time.Duration, change ...func(map[string]string)) *corev1.Secret {
	a := map[string]string{
		annotationID:      id,
		annotationIssued:  testTime.Add(-age).Format(time.RFC3339),
		annotationRequest: fingerprint(wanted("cluster", nil, authKey())),
	}
	for _, f := range change {
		f(a)
	}
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Annotations: a}, Data: map[string][]byte{secretKey: []byte("notasecret")}}
}

func TestMakePlan(t *testing.T) {
	used := func(k *tailscale.Key) { k.Invalid = true }
	foreign := func(k *tailscale.Key) { k.Description = "of somebody else" }
	asks := func(m *v1alpha1.AuthKey) { m.SetAnnotations(map[string]string{AnnotationReissue: "2"}) }
	cases := map[string]struct {
		reason string
		mg     *v1alpha1.AuthKey
		facts  facts
		want   plan
	}{
		"New": {
			reason: "An object without a key gets one.",
			facts:  facts{},
			want:   plan{issue: becauseNew},
		},
		"AtRest": {
			reason: "A key that matches the spec and keys of other owners are left unchanged.",
			facts:  facts{externalName: "k1", secret: holding("k1", time.Hour), recorded: key("k1"), valid: []tailscale.Key{*key("k1"), *key("k0", foreign)}},
			want:   plan{current: key("k1")},
		},
		"CrashedBeforeRecord": {
			reason: "A key of the object whose secret is lost is revoked.",
			facts:  facts{externalName: "k1", secret: holding("k1", time.Hour), recorded: key("k1"), valid: []tailscale.Key{*key("k1"), *key("k2")}},
			want:   plan{current: key("k1"), revoke: []string{"k2"}},
		},
		"CrashedBeforeRename": {
			reason: "The Secret takes precedence while the external name is that of the previous key.",
			facts: facts{
				externalName: "k0", secret: holding("k1", time.Hour, func(a map[string]string) { a[annotationReplaced] = "k0" }),
				recorded: key("k1"), valid: []tailscale.Key{*key("k0"), *key("k1")},
			},
			want: plan{current: key("k1"), rename: true, revoke: []string{"k0"}},
		},
		"Adopted": {
			reason: "The secret of a key in the user's annotation is unknown, so another key replaces it immediately.",
			facts: facts{externalName: "k9", recorded: key("k9", foreign, func(k *tailscale.Key) { k.Created = testTime }),
				valid: []tailscale.Key{*key("k9", foreign)}},
			want: plan{current: key("k9", foreign, func(k *tailscale.Key) { k.Created = testTime }), lost: true, issue: becauseLost},
		},
		"SecretGone": {
			reason: "A key whose Secret was deleted is replaced.",
			facts:  facts{externalName: "k1", recorded: key("k1"), valid: []tailscale.Key{*key("k1")}},
			want:   plan{current: key("k1"), lost: true, issue: becauseLost},
		},
		"SecretGoneAgain": {
			reason: "A key is not replaced more often than every 30 seconds.",
			facts:  facts{externalName: "k1", recorded: key("k1", func(k *tailscale.Key) { k.Created = testTime.Add(-time.Second) })},
			want:   plan{current: key("k1", func(k *tailscale.Key) { k.Created = testTime.Add(-time.Second) }), lost: true, issue: becauseLost, later: true},
		},
		"Revoked": {
			reason: "A revoked key does not exist.",
			facts:  facts{externalName: "k1", secret: holding("k1", time.Hour), recorded: key("k1", used, func(k *tailscale.Key) { k.Revoked = testTime })},
			want:   plan{issue: becauseNew},
		},
		"Expired": {
			reason: "A key that expired unused does not exist.",
			facts:  facts{externalName: "k1", secret: holding("k1", time.Hour), recorded: key("k1", used, func(k *tailscale.Key) { k.Expires = testTime })},
			want:   plan{issue: becauseNew},
		},
		"Used": {
			reason: "A used key is not replaced by default.",
			facts:  facts{externalName: "k1", secret: holding("k1", time.Hour), recorded: key("k1", used)},
			want:   plan{current: key("k1", used), used: true},
		},
		"UsedLongAgo": {
			reason: "A used key is not replaced when it expires.",
			mg: authKey(func(m *v1alpha1.AuthKey) {
				m.Status.AtProvider = v1alpha1.AuthKeyObservation{ID: "k1", Used: true}
			}),
			facts: facts{externalName: "k1", secret: holding("k1", time.Hour), recorded: key("k1", used, func(k *tailscale.Key) { k.Expires = testTime })},
			want:  plan{current: key("k1", used, func(k *tailscale.Key) { k.Expires = testTime }), used: true},
		},
		"UsedAndRenewed": {
			reason: "A used key is replaced with renewWhenUsed.",
			mg:     authKey(func(m *v1alpha1.AuthKey) { m.Spec.ForProvider.RenewWhenUsed = true }),
			facts:  facts{externalName: "k1", secret: holding("k1", time.Hour), recorded: key("k1", used)},
			want:   plan{current: key("k1", used), used: true, issue: becauseUsed},
		},
		"Asked": {
			reason: "Another token requests another key.",
			mg:     authKey(asks),
			facts:  facts{externalName: "k1", secret: holding("k1", time.Minute, func(a map[string]string) { a[annotationReissued] = "1" }), recorded: key("k1")},
			want:   plan{current: key("k1"), issue: becauseAsked},
		},
		"AskedOnce": {
			reason: "A token causes one key.",
			mg:     authKey(asks),
			facts:  facts{externalName: "k1", secret: holding("k1", time.Minute, func(a map[string]string) { a[annotationReissued] = "2" }), recorded: key("k1")},
			want:   plan{current: key("k1")},
		},
		"AskedTooSoon": {
			reason: "Keys are not created faster than permitted.",
			mg:     authKey(asks),
			facts:  facts{externalName: "k1", secret: holding("k1", 29*time.Second), recorded: key("k1")},
			want:   plan{current: key("k1"), issue: becauseAsked, later: true},
		},
		"Changed": {
			reason: "A key cannot be changed, so a changed spec causes another key immediately.",
			mg:     authKey(func(m *v1alpha1.AuthKey) { m.Spec.ForProvider.Ephemeral = true }),
			facts:  facts{externalName: "k1", secret: holding("k1", time.Second), recorded: key("k1")},
			want:   plan{current: key("k1"), issue: becauseChanged},
		},
		"Expiring": {
			reason: "A key is replaced a third of its lifetime before it expires.",
			facts: facts{externalName: "k1", secret: holding("k1", time.Hour),
				recorded: key("k1", func(k *tailscale.Key) { k.Expires = testTime.Add(10 * 24 * time.Hour) })},
			want: plan{current: key("k1", func(k *tailscale.Key) { k.Expires = testTime.Add(10 * 24 * time.Hour) }), issue: becauseExpiring},
		},
		"NotExpiringYet": {
			reason: "A key is not replaced a second sooner.",
			facts: facts{externalName: "k1", secret: holding("k1", time.Hour),
				recorded: key("k1", func(k *tailscale.Key) { k.Expires = testTime.Add(10*24*time.Hour + time.Second) })},
			want: plan{current: key("k1", func(k *tailscale.Key) { k.Expires = testTime.Add(10*24*time.Hour + time.Second) })},
		},
		"RotateBefore": {
			reason: "A key is replaced as long before its expiry as the spec says.",
			mg: authKey(func(m *v1alpha1.AuthKey) {
				m.Spec.ForProvider.RotateBefore = &metav1.Duration{Duration: 29 * 24 * time.Hour}
			}),
			facts: facts{externalName: "k1", secret: holding("k1", time.Hour),
				recorded: key("k1", func(k *tailscale.Key) { k.Expires = testTime.Add(29 * 24 * time.Hour) })},
			want: plan{current: key("k1", func(k *tailscale.Key) { k.Expires = testTime.Add(29 * 24 * time.Hour) }), issue: becauseExpiring},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			mg := tc.mg
			if mg == nil {
				mg = authKey()
			}
			tc.facts.prefix, tc.facts.request, tc.facts.at = descriptionPrefix("cluster", mg), wanted("cluster", nil, mg), testTime
			tc.facts.issued = issuedIn(tc.facts.secret)
			got := makePlan(mg, tc.facts)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(plan{})); diff != "" {
				t.Errorf("\n%s\nmakePlan(...): -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestWanted(t *testing.T) {
	long := authKey(func(m *v1alpha1.AuthKey) { m.Name = strings.Repeat("x", 60) + ".0" })
	r := wanted("cluster", []string{"tag:z", "tag:k8s"}, long)
	if len(r.Description) > maxDescription || notAllowed.MatchString(strings.ReplaceAll(r.Description, " ", "")) {
		t.Errorf("wanted(...): the API does not accept the description %q", r.Description)
	}
	if diff := cmp.Diff([]string{"tag:k8s", "tag:z"}, r.Tags); diff != "" {
		t.Errorf("wanted(...): the provider config's tags are added: -want, +got:\n%s", diff)
	}
	if !r.Preauthorized || r.Reusable || r.Ephemeral {
		t.Errorf("wanted(...): want a preauthorized single-use key of a node that stays, got %+v", r)
	}
	other := long.DeepCopy()
	other.Name = strings.Repeat("x", 60) + ".1"
	if descriptionPrefix("cluster", other) == descriptionPrefix("cluster", long) || descriptionPrefix("other", long) == descriptionPrefix("cluster", long) {
		t.Error("descriptionPrefix(...): want another one for another object or cluster")
	}
	filled := authKey(func(m *v1alpha1.AuthKey) { m.Spec.ForProvider.Description = strings.Repeat("d", 30) })
	if d := wanted("cluster", nil, filled).Description; !strings.HasSuffix(d, strings.Repeat("d", 30)) {
		t.Errorf("wanted(...): the longest description that the schema allows is cut: %q", d)
	}
}

func TestPoll(t *testing.T) {
	ready := func(m *v1alpha1.AuthKey) { m.SetConditions(xpv2.Available()) }
	expires := func(d time.Duration) func(m *v1alpha1.AuthKey) {
		return func(m *v1alpha1.AuthKey) { m.Status.AtProvider.Expires = &metav1.Time{Time: testTime.Add(d)} }
	}
	cases := map[string]struct {
		reason string
		mg     *v1alpha1.AuthKey
		want   time.Duration
	}{
		"NotReady": {reason: "An object that is not ready is observed soon.", mg: authKey(), want: pollUnsettled},
		"AtRest":   {reason: "An object that is ready is observed at the usual interval.", mg: authKey(ready, expires(30*24*time.Hour)), want: time.Minute},
		"Due":      {reason: "A key is replaced when that is due.", mg: authKey(ready, expires(10*24*time.Hour+time.Second)), want: 2 * time.Second},
		"Asked": {
			reason: "A request for another key is handled as soon as permitted.",
			mg:     authKey(ready, func(m *v1alpha1.AuthKey) { m.SetAnnotations(map[string]string{AnnotationReissue: "1"}) }),
			want:   pollUnsettled,
		},
		"Used": {
			reason: "A used key is not due.",
			mg:     authKey(ready, expires(time.Second), func(m *v1alpha1.AuthKey) { m.Status.AtProvider.Used = true }),
			want:   time.Minute,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := poll(tc.mg, time.Minute, testTime); got != tc.want {
				t.Errorf("\n%s\npoll(...): want %s, got %s", tc.reason, tc.want, got)
			}
		})
	}
}
