// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/allow"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/access"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/permits"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// A NeverAllowedError reports that a managed resource that is being deleted may not clean up: its
// namespace may not use the config, and the provider has no record that it ever could.
type NeverAllowedError struct{ Message string }

// Error implements error.
func (e *NeverAllowedError) Error() string { return e.Message }

// allowed returns an error if a managed resource may not use the config, or if its spec exceeds the
// config's grant to its namespace. Otherwise it returns what the client may write; nil means
// everything. A resource that is being deleted is also allowed if its current spec and facts were
// allowed before, because it must clean up what it made. The provider's own record decides that: the
// resource's annotations and status can be written by any user with access to its namespace.
//
// Connect calls it each time, so a namespace that loses its grant is refused from the next poll on.
func (c *Connector) allowed(ctx context.Context, pc config, mg resource.ModernManaged) (tailscale.Guard, error) {
	if inCredentialsNamespace(pc, mg) {
		return nil, c.permit(ctx, pc, mg)
	}
	claims, err := c.claims(mg)
	if err != nil {
		return nil, err
	}
	var p permits.Permit
	permitted := false
	if xpmeta.WasDeleted(mg) {
		if p, permitted, err = c.permits.Get(ctx, mg.GetUID(), pc.uid); err != nil {
			return nil, errors.Wrap(err, "cannot read whether the resource was allowed")
		}
		permitted = permitted && (p.Claims == "" || covers(p.Claims, claims))
	}
	grant, err := c.grant(ctx, pc, mg.GetNamespace())
	if permitted {
		return c.cleaning(pc, mg, grant, err), nil
	}
	if err != nil {
		return nil, err
	}
	if grant == nil {
		return nil, refuse(mg, meta.ReasonNamespaceNotAllowed, notAllowed(pc, mg.GetNamespace()), adviceNotAllowed)
	}
	if v := grant.Managed(mg); v != nil {
		return nil, refuse(mg, meta.ReasonNotGranted, fmt.Sprintf("%s %q: %v", pc.kind, pc.name, v), "")
	}
	return c.guard(pc, mg, grant), c.permit(ctx, pc, mg)
}

const adviceNotAllowed = "ask who manages it to allow the namespace in spec.allowedNamespaces, or use another"

func notAllowed(pc config, namespace string) string {
	return fmt.Sprintf("%s %q may not be used in namespace %q", pc.kind, pc.name, namespace)
}

// refuse returns the error of a resource that is not allowed, and sets its condition. A resource
// that is being deleted has nothing to clean up.
func refuse(mg resource.ModernManaged, reason xpv2.ConditionReason, message, advice string) error {
	if xpmeta.WasDeleted(mg) {
		return &NeverAllowedError{Message: message + " and never was by this object as it is"}
	}
	if advice != "" {
		message += "; " + advice
	}
	return &CredentialsError{Reason: reason, Message: message}
}

// neverPermitted turns an error into a NeverAllowedError for a resource that is being deleted and
// was never allowed, so that its deletion does not wait. Errors that are not about the config stay
// as they are.
func (c *Connector) neverPermitted(ctx context.Context, pc config, mg resource.ModernManaged, err error) error {
	var ce *CredentialsError
	if !xpmeta.WasDeleted(mg) || !errors.As(err, &ce) {
		return err
	}
	permitted, perr := c.permits.Has(ctx, mg.GetUID(), pc.uid)
	if perr != nil || permitted {
		return errors.Join(err, perr)
	}
	return &NeverAllowedError{Message: ce.Message}
}

// inCredentialsNamespace reports whether a resource is the Tailnet in the namespace of the
// credentials. That Tailnet shows the state of the config itself and may always use it.
func inCredentialsNamespace(pc config, mg resource.ModernManaged) bool {
	_, ok := mg.(*v1alpha1.Tailnet)
	return ok && pc.spec.Credentials.Namespace() == mg.GetNamespace()
}

// permit records that a resource is allowed, unless it is being deleted.
func (c *Connector) permit(ctx context.Context, pc config, mg resource.ModernManaged) error {
	if xpmeta.WasDeleted(mg) {
		return nil
	}
	gvk, err := c.kube.GroupVersionKindFor(mg)
	if err != nil {
		return errors.Wrap(err, "cannot get the kind of the resource")
	}
	claims, err := c.claims(mg)
	if err != nil {
		return err
	}
	// Saved before anything is made: without the record the resource could never clean up.
	p := permits.Permit{Kind: gvk.Kind, Namespace: mg.GetNamespace(), Config: pc.uid, Claims: claims}
	return errors.Wrap(c.permits.Add(ctx, mg.GetUID(), p), "cannot record that the resource is allowed")
}

