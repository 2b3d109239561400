// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"cmp"
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/controller/permits"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// A Connection is a client of one tailnet, and further settings of its config.
type Connection struct {
	// Client is never nil.
	Client *tailscale.Client

	// ClusterID distinguishes this cluster from others in the tailnet. If the config has none, it
	// is the UID of the provider config.
	ClusterID string

	// ClusterSet is the set of clusters that this cluster belongs to. Empty means none.
	ClusterSet string

	// ControlURL is the URL that nodes log in to. Empty means Tailscale's.
	ControlURL string

	// Tags are added to every key that is minted.
	Tags []string

	// Memory is of the managed resource. The zero value remembers nothing.
	Memory Memory
}

// A Memory is what the provider remembers of a managed resource where users with access to its
// namespace cannot write, unlike its annotations and its status: in its permit.
type Memory struct {
	permits     *permits.Store
	uid, config types.UID
}

// Recall returns what Remember was last called with, or "".
func (m Memory) Recall(ctx context.Context) (string, error) {
	if m.permits == nil {
		return "", nil
	}
	p, ok, err := m.permits.Get(ctx, m.uid, m.config)
	if err != nil || !ok {
		return "", errors.Wrap(err, "cannot read what the resource made")
	}
	return p.Product, nil
}

// Remember saves a text without spaces, which stands for what the resource made.
func (m Memory) Remember(ctx context.Context, product string) error {
	if m.permits == nil {
		return nil
	}
	return errors.Wrap(m.permits.Remember(ctx, m.uid, m.config, product), "cannot record what the resource made")
}

// A Connector connects managed resources to their tailnet.
type Connector struct {
	kube  client.Client
	usage resource.ModernTracker
	pool  *tailscale.Pool

	permits    *permits.Store
	hosts      tailscale.Hosts
	namespaces *namespaces

	// facts is the argument of Recording. Nil means that there are none.
	facts Facts

	// residence is the argument of Residing.
	residence Residence
}

// Facts returns what a managed resource has in its tailnet according to its annotations, and, unless
// it is being deleted, what its spec wants there.
type Facts func(mg resource.ModernManaged) ([]string, error)

// Recording returns a connector that also records the facts of a resource in its permit. A resource
// that is being deleted may clean up under that permit only with facts that were recorded before:
// users with access to the namespace can write its annotations.
func (c *Connector) Recording(f Facts) *Connector {
	out := *c
	out.facts = f
	return &out
}

// NewConnector returns a Connector. Clients come from the pool, and permits go into the store.
// ProviderConfigs may name the hosts, and those of ClusterProviderConfigs.
func NewConnector(kube client.Client, pool *tailscale.Pool, store *permits.Store, hosts tailscale.Hosts) *Connector {
	return &Connector{
		kube:       kube,
		usage:      resource.NewProviderConfigUsageTracker(kube, &v1alpha1.ProviderConfigUsage{}),
		pool:       pool,
		permits:    store,
		hosts:      hosts,
		namespaces: &namespaces{kube: kube},
	}
}

// Connect returns the connection that a managed resource refers to. Errors about credentials are of
// type *CredentialsError or come from package tailscale; the former also appear in the resource's
// Ready condition.
func (c *Connector) Connect(ctx context.Context, mg resource.ModernManaged) (*Connection, error) {
	conn, err := c.connection(ctx, mg)
	var ce *CredentialsError
	if errors.As(err, &ce) && ce.shows(mg) {
		ready := xpv2.Unavailable().WithMessage(ce.Message)
		ready.Reason = ce.Reason
		mg.SetConditions(ready)
	}
	return conn, err
}

func (c *Connector) connection(ctx context.Context, mg resource.ModernManaged) (*Connection, error) {
	deleted := xpmeta.WasDeleted(mg)
	// A namespace that is being deleted rejects new usages. A missing usage must not block the
	// deletion of its resource.
	if !deleted {
		if err := c.usage.Track(ctx, mg); err != nil && !kerrors.HasStatusCause(errors.Cause(err), corev1.NamespaceTerminatingCause) {
			return nil, errors.Wrap(err, "cannot track the use of the provider config")
		}
	}
	pc, err := c.config(ctx, mg)
	if err != nil {
		return nil, err
	}
	if err := c.checkHosts(ctx, pc); err != nil {
		return nil, c.neverPermitted(ctx, pc, mg, err)
	}
	guard, err := c.allowed(ctx, pc, mg)
	if err != nil {
		return nil, err
	}
	conn, err := c.dial(ctx, pc, deleted)
	if err != nil {
		return nil, err
	}
	if err := c.reside(ctx, pc, mg, conn.Client); err != nil {
		return nil, err
	}
	if _, machine := mg.(*v1alpha1.Machine); machine && !deleted {
		s, err := c.signer(ctx, pc)
		if err != nil {
			return nil, err
		}
		conn.Client = conn.Client.Signing(s)
	}
	conn.Client = conn.Client.Guarded(guard)
	conn.Memory = Memory{permits: c.permits, uid: mg.GetUID(), config: pc.uid}
	return conn, nil
}

