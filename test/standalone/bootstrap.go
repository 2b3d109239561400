// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/package/charts"
	envoygateway "github.com/tailscale-gateway/tailscale-gateway/package/envoy-gateway"
)

// Names in the project's bootstrap that a machine without a cluster lacks.
const (
	// EndpointServer is the name in the certificate of the endpoint server.
	EndpointServer = charts.Extension + "-eds.envoy-gateway-system.svc"

	// EndpointClient is the name in Envoys' certificate.
	EndpointClient = charts.Extension + "-envoy"

	bootstrapFolder = "/etc/tailscale-gateway"
)

// Bootstrap returns the project's bootstrap, for an endpoint server on 127.0.0.1. The folder
// replaces the mount of Envoys: it has tls.crt and tls.key, and in server/tls.crt the authority of
// the server's certificate.
func Bootstrap(folder string) (string, error) {
	var values struct {
		Config struct {
			EnvoyGateway struct {
				EnvoyProxy struct {
					Bootstrap struct{ Value string }
				}
			}
		}
	}
	if err := yaml.Unmarshal(envoygateway.Values, &values); err != nil {
		return "", errors.Wrap(err, "cannot read Envoy Gateway's values")
	}
	for name, b := range map[string][]byte{"certificate.yaml": charts.EnvoyCertificate, "authority.yaml": charts.EnvoyAuthority} {
		b = bytes.ReplaceAll(b, []byte(bootstrapFolder), []byte(folder))
		if err := os.WriteFile(filepath.Join(folder, name), b, 0o600); err != nil {
			return "", errors.Wrap(err, "cannot write Envoy's files")
		}
	}
	out := values.Config.EnvoyGateway.EnvoyProxy.Bootstrap.Value
	for _, pair := range [][2]string{{EndpointServer + ".cluster.local", "127.0.0.1"}, {bootstrapFolder, folder}} {
		if !strings.Contains(out, pair[0]) {
			return "", errors.Errorf("the bootstrap does not name %s", pair[0])
		}
		out = strings.ReplaceAll(out, pair[0], pair[1])
	}
	return out, nil
}
