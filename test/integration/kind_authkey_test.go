// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build integration

package integration

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/test/lifecycle"
)

func init() { addCase(authKeyCase()) }

func authKeyCase() kindCase[*v1alpha1.AuthKey] {
	request := func(tags ...string) tsclient.CreateKeyRequest {
		r := tsclient.CreateKeyRequest{ExpirySeconds: 3600, Description: "of somebody else"}
		r.Capabilities.Devices.Create.Tags = tags
		return r
	}
	return kindCase[*v1alpha1.AuthKey]{
		Kind:   v1alpha1.AuthKeyKind,
		Scope:  "auth_keys",
		Shared: lifecycle.AuthKey(caseNames),
		Others: func(e *env) func() (any, error) {
			k, err := e.tailnet.Keys().CreateAuthKey(e.Context(), request("tag:k8s"))
			e.must(err)
			return func() (any, error) { return e.tailnet.Keys().Get(e.Context(), k.ID) }
		},
		Count: func(e *env) int {
			all, err := e.tailnet.Keys().List(e.Context(), true)
			e.must(err)
			return len(all)
		},
		Foreign: func(e *env, _ *v1alpha1.AuthKey) string {
			k, err := e.tailnet.Keys().CreateAuthKey(e.Context(), request("tag:web"))
			e.must(err)
			return k.ID
		},
		Connection: []string{"authkey"},
		Skip: map[step]string{
			stepRefuse: "a key has no name, so no other key can be mistaken for it",
		},
		Bad: []badInput[*v1alpha1.AuthKey]{
			{Name: "ExpiryTooLong", Break: func(mg *v1alpha1.AuthKey) {
				mg.Spec.ForProvider.Expiry = &metav1.Duration{Duration: 91 * 24 * time.Hour}
			}, Want: []string{"spec.forProvider.expiry", "90 days"}},
			{Name: "ExpiryTooShort", Break: func(mg *v1alpha1.AuthKey) {
				mg.Spec.ForProvider.Expiry = &metav1.Duration{Duration: time.Second}
			}, Want: []string{"spec.forProvider.expiry", "from 1m"}},
			{Name: "RotatesAlways", Break: func(mg *v1alpha1.AuthKey) {
				mg.Spec.ForProvider.RotateBefore = &metav1.Duration{Duration: time.Hour}
			}, Want: []string{"spec.forProvider", "rotateBefore must be shorter than expiry"}},
			{Name: "NoSecret", Break: func(mg *v1alpha1.AuthKey) { mg.SetWriteConnectionSecretToReference(nil) }, Want: []string{"spec", "writeConnectionSecretToRef must be set"}},
			{Name: "BadTag", Break: func(mg *v1alpha1.AuthKey) { mg.Spec.ForProvider.Tags = []v1alpha1.Tag{"k8s"} }, Want: []string{"spec.forProvider.tags[0]", "must be tag:"}},
			{Name: "BadDescription", Break: func(mg *v1alpha1.AuthKey) { mg.Spec.ForProvider.Description = "made by us!" }, Want: []string{"spec.forProvider.description", "should match"}},
			{Name: "DescriptionTooLong", Break: func(mg *v1alpha1.AuthKey) { mg.Spec.ForProvider.Description = strings.Repeat("x", 31) }, Want: []string{"spec.forProvider.description", "30"}},
		},
	}
}
