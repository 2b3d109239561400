// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/allow"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/common"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/permits"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// A NeverAllowedError says that a managed resource that is being deleted has no leave to
// clean up: its namespace may not use the config, and the provider has not recorded that
// it ever might.
type NeverAllowedError struct{ Message string }

// Error implements error.
func (e *NeverAllowedError) Error() string { return e.Message }

// allowed returns an error if a managed resource may not use the config. One that is
// being deleted may also if it was allowed before: it must clean up what it made. Whether
// it was says the provider's own record, for what the resource says of itself, whoever
// may write in its namespace has written.
//
// It is asked at each connection: who loses leave is refused from the next poll on.
func (c *Connector) allowed(ctx context.Context, pc config, mg resource.ModernManaged) error {
	if xpmeta.WasDeleted(mg) {
		once, err := c.permits.Has(ctx, mg.GetUID(), pc.uid)
		if err != nil || once {
			return errors.Wrap(err, "cannot read whether the resource was allowed")
		}
	}
	may, err := c.may(ctx, pc, mg)
	switch {
	case err != nil:
		return err
	case may && xpmeta.WasDeleted(mg):
		return nil
	case may:
		gvk, err := c.kube.GroupVersionKindFor(mg)
		if err != nil {
			return errors.Wrap(err, "cannot get the kind of the resource")
		}
		// Before anything is made: what a lost write hides would never be cleaned up.
		p := permits.Permit{Kind: gvk.Kind, Namespace: mg.GetNamespace(), Config: pc.uid}
		return errors.Wrap(c.permits.Add(ctx, mg.GetUID(), p), "cannot record that the resource is allowed")
	case xpmeta.WasDeleted(mg):
		return &NeverAllowedError{
			Message: fmt.Sprintf("%s %q may not be used in namespace %q and never was by this object", pc.kind, pc.name, mg.GetNamespace()),
		}
	}
	return &CredentialsError{
		Reason: meta.ReasonNamespaceNotAllowed,
		Message: fmt.Sprintf("%s %q may not be used in namespace %q; ask who manages it to allow the namespace in spec.allowedNamespaces, or use another",
			pc.kind, pc.name, mg.GetNamespace()),
	}
}

// may tells whether the namespace of a managed resource may use the config now. So may
// the Tailnet beside the credentials, which tells about the config itself.
func (c *Connector) may(ctx context.Context, pc config, mg resource.ModernManaged) (bool, error) {
	if _, ok := mg.(*v1alpha1.Tailnet); ok && pc.spec.Credentials.Namespace() == mg.GetNamespace() {
		return true, nil
	}
	var labels map[string]string
	if allow.ByLabels(pc.spec.AllowedNamespaces) {
		var err error
		if labels, err = c.namespaces.labels(ctx, mg.GetNamespace()); err != nil {
			return false, err
		}
	}
	ok, err := allow.Namespace(pc.spec.AllowedNamespaces, mg.GetNamespace(), labels)
	if err != nil {
		return false, &CredentialsError{
			Reason:  meta.ReasonInvalidSelector,
			Message: fmt.Sprintf("%s %q: spec.allowedNamespaces.selector: %v", pc.kind, pc.name, err),
		}
	}
	return ok, nil
}

// namespaces reads labels of namespaces from the cache, once the provider may. A watch
// that is not allowed would never fill the cache.
type namespaces struct {
	kube client.Client

	// mu guards may.
	mu  sync.Mutex
	may bool
}

// labels of a namespace.
func (n *namespaces) labels(ctx context.Context, name string) (map[string]string, error) {
	may, err := n.readable(ctx)
	if err != nil {
		return nil, err
	}
	if !may {
		return nil, &CredentialsError{
			Reason:  meta.ReasonNamespaceNotAllowed,
			Message: "The provider may not read namespaces, whose labels spec.allowedNamespaces of its config asks for; apply cluster/manifests/rbac.yaml",
		}
	}
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := n.kube.Get(ctx, types.NamespacedName{Name: name}, o); err != nil {
		return nil, errors.Wrapf(err, "cannot get namespace %q", name)
	}
	return o.GetLabels(), nil
}

// readable tells whether the provider may read namespaces. Once it may it is not asked
// again.
func (n *namespaces) readable(ctx context.Context) (bool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.may {
		return true, nil
	}
	var err error
	n.may, err = common.May(ctx, n.kube, "", corev1.Resource("namespaces"), "list", "watch")
	return n.may, err
}
