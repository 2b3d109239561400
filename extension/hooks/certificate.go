// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/tailscale-gateway/tailscale-gateway/extension/index"
	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

// present a rule's certificate to the backends of its route. Without it nothing is sent
// to them: such a share of the requests is answered 503.
func (e *enforcer) present(r *routev3.Route, c *index.ClientCertificate) {
	a := r.GetRoute()
	if a == nil {
		// Envoy answers by itself.
		return
	}
	w := a.GetWeightedClusters()
	if w == nil {
		a.ClusterSpecifier = &routev3.RouteAction_Cluster{Cluster: e.presenting(a.GetCluster(), c)}
	}
	served := a.GetCluster() != "" && a.GetCluster() != invalidCluster
	for _, of := range w.GetClusters() {
		of.Name = e.presenting(of.GetName(), c)
		served = served || of.GetName() != invalidCluster
	}
	if !served {
		r.Action = xds.Answer(http.StatusServiceUnavailable)
	}
}

// presenting is the cluster in place of another one which presents the certificate.
func (e *enforcer) presenting(cluster string, c *index.ClientCertificate) string {
	name := policyPrefix + "client-certificate/" + c.Secret.String() + "/" + strings.TrimPrefix(cluster, index.OursPrefix)
	if e.clusters[name] != nil {
		return name
	}
	pair, from := e.snapshot.KeyPair(c), e.find(cluster)
	if pair == nil || from == nil || !strings.HasPrefix(cluster, index.OursPrefix) {
		// Of what is not ours Envoy Gateway has the endpoints.
		return invalidCluster
	}
	secret := xds.Certificate(c.Secret, pair)
	made, err := xds.Present(from, name, secret.GetName())
	if err != nil || made == nil || made.ValidateAll() != nil {
		return invalidCluster
	}
	e.clusters[name], e.secrets[secret.GetName()] = made, secret
	return name
}

// withSecrets that clusters present, by name after all others.
func (e *enforcer) withSecrets(in []*tlsv3.Secret) []*tlsv3.Secret {
	out := slices.DeleteFunc(slices.Clone(in), func(s *tlsv3.Secret) bool { return xds.IsCertificate(s.GetName()) })
	first := len(out)
	for _, s := range e.secrets {
		out = append(out, s)
	}
	slices.SortFunc(out[first:], func(a, b *tlsv3.Secret) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return out
}

// find a cluster of ours.
func (e *enforcer) find(name string) *clusterv3.Cluster {
	if c := e.bases[name]; c != nil {
		return c
	}
	if e.named == nil {
		e.named = make(map[string]*clusterv3.Cluster, len(e.message))
		for _, c := range e.message {
			e.named[c.GetName()] = c
		}
	}
	return e.named[name]
}
