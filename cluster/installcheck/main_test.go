// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	authv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

func TestCheck(t *testing.T) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "crossplane-system", Name: "crossplane"}}
	errBoom := errors.New("boom")

	type want struct {
		err     error
		missing []string
	}
	cases := map[string]struct {
		reason  string
		objects []runtime.Object
		review  func(authv1.ResourceAttributes) (bool, error)
		want    want
	}{
		"Complete": {
			reason:  "A cluster that has all passes.",
			objects: []runtime.Object{account},
			review:  func(authv1.ResourceAttributes) (bool, error) { return true, nil },
		},
		"MissingPermission": {
			reason:  "Each missing permission is named by verb and resource.",
			objects: []runtime.Object{account},
			review: func(a authv1.ResourceAttributes) (bool, error) {
				return a.Resource != "networkpolicies" || a.Verb != "watch", nil
			},
			want: want{err: cmpopts.AnyError, missing: []string{"missing  Crossplane may watch networkpolicies.networking.k8s.io"}},
		},
		"MissingPodMonitors": {
			reason:  "Kinds that are composed only on request are needed, too.",
			objects: []runtime.Object{account},
			review: func(a authv1.ResourceAttributes) (bool, error) {
				return a.Resource != "podmonitors" || a.Verb != "create", nil
			},
			want: want{err: cmpopts.AnyError, missing: []string{"missing  Crossplane may create podmonitors.monitoring.coreos.com"}},
		},
		"MissingGateways": {
			reason:  "A Gateway must be read to find its Service.",
			objects: []runtime.Object{account},
			review: func(a authv1.ResourceAttributes) (bool, error) {
				return a.Resource != "gateways" || a.Verb != "watch", nil
			},
			want: want{err: cmpopts.AnyError, missing: []string{"missing  Crossplane may watch gateways.gateway.networking.k8s.io"}},
		},
		"MissingProvider": {
			reason:  "Missing permissions of the provider are reported.",
			objects: []runtime.Object{account},
			review: func(a authv1.ResourceAttributes) (bool, error) {
				return a.Resource != "machines" && (a.Resource != "statefulsets" || a.Verb != "patch"), nil
			},
			want: want{err: cmpopts.AnyError, missing: []string{
				"missing  The provider may delete machines.tailnet.gateway.tailscale.com",
				"missing  The provider may patch statefulsets.apps",
				"missing  The provider may create machines.tailnet.gateway.tailscale.com/write",
				"missing  The provider may update machines.tailnet.gateway.tailscale.com/write",
				"missing  The provider may delete machines.tailnet.gateway.tailscale.com/write",
			}},
		},
		"UsersPermissions": {
			reason:  "Permissions of users are not required of Crossplane.",
			objects: []runtime.Object{account},
			review: func(a authv1.ResourceAttributes) (bool, error) {
				// The provider watches the kinds that users scale.
				return a.Group != "gateway.tailscale.com" || a.Verb == "list" || a.Verb == "watch", nil
			},
		},
		"NoCrossplane": {
			reason: "A missing Crossplane is reported.",
			review: func(authv1.ResourceAttributes) (bool, error) { return true, nil },
			want:   want{err: cmpopts.AnyError, missing: []string{"missing  Crossplane's service account crossplane-system/crossplane"}},
		},
		"ErrReview": {
			reason:  "A review that fails is an error, not a missing permission.",
			objects: []runtime.Object{account},
			review:  func(authv1.ResourceAttributes) (bool, error) { return false, errBoom },
			want:    want{err: errBoom},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			kube := fake.NewClientset(tc.objects...)
			kube.PrependReactor("create", "subjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
				r := a.(clienttesting.CreateAction).GetObject().(*authv1.SubjectAccessReview).DeepCopy()
				ok, err := tc.review(*r.Spec.ResourceAttributes)
				r.Status.Allowed = ok
				return true, r, err
			})
			out := &bytes.Buffer{}
			r := &report{out: out}
			err := check(t.Context(), kube, "crossplane-system", "crossplane", "provider-tailscale", r)
			if err == nil {
				err = r.result()
			}
			if diff := cmp.Diff(tc.want.err, err, cmpopts.EquateErrors()); diff != "" {
				t.Errorf("%s\ncheck(...): -want error, +got error:\n%s", tc.reason, diff)
			}
			var missing []string
			for line := range strings.Lines(out.String()) {
				if strings.HasPrefix(line, "missing") {
					missing = append(missing, strings.TrimSpace(line))
				}
			}
			if diff := cmp.Diff(tc.want.missing, missing); diff != "" {
				t.Errorf("%s\ncheck(...): -want missing, +got missing:\n%s", tc.reason, diff)
			}
		})
	}
}
