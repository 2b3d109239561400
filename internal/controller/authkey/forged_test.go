// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package authkey

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// TestForgedSecret has a tenant write to the connection Secret which keys are the object's.
func TestForgedSecret(t *testing.T) {
	cases := map[string]struct {
		reason string
		forged map[string]string
	}{
		"ID":       {reason: "The key of another does not become the object's.", forged: map[string]string{annotationID: "theirs", annotationReplaced: "k1"}},
		"Client":   {reason: "Nor does an OAuth client.", forged: map[string]string{annotationID: "client", annotationReplaced: "k1"}},
		"Unknown":  {reason: "Nor does a key that does not exist.", forged: map[string]string{annotationID: "none", annotationReplaced: "k1"}},
		"Replaced": {reason: "The object does not replace the key of another.", forged: map[string]string{annotationReplaced: "theirs"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, authKey())
			w.settle()
			w.api.keys["theirs"] = &tailscale.Key{ID: "theirs", KeyType: tailscale.KeyTypeAuth, Description: "theirs", Created: testTime, Expires: testTime.AddDate(1, 0, 0)}
			w.api.keys["client"] = &tailscale.Key{ID: "client", KeyType: tailscale.KeyTypeOAuthClient, Description: "theirs", Created: testTime, Invalid: true}
			s := w.secret()
			maps.Copy(s.Annotations, tc.forged)
			if err := w.kube.Update(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			w.at = testTime.Add(time.Hour)
			w.settle()
			if id := xpmeta.GetExternalName(w.mg); id == "theirs" || id == "client" {
				t.Errorf("\n%s\nthe key %q became the object's", tc.reason, id)
			}
			if _, err := w.external().Delete(t.Context(), w.mg); err != nil {
				t.Fatal(err)
			}
			var valid []string
			ks, err := w.api.AuthKeys(t.Context(), tailscale.Current)
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range ks {
				valid = append(valid, k.ID)
			}
			if diff := cmp.Diff([]string{"theirs"}, valid); diff != "" {
				t.Errorf("\n%s\nvalid keys: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
