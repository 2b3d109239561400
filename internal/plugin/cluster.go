// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"tailscale.com/kube/kubetypes"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	xpmeta "github.com/crossplane/crossplane-runtime/v2/pkg/meta"
	"github.com/crossplane/crossplane-runtime/v2/pkg/resource"
	apiextv1 "github.com/crossplane/crossplane/apis/v2/apiextensions/v1"
	pkgv1 "github.com/crossplane/crossplane/apis/v2/pkg/v1"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/nodestate"
	"github.com/tailscale-gateway/tailscale-gateway/internal/orphans"
)

// Kinds that the plugin reads without their Go types.
var (
	gatewayKind = gatewayv1alpha1.SchemeGroupVersion.WithKind("TailscaleGateway")
	routeKind   = schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "HTTPRoute"}
)

// connect returns a client with the rights of the caller.
func connect(f kubeFlags) (client.Client, error) {
	cfg, err := f.config()
	if err != nil {
		return nil, err
	}
	s, err := newScheme()
	if err != nil {
		return nil, err
	}
	c, err := client.New(cfg, client.Options{Scheme: s})
	return c, errors.Wrap(err, "cannot connect to the API server")
}

func newScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme, pkgv1.AddToScheme, apiextv1.AddToScheme} {
		if err := add(s); err != nil {
			return nil, errors.Wrap(err, "cannot build scheme")
		}
	}
	return s, nil
}

// list lists objects of all namespaces. A kind that the cluster does not have has no objects. Any
// other error ends the command: without a complete list nothing shows which objects live.
func list(ctx context.Context, kube client.Reader, kind string, l client.ObjectList, o ...client.ListOption) error {
	_, err := listKnown(ctx, kube, kind, l, o...)
	return err
}

// listKnown is list, and reports whether the cluster has the kind.
func listKnown(ctx context.Context, kube client.Reader, kind string, l client.ObjectList, o ...client.ListOption) (bool, error) {
	err := kube.List(ctx, l, o...)
	if apimeta.IsNoMatchError(err) {
		return false, nil
	}
	return true, errors.Wrapf(err, "cannot list objects of kind %s in all namespaces, without which nothing shows what lives", kind)
}

// marking returns empty lists of the managed kinds whose objects leave marks in a tailnet.
func marking() map[string]resource.ManagedList {
	return map[string]resource.ManagedList{
		v1alpha1.VIPServiceKind:        &v1alpha1.VIPServiceList{},
		v1alpha1.PolicyFragmentKind:    &v1alpha1.PolicyFragmentList{},
		v1alpha1.MachineKind:           &v1alpha1.MachineList{},
		v1alpha1.AuthKeyKind:           &v1alpha1.AuthKeyList{},
		v1alpha1.OAuthClientKind:       &v1alpha1.OAuthClientList{},
		v1alpha1.FederatedIdentityKind: &v1alpha1.FederatedIdentityList{},
		v1alpha1.DeviceKind:            &v1alpha1.DeviceList{},
	}
}

// A cluster is what a cluster has.
type cluster struct {
	living    orphans.Living
	fragments []*v1alpha1.PolicyFragment
	secrets   []orphans.Secret
	routes    []orphans.Route
}

// readCluster reads all objects that count.
func readCluster(ctx context.Context, kube client.Reader) (cluster, error) {
	c := cluster{}
	names := map[string]orphans.Names{}
	c.living.IDs = orphans.Names{}
	// Secrets come first: one that is made meanwhile has a Machine in the later list.
	if err := c.readSecrets(ctx, kube); err != nil {
		return c, err
	}
	for kind, l := range marking() {
		if err := list(ctx, kube, kind, l); err != nil {
			return c, err
		}
		names[kind] = orphans.Names{}
		for _, o := range l.GetItems() {
			names[kind][o.GetNamespace()+"/"+o.GetName()] = true
			for _, id := range []string{xpmeta.GetExternalName(o), meta.NodeIDOf(o)} {
				if id != "" {
					c.living.IDs[id] = true
				}
			}
			switch m := o.(type) {
			case *v1alpha1.PolicyFragment:
				c.fragments = append(c.fragments, m)
			case *v1alpha1.Machine:
				if id := m.Status.AtProvider.NodeID; id != "" {
					c.living.IDs[id] = true
				}
			}
		}
	}
	c.living.VIPServices, c.living.Machines = names[v1alpha1.VIPServiceKind], names[v1alpha1.MachineKind]
	c.living.AuthKeys, c.living.OAuthClients = names[v1alpha1.AuthKeyKind], names[v1alpha1.OAuthClientKind]
	c.living.FederatedIdentities = names[v1alpha1.FederatedIdentityKind]
	return c, c.readGateways(ctx, kube)
}

