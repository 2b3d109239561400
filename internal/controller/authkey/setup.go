// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package authkey

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/crossplane/crossplane-runtime/v2/pkg/reconciler/managed"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/clients"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/kinds"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/secrets"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/setup"
)

// pollUnsettled is the poll interval of an object that waits for another key.
const pollUnsettled = 10 * time.Second

// Kind returns how AuthKey objects are managed.
func Kind(_ setup.Options) kinds.Kind[*v1alpha1.AuthKey] {
	return kinds.Kind[*v1alpha1.AuthKey]{
		GroupVersionKind: v1alpha1.AuthKeyGroupVersionKind,
		Object:           &v1alpha1.AuthKey{},
		List:             func() resource.ManagedList { return &v1alpha1.AuthKeyList{} },
		Connect: func(_ context.Context, env kinds.Env, c *clients.Connection, _ *v1alpha1.AuthKey) (managed.TypedExternalClient[*v1alpha1.AuthKey], error) {
			return &external{api: c.Client.Keys(), clusterID: c.ClusterID, tags: c.Tags, kube: env.Kube, record: env.Record, clock: time.Now}, nil
		},
		Poll: func(mg resource.Managed, interval time.Duration) time.Duration { return poll(mg, interval, time.Now()) },
		// A deleted connection Secret must be written again immediately.
		Watch: func(b *builder.Builder, env kinds.Env) *builder.Builder {
			owner := handler.EnqueueRequestForOwner(env.Kube.Scheme(), env.Kube.RESTMapper(), &v1alpha1.AuthKey{}, handler.OnlyControllerOwner())
			return b.Watches(&corev1.Secret{}, owner, builder.OnlyMetadata, builder.WithPredicates(secrets.OfType(secretType)))
		},
	}
}

// poll returns when an AuthKey is observed again: when its key must be replaced, if that is before
// the next poll.
func poll(mg resource.Managed, interval time.Duration, at time.Time) time.Duration {
	k, ok := mg.(*v1alpha1.AuthKey)
	if !ok {
		return interval
	}
	o := k.Status.AtProvider
	token := k.GetAnnotations()[AnnotationReissue]
	if k.GetCondition(xpv2.TypeReady).Status != corev1.ConditionTrue || token != "" && token != o.Reissued {
		return min(interval, pollUnsettled)
	}
	if o.Expires == nil || o.Used {
		return interval
	}
	if due := o.Expires.Add(-rotateBefore(k)).Sub(at); due > 0 {
		return min(interval, due+time.Second)
	}
	return min(interval, pollUnsettled)
}
