// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package access asks the API server which permissions this process has.
package access

import (
	"context"
	"strings"

	authv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// Allowed reports whether the client has all verbs on a resource in a namespace, or in all
// namespaces if that is empty. A subresource is RESOURCE/SUBRESOURCE.
func Allowed(ctx context.Context, kube client.Client, namespace string, r schema.GroupResource, verbs ...string) (bool, error) {
	resource, subresource, _ := strings.Cut(r.Resource, "/")
	for _, verb := range verbs {
		review := &authv1.SelfSubjectAccessReview{Spec: authv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authv1.ResourceAttributes{Namespace: namespace, Group: r.Group, Resource: resource, Subresource: subresource, Verb: verb},
		}}
		if err := kube.Create(ctx, review); err != nil {
			return false, errors.Wrapf(err, "cannot ask for permissions on %s", r)
		}
		if !review.Status.Allowed {
			return false, nil
		}
	}
	return true, nil
}
