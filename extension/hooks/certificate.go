// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

// presentingPrefix begins the names of clusters that present the client certificate of a policy's
// rule.
const presentingPrefix = policyPrefix + "client-certificate/"

// presentCertificate presents a rule's certificate to the backends of its route. A cluster that
// cannot present it gets no requests, and Envoy answers that share of the requests with 503.
func (e *policyApplier) presentCertificate(r *routev3.Route, c *ir.ClientCertificate) {
	if r.GetRoute() == nil {
		// Envoy answers the request itself.
		return
	}
	a := xds.OwnAction(r)
	if a.GetWeightedClusters() == nil {
		a.ClusterSpecifier = &routev3.RouteAction_Cluster{Cluster: e.presentingCluster(a.GetCluster(), c)}
	}
	served := a.GetCluster() != "" && a.GetCluster() != invalidCluster
	if w := proto.CloneOf(a.GetWeightedClusters()); w != nil {
		a.ClusterSpecifier = &routev3.RouteAction_WeightedClusters{WeightedClusters: w}
		for _, entry := range w.GetClusters() {
			entry.Name = e.presentingCluster(entry.GetName(), c)
			served = served || entry.GetName() != invalidCluster
		}
	}
	if !served {
		r.Action = xds.Answer(http.StatusServiceUnavailable)
	}
}

// presentingCluster returns the name of a copy of the cluster that presents the certificate.
func (e *policyApplier) presentingCluster(cluster string, c *ir.ClientCertificate) string {
	name := presentingPrefix + c.Secret.String() + "/" + strings.TrimPrefix(cluster, ir.OursPrefix)
	if e.clusters[name] != nil {
		return name
	}
	pair, source := e.snapshot.Certificates().KeyPair(c), e.find(cluster)
	if pair == nil || source == nil || !strings.HasPrefix(cluster, ir.OursPrefix) {
		// Only Envoy Gateway knows the endpoints of other clusters.
		return invalidCluster
	}
	secret := xds.Certificate(c.Secret, pair)
	copied, err := xds.Present(source, name, secret.GetName())
	if err != nil || copied == nil || copied.ValidateAll() != nil {
		return invalidCluster
	}
	e.clusters[name], e.secrets[secret.GetName()] = copied, secret
	return name
}

// attachClientCertificates makes the extension's clusters present the certificate of the Gateway,
// unless a policy's rule chooses another. If the certificate cannot be presented, the clusters get
// no endpoints.
func (t *translation) attachClientCertificates(r Resources) Resources {
	if !t.snapshot.Certificates().Exist() {
		return r
	}
	gateways := gatewaysOf(r)
	if t.merged(gateways) {
		return t.separateCertificates(r, gateways)
	}
	if len(gateways) == 0 {
		return r
	}
	certificate := t.snapshot.Certificates().Get(gateways[0])
	if certificate == nil {
		return r
	}
	secret := t.certificateSecret(certificate)
	r.Clusters = slices.Clone(r.Clusters)
	for i, c := range r.Clusters {
		if t.presents(c) {
			r.Clusters[i] = t.withCertificate(c, secret)
		}
	}
	return r
}

// presents reports whether a cluster presents the certificate of its Gateway: it is the extension's,
// speaks TLS, and presents no certificate of a policy's rule.
func (t *translation) presents(c *clusterv3.Cluster) bool {
	_, ours := t.replaced[c.GetName()]
	ours = ours || t.joined[c.GetName()] || strings.HasPrefix(c.GetName(), ir.OursPrefix)
	return ours && !xds.Plain(c) && !strings.HasPrefix(c.GetName(), presentingPrefix)
}

// certificateSecret returns the secret with a certificate. Nil if it cannot be presented.
func (t *translation) certificateSecret(c *ir.ClientCertificate) *tlsv3.Secret {
	if c == nil {
		return nil
	}
	pair := t.snapshot.Certificates().KeyPair(c)
	if pair == nil {
		return nil
	}
	return xds.Certificate(c.Secret, pair)
}

// withCertificate returns a copy of the cluster that presents the secret. Without a secret the copy
// has no endpoints.
func (t *translation) withCertificate(c *clusterv3.Cluster, secret *tlsv3.Secret) *clusterv3.Cluster {
	if secret != nil {
		copied, err := xds.Present(c, c.GetName(), secret.GetName())
		if err == nil && copied != nil && copied.ValidateAll() == nil {
			t.secrets[secret.GetName()] = secret
			return copied
		}
	}
	copied, err := xds.Withhold(c)
	if err != nil {
		// Marshalling a message that Envoy Gateway has sent does not fail.
		return &clusterv3.Cluster{Name: c.GetName()}
	}
	return copied
}

// withSecrets appends the secrets that clusters present or trust, sorted by name, after all others. A
// secret that an earlier run added stays while a cluster uses it.
func (t *translation) withSecrets(r Resources) Resources {
	i := slices.IndexFunc(r.Secrets, func(s *tlsv3.Secret) bool { return xds.IsSecret(s.GetName()) })
	if i < 0 && len(t.secrets) == 0 {
		return r
	}
	used := map[string]bool{}
	for _, c := range r.Clusters {
		for _, n := range xds.SecretsOf(c) {
			used[n] = true
		}
	}
	maps.DeleteFunc(t.secrets, func(n string, _ *tlsv3.Secret) bool { return !used[n] })
	out := make([]*tlsv3.Secret, 0, len(r.Secrets)+len(t.secrets))
	for _, s := range r.Secrets {
		switch {
		case !xds.IsSecret(s.GetName()):
			out = append(out, s)
		case t.secrets[s.GetName()] == nil && used[s.GetName()]:
			t.secrets[s.GetName()] = s
		}
	}
	first := len(out)
	for _, s := range t.secrets {
		out = append(out, s)
	}
	slices.SortFunc(out[first:], func(a, b *tlsv3.Secret) int { return cmp.Compare(a.GetName(), b.GetName()) })
	r.Secrets = out
	return r
}

// addAuthorities adds the secrets with the authorities of a target's certificates.
func addAuthorities(secrets map[string]*tlsv3.Secret, s *ir.Shape) {
	for _, a := range xds.Authorities(s) {
		secrets[a.GetName()] = a
	}
}

// find returns the extension's cluster of a name.
func (e *policyApplier) find(name string) *clusterv3.Cluster {
	if c := e.policyClusters[name]; c != nil {
		return c
	}
	if e.byName == nil {
		e.byName = make(map[string]*clusterv3.Cluster, len(e.message))
		for _, c := range e.message {
			e.byName[c.GetName()] = c
		}
	}
	return e.byName[name]
}
