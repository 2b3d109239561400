// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/event"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/allow"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/clients"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// relook is when to look again at tailnets that do not allow a namespace, whose labels may change.
const relook = time.Minute

// A granter knows what a namespace may do with a tailnet. It returns a *clients.CredentialsError if the namespace
// may not use it.
type granter interface {
	Grant(ctx context.Context, namespace string, ref xpv2.ProviderConfigReference) (*allow.Grant, error)
}

// tailnetProblem returns why proxies of a namespace could join no tailnet, or nil. An empty name stands for the only
// tailnet that allows the namespace, as in a TailscaleEndpoints. So nothing is created in a namespace that may use
// none.
func tailnetProblem(ctx context.Context, kube client.Reader, grants granter, namespace, name string) (*problem, error) {
	configs := &v1alpha1.ClusterProviderConfigList{}
	if err := kube.List(ctx, configs); err != nil {
		return nil, errors.Wrap(err, "cannot list ClusterProviderConfigs")
	}
	exists, allowed := false, []string(nil)
	for i := range configs.Items {
		c := &configs.Items[i]
		if c.GetDeletionTimestamp() != nil || name != "" && c.GetName() != name {
			continue
		}
		exists = true
		_, err := grants.Grant(ctx, namespace, xpv2.ProviderConfigReference{Kind: v1alpha1.ClusterProviderConfigKind, Name: c.GetName()})
		var refused *clients.CredentialsError
		switch {
		case err == nil:
			allowed = append(allowed, c.GetName())
		case !errors.As(err, &refused):
			return nil, err
		}
	}
	return judge(namespace, name, exists, allowed), nil
}

// judge returns the problem of a namespace that some tailnets allow. It names no tailnet that does not.
func judge(namespace, name string, exists bool, allowed []string) *problem {
	slices.Sort(allowed)
	switch {
	case len(allowed) == 1:
		return nil
	case len(allowed) > 1:
		return &problem{reason: event.Reason(meta.ReasonAmbiguous), wait: relook, message: fmt.Sprintf("Several TailscaleTailnets allow namespace %q, such as %q and %q; name one in the annotation %s", namespace, allowed[0], allowed[1], meta.AnnotationTailnet)}
	case name != "" && !exists:
		return &problem{reason: event.Reason(meta.ReasonTailnetNotFound), wait: relook, message: fmt.Sprintf("There is no TailscaleTailnet %q; correct the annotation %s, or create it", name, meta.AnnotationTailnet)}
	case name != "":
		return &problem{reason: event.Reason(meta.ReasonNamespaceNotAllowed), wait: relook, message: fmt.Sprintf("TailscaleTailnet %q does not allow namespace %q; ask who manages it to allow the namespace in spec.allowedNamespaces, or name another in the annotation %s", name, namespace, meta.AnnotationTailnet)}
	}
	return &problem{reason: event.Reason(meta.ReasonNamespaceNotAllowed), wait: relook, message: fmt.Sprintf("No TailscaleTailnet allows namespace %q; ask who manages one to allow the namespace in spec.allowedNamespaces, or create one", namespace)}
}