func (c *cluster) readGateways(ctx context.Context, kube client.Reader) error {
	gateways, routes := &metav1.PartialObjectMetadataList{}, &metav1.PartialObjectMetadataList{}
	// Routes first: a route that is made meanwhile has a Gateway in the later list.
	routes.SetGroupVersionKind(listKind(routeKind))
	if err := list(ctx, kube, routeKind.Kind, routes, client.HasLabels{meta.LabelGenerated}); err != nil {
		return err
	}
	gateways.SetGroupVersionKind(listKind(gatewayKind))
	if err := list(ctx, kube, gatewayKind.Kind, gateways); err != nil {
		return err
	}
	c.living.Gateways = orphans.Names{}
	for n := range gateways.Items {
		c.living.Gateways[gateways.Items[n].GetNamespace()+"/"+gateways.Items[n].GetName()] = true
	}
	for n := range routes.Items {
		r := &routes.Items[n]
		c.routes = append(c.routes, orphans.Route{
			Namespace: r.GetNamespace(), Name: r.GetName(), Created: r.GetCreationTimestamp().Time,
			Gateway: r.GetLabels()[meta.LabelGatewayNamespace] + "/" + r.GetLabels()[meta.LabelGateway],
		})
	}
	return nil
}

func listKind(k schema.GroupVersionKind) schema.GroupVersionKind {
	k.Kind += "List"
	return k
}

// readSecrets reads the Secrets of proxies. It keeps no value of a config Secret, and only the
// public key of a state.
func (c *cluster) readSecrets(ctx context.Context, kube client.Reader) error {
	for _, t := range []string{meta.SecretTypeState, meta.SecretTypeConfig} {
		l := &corev1.SecretList{}
		if err := list(ctx, kube, "Secret", l, client.MatchingLabels{meta.LabelSecretType: t}); err != nil {
			return err
		}
		for n := range l.Items {
			s := &l.Items[n]
			o := orphans.Secret{Namespace: s.GetNamespace(), Name: s.GetName(), Type: t, Machine: s.GetLabels()[meta.LabelMachine], Created: s.GetCreationTimestamp().Time}
			if o.Machine == "" {
				continue
			}
			if d := s.GetDeletionTimestamp(); d != nil {
				o.Deleted = d.Time
			}
			if t == meta.SecretTypeState {
				o.NodeID, o.NodeKey = nodestate.NodeID(s.Data), nodestate.NodeKey(s.Data)
				_, o.Domain, _ = strings.Cut(strings.TrimSuffix(string(s.Data[kubetypes.KeyDeviceFQDN]), "."), ".")
			}
			c.secrets = append(c.secrets, o)
		}
	}
	return nil
}

// owners returns the marks of the living PolicyFragments for a cluster ID.
func (c *cluster) owners(clusterID string) orphans.Names {
	out := orphans.Names{}
	for _, f := range c.fragments {
		out[clusterID+"/"+f.GetNamespace()+"/"+f.GetName()] = true
		out[xpmeta.GetExternalName(f)] = true
	}
	return out
}

// kubeSystem is the namespace whose UID is the cluster ID of a TailscaleTailnet that sets none.
const kubeSystem = "kube-system"

func systemUID(ctx context.Context, kube client.Reader) (string, error) {
	ns := &metav1.PartialObjectMetadata{}
	ns.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := kube.Get(ctx, types.NamespacedName{Name: kubeSystem}, ns)
	return string(ns.GetUID()), errors.Wrapf(err, "cannot get namespace %s, whose UID is the default cluster ID", kubeSystem)
}