// dial returns a connection without limits. It protects the credentials' Secret, unless readOnly is
// set.
func (c *Connector) dial(ctx context.Context, pc config, readOnly bool) (*Connection, error) {
	cfg, err := c.credentials(ctx, pc, readOnly)
	if err != nil {
		return nil, err
	}
	cfg.URL, cfg.Tailnet = pc.spec.APIURL, pc.spec.Tailnet
	cl, err := c.pool.Client(pc.String(), cfg)
	if err != nil {
		return nil, errors.Wrap(err, "cannot make a client of Tailscale's API")
	}
	conn := &Connection{Client: cl, ClusterID: pc.clusterID(), ClusterSet: string(pc.spec.ClusterSet), ControlURL: pc.spec.ControlURL}
	for _, t := range pc.spec.Tags {
		conn.Tags = append(conn.Tags, string(t))
	}
	return conn, nil
}

// Open returns the connection of a provider config to a caller that is no controller, with the
// rights of its kube client. It writes nothing to the cluster, and limits the hosts and Secrets of
// ProviderConfigs as Connect does: any user with access to a namespace may write one.
func (c *Connector) Open(ctx context.Context, namespace string, ref xpv2.ProviderConfigReference) (*Connection, error) {
	pc, err := c.named(ctx, namespace, ref)
	if err != nil {
		return nil, err
	}
	if w := pc.spec.Credentials.WorkloadIdentity; w != nil && w.ServiceAccountRef == nil {
		return nil, &CredentialsError{
			Reason:  meta.ReasonCredentialRejected,
			Message: fmt.Sprintf("%s %q logs in as the provider's own service account, as which only the provider can; use another credential", pc.kind, pc.name),
		}
	}
	return c.open(ctx, pc)
}

// ClusterID returns the ID of this cluster in the tailnet of a managed resource. It sends no request to the
// tailnet.
func (c *Connector) ClusterID(ctx context.Context, mg resource.ModernManaged) (string, error) {
	pc, err := c.config(ctx, mg)
	if err != nil {
		return "", err
	}
	return pc.clusterID(), nil
}

// Read returns the connection of a ClusterProviderConfig to a controller of the provider that only reads
// the tailnet. It writes nothing to the cluster.
func (c *Connector) Read(ctx context.Context, name string) (*Connection, error) {
	pc, err := c.named(ctx, "", xpv2.ProviderConfigReference{Kind: v1alpha1.ClusterProviderConfigKind, Name: name})
	if err != nil {
		return nil, err
	}
	return c.open(ctx, pc)
}

// open returns a connection to an allowed host, without limits.
func (c *Connector) open(ctx context.Context, pc config) (*Connection, error) {
	if err := c.checkHosts(ctx, pc); err != nil {
		return nil, err
	}
	return c.dial(ctx, pc, true)
}

// A config is a provider config of either kind.
type config struct {
	kind      string
	namespace string // Empty for a ClusterProviderConfig.
	name      string
	uid       types.UID
	spec      v1alpha1.ProviderConfigSpec

	annotations map[string]string
}

// ConfigName returns the name of a provider config for messages, metrics and the pool of clients.
// The namespace of a ClusterProviderConfig is empty.
func ConfigName(kind, namespace, name string) string {
	if namespace == "" {
		return kind + "/" + name
	}
	return kind + "/" + namespace + "/" + name
}

// String returns the name of the config.
func (c config) String() string { return ConfigName(c.kind, c.namespace, c.name) }

// clusterID returns the ID that distinguishes this cluster from others in the tailnet.
func (c config) clusterID() string { return cmp.Or(c.spec.ClusterID, string(c.uid)) }

// config returns the provider config that a managed resource names.
func (c *Connector) config(ctx context.Context, mg resource.ModernManaged) (config, error) {
	ref := mg.GetProviderConfigReference()
	if ref == nil {
		return config{}, errors.New("spec.providerConfigRef is not set")
	}
	return c.named(ctx, mg.GetNamespace(), *ref)
}

// named returns the provider config that an object of a namespace names.
func (c *Connector) named(ctx context.Context, namespace string, ref xpv2.ProviderConfigReference) (config, error) {
	switch ref.Kind {
	case v1alpha1.ClusterProviderConfigKind:
		pc := &v1alpha1.ClusterProviderConfig{}
		if err := c.kube.Get(ctx, types.NamespacedName{Name: ref.Name}, pc); err != nil {
			return config{}, errors.Wrapf(err, "cannot get ClusterProviderConfig %q", ref.Name)
		}
		return config{kind: ref.Kind, name: ref.Name, uid: pc.GetUID(), spec: pc.Spec, annotations: pc.GetAnnotations()}, nil
	case v1alpha1.ProviderConfigKind:
		pc := &v1alpha1.ProviderConfig{}
		if err := c.kube.Get(ctx, types.NamespacedName{Namespace: namespace, Name: ref.Name}, pc); err != nil {
			return config{}, errors.Wrapf(err, "cannot get ProviderConfig %q", ref.Name)
		}
		return config{kind: ref.Kind, namespace: pc.GetNamespace(), name: ref.Name, uid: pc.GetUID(), spec: pc.Spec, annotations: pc.GetAnnotations()}, nil
	}
	return config{}, errors.Errorf("spec.providerConfigRef.kind must be ClusterProviderConfig or ProviderConfig, not %q", ref.Kind)
}