// claims returns a text that stands for what a resource claims of the tailnet: a hash of its spec, and
// one of each of its facts.
func (c *Connector) claims(mg resource.ModernManaged) (string, error) {
	spec := allow.Claims(mg)
	if c.facts == nil {
		return spec, nil
	}
	facts, err := c.facts(mg)
	if err != nil {
		return "", errors.Wrap(err, "cannot read what the resource has in the tailnet")
	}
	hashes := make([]string, len(facts))
	for i, f := range facts {
		sum := sha256.Sum256([]byte(f))
		hashes[i] = hex.EncodeToString(sum[:8])
	}
	slices.Sort(hashes)
	return strings.Join(append([]string{spec}, slices.Compact(hashes)...), ","), nil
}

// covers reports whether recorded claims have the spec and all facts of others.
func covers(recorded, claims string) bool {
	existing, want := strings.Split(recorded, ","), strings.Split(claims, ",")
	return existing[0] == want[0] && !slices.ContainsFunc(want[1:], func(f string) bool { return !slices.Contains(existing[1:], f) })
}

// cleaning returns what a resource that is being deleted and was allowed may write: what the grant
// allows now, and what it allowed then.
func (c *Connector) cleaning(pc config, mg resource.ModernManaged, grant *allow.Grant, err error) tailscale.Guard {
	a := pc.spec.AllowedNamespaces
	if a == nil || a.From != v1alpha1.NamespacesFromGrants {
		return nil
	}
	if err != nil || grant == nil {
		grant = allow.None(pc.spec.Tags)
	}
	return c.guard(pc, mg, grant.Keeping(mg))
}

// Grant returns what a namespace may currently do with a provider config. It returns a
// *CredentialsError if the namespace may not use the config.
func (c *Connector) Grant(ctx context.Context, namespace string, ref xpv2.ProviderConfigReference) (*allow.Grant, error) {
	pc, err := c.named(ctx, namespace, ref)
	if err != nil {
		return nil, err
	}
	g, err := c.grant(ctx, pc, namespace)
	if err == nil && g == nil {
		return nil, &CredentialsError{Reason: meta.ReasonNamespaceNotAllowed, Message: notAllowed(pc, namespace) + "; " + adviceNotAllowed}
	}
	return g, err
}

// grant returns what a namespace may currently do with the config, or nil if the namespace may not
// use it.
func (c *Connector) grant(ctx context.Context, pc config, namespace string) (*allow.Grant, error) {
	var labels map[string]string
	if allow.ByLabels(pc.spec.AllowedNamespaces) {
		var err error
		if labels, err = c.namespaces.labels(ctx, namespace); err != nil {
			return nil, err
		}
	}
	g, err := allow.Of(pc.spec.AllowedNamespaces, pc.spec.Tags, namespace, labels)
	if err != nil {
		return nil, &CredentialsError{
			Reason:  meta.ReasonInvalidSelector,
			Message: fmt.Sprintf("%s %q: %s: %v", pc.kind, pc.name, allow.SelectorPath(pc.spec.AllowedNamespaces), err),
		}
	}
	return g, nil
}

// namespaces reads labels of namespaces from the cache, as soon as the provider has the permission.
// A watch without permission would never fill the cache.
type namespaces struct {
	kube client.Client

	// mu protects may.
	mu  sync.Mutex
	may bool
}

// labels returns the labels of a namespace.
func (n *namespaces) labels(ctx context.Context, name string) (map[string]string, error) {
	may, err := n.readable(ctx)
	if err != nil {
		return nil, err
	}
	if !may {
		return nil, &CredentialsError{
			Reason:  meta.ReasonNamespaceNotAllowed,
			Message: "The provider may not read namespaces, whose labels spec.allowedNamespaces of its config asks for; install or upgrade the chart tailscale-gateway",
		}
	}
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := n.kube.Get(ctx, types.NamespacedName{Name: name}, o); err != nil {
		return nil, errors.Wrapf(err, "cannot get namespace %q", name)
	}
	return o.GetLabels(), nil
}

// readable reports whether the provider may read namespaces. After the first positive answer it
// does not ask the API server again.
func (n *namespaces) readable(ctx context.Context) (bool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.may {
		return true, nil
	}
	var err error
	n.may, err = access.Allowed(ctx, n.kube, "", corev1.Resource("namespaces"), "list", "watch")
	return n.may, err
}
