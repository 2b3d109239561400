// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/extension/credentials"
	"github.com/tailscale-gateway/tailscale-gateway/extension/serve"
	"github.com/tailscale-gateway/tailscale-gateway/test/standalone"
)

// clientName is the name in Envoy Gateway's certificate.
const clientName = "extension-client"

// Certificates are those of an extension and its clients, as its chart creates them.
type Certificates struct {
	// Secret is the Secret for Envoy Gateway.
	Secret *corev1.Secret

	server, envoy string
}

// NewCertificates writes certificates to a folder. Names are the names by which Envoy Gateway
// connects to the extension.
func NewCertificates(dir string, names ...string) (*Certificates, error) {
	at := time.Now()
	a, err := credentials.NewAuthority("extension", at)
	if err != nil {
		return nil, err
	}
	server, err := a.Server(append(slices.Clone(names), standalone.EndpointServer), at)
	if err != nil {
		return nil, err
	}
	client, err := a.Client(clientName, at)
	if err != nil {
		return nil, err
	}
	envoy, err := a.Client(standalone.EndpointClient, at)
	if err != nil {
		return nil, err
	}
	out := &Certificates{
		Secret: &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: clientName},
			Type:       corev1.SecretTypeTLS,
			Data:       map[string][]byte{corev1.TLSCertKey: slices.Concat(client.Cert, a.Cert), corev1.TLSPrivateKeyKey: client.Key},
		},
		server: filepath.Join(dir, "server"),
		envoy:  filepath.Join(dir, "envoy"),
	}
	for folder, p := range map[string]credentials.Pair{out.server: server, out.envoy: envoy} {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return nil, errors.Wrap(err, "cannot create a folder of certificates")
		}
		for name, b := range map[string][]byte{corev1.TLSCertKey: p.Cert, corev1.TLSPrivateKeyKey: p.Key, "ca.crt": a.Cert} {
			if err := os.WriteFile(filepath.Join(folder, name), b, 0o600); err != nil {
				return nil, errors.Wrap(err, "cannot write a certificate")
			}
		}
	}
	if err := os.MkdirAll(filepath.Join(out.envoy, "server"), 0o700); err != nil {
		return nil, errors.Wrap(err, "cannot create a folder of certificates")
	}
	return out, errors.Wrap(os.WriteFile(filepath.Join(out.envoy, "server", corev1.TLSCertKey), a.Cert, 0o600), "cannot write the authority's certificate")
}

// Bootstrap returns the bootstrap of Envoys that present the certificates.
func (c *Certificates) Bootstrap() (string, error) { return standalone.Bootstrap(c.envoy) }

// authority returns the file of the authority for clients' certificates.
func (c *Certificates) authority() string { return filepath.Join(c.server, "ca.crt") }

// Flags returns the flags of an extension that presents the certificates and requires them of
// clients.
func (c *Certificates) Flags() []string {
	return []string{
		"--hooks-tls=" + c.server, "--hooks-client-ca=" + c.authority(), "--hooks-client-name=" + clientName,
		"--eds-tls=" + c.server, "--eds-client-ca=" + c.authority(), "--eds-client-name=" + standalone.EndpointClient,
		"--eds-client-tls=" + c.envoy, "--eds-server-name=" + standalone.EndpointServer,
	}
}

// options returns the options of a server of hooks that presents and requires the same
// certificates.
func (c *Certificates) options() (serve.Options, error) {
	cert, err := serve.NewCertificate(c.server)
	if err != nil {
		return serve.Options{}, err
	}
	clients, err := serve.ClientsOf(c.authority(), clientName)
	return serve.Options{Credentials: serve.Credentials(cert.Get, clients), MaxMessage: serve.HookMessage}, err
}
