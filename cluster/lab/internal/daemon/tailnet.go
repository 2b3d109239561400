// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"tailscale.com/client/local"
	tsclient "tailscale.com/client/tailscale/v2"
	"tailscale.com/ipn"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/component"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/host"
	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/plan"
)

// DefaultClient is the client that every tailnet of a lab has.
const DefaultClient = "client"

// nicenessOutside is the niceness of what is not on a cluster's nodes in reality, so that a busy cluster
// does not take the processors from it: Tailscale's control plane and a user's tailscaled. A tailscaled that
// gets no processor for seconds fails its own netcheck, rebinds its sockets, and forgets the ways to
// all peers (tailscale.com v1.102.5 wgengine/magicsock, updateEndpoints).
const nicenessOutside = -5

// clientName matches valid names of machines of the tailnet.
var clientName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// policy is the default policy of a simulated tailnet: all devices reach each other. It
// approves no hosts of services, like the policy of a new tailnet.
const policy = `{
  // The policy of a tailnet of the lab.
  "tagOwners": {
    "tag:k8s-operator": [], // The OAuth client's own tag.
    "tag:k8s":          ["tag:k8s-operator"],
    "tag:client":       ["tag:k8s-operator"],
    // Of the examples.
    "tag:app":          ["tag:k8s-operator"],
    "tag:sensor":       ["tag:k8s-operator"],
    "tag:ci":           ["tag:k8s-operator"],
    "tag:k8s-proxy":    ["tag:k8s-operator"],
    "tag:web":          ["tag:k8s-operator"],
    // Of examples/design.
    "tag:api":              ["tag:k8s-operator"],
    "tag:auto-provisioned": ["tag:k8s-operator"],
    "tag:database":         ["tag:k8s-operator"],
    "tag:east-region":      ["tag:k8s-operator"],
    "tag:production":       ["tag:k8s-operator"],
    "tag:web-proxy":        ["tag:k8s-operator"],
    "tag:web-service":      ["tag:k8s-operator"],
  },
  "grants": [
    {"src": ["*"], "dst": ["*"], "ip": ["*"]},
  ],
}
`

// switches are those of a simulated tailnet. Control moves the addresses of a service to
// another host 15 s after the host withdrew or disconnected, as Tailscale's operator assumes
// (tailscale.com kube/services, services.go).
const switches = `{"failoverDelay": "15s"}`

// SecretFile returns the file with the OAuth client's secret.
func SecretFile(p host.Paths, t plan.Tailnet) string {
	return filepath.Join(p.Tailnet(t.Name), "client-secret")
}

// apiKeyFile returns the file with an API access token of the tailnet's owner.
func apiKeyFile(p host.Paths, t plan.Tailnet) string {
	return filepath.Join(p.Tailnet(t.Name), "api-key")
}

// writeTailnet writes the files that a tailnet's simulator reads.
func writeTailnet(p host.Paths, t plan.Tailnet, policyFile string) error {
	if err := os.MkdirAll(p.Tailnet(t.Name), 0o700); err != nil {
		return errors.Wrap(err, "cannot make the tailnet's folder")
	}
	body := []byte(policy)
	if policyFile != "" {
		var err error
		if body, err = os.ReadFile(policyFile); err != nil {
			return errors.Wrap(err, "cannot read policy")
		}
	}
	if err := os.WriteFile(filepath.Join(p.Tailnet(t.Name), "policy.hujson"), body, 0o644); err != nil { // No secret.
		return errors.Wrap(err, "cannot write policy")
	}
	for file, secret := range map[string]string{
		SecretFile(p, t): "tskey-client-" + t.ClientID + "-" + rand.Text(),
		apiKeyFile(p, t): "tskey-api-" + rand.Text(),
	} {
		if err := os.WriteFile(file, []byte(secret), 0o600); err != nil {
			return errors.Wrap(err, "cannot write a credential of the tailnet")
		}
	}
	return nil
}

// simulator returns the process that simulates a tailnet. The first one also serves the
// front of the ACME server, which has Let's Encrypt's limits.
func simulator(p host.Paths, t plan.Tailnet, hub plan.Hub, binary string) component.Component {
	c := component.Component{
		Name: "tailnetsim-" + t.Name, Program: "tailnetsim", Namespace: plan.TailnetNamespace, Niceness: nicenessOutside,
		Command: []string{
			binary,
			"--listen", t.HostPort(),
			"--stun", net.JoinHostPort(t.Address.String(), "3478"),
			"--domain", t.Domain,
			"--tailnet", t.Organization,
			"--client-id", t.ClientID,
			"--client-secret-file", SecretFile(p, t),
			"--api-key-file", apiKeyFile(p, t),
			"--policy", filepath.Join(p.Tailnet(t.Name), "policy.hujson"),
			"--state", filepath.Join(p.Tailnet(t.Name), "state.json"),
			"--sim-admin",
			"--switches", switches,
		},
		Ready: component.Check{URL: t.URL + "/key?v=100"},
	}
	if t.Index == 0 {
		c.Command = append(c.Command,
			"--dns", plan.PublicDNS,
			"--acme-listen", hub.ACME(),
			"--acme-directory", plan.ACMEServerDirectory,
			"--acme-cert-file", acmeFile(p, ".crt"),
			"--acme-key-file", acmeFile(p, ".key"),
		)
	}
	return c
}

// apiClient returns a client of a tailnet's API, with the owner's key, through its forward.
func (d *Daemon) apiClient(t plan.Tailnet) (*tsclient.Client, error) {
	key, err := os.ReadFile(apiKeyFile(d.cfg.Paths, t))
	if err != nil {
		return nil, errors.Wrap(err, "cannot read the owner's API key")
	}
	u, err := url.Parse("http://" + d.forwardTo(ForwardTailnet+t.Name))
	if err != nil {
		return nil, errors.Wrap(err, "cannot parse the API's address")
	}
	return &tsclient.Client{BaseURL: u, Tailnet: "-", APIKey: string(key)}, nil
}

// mintKey creates an auth key for one client of a tailnet. A client without tags belongs
// to the owner.
func (d *Daemon) mintKey(ctx context.Context, t plan.Tailnet, name string, tags []string) (string, error) {
	c, err := d.apiClient(t)
	if err != nil {
		return "", err
	}
	req := tsclient.CreateKeyRequest{ExpirySeconds: 600, Description: "lab client " + name}
	req.Capabilities.Devices.Create.Preauthorized = true
	req.Capabilities.Devices.Create.Tags = tags
	key, err := c.Keys().CreateAuthKey(ctx, req)
	if err != nil {
		return "", errors.Wrapf(err, "cannot create auth key for tailnet client %q", name)
	}
	return key.Key, nil
}

// client returns the process of a tailnet client: a real tailscaled in userspace mode.
func client(p host.Paths, t plan.Tailnet, bin map[string]string, name string) component.Component {
	dir, socket := p.Client(t.Name, name), p.ClientSocket(t.Name, name)
	return component.Component{
		Name: "client-" + t.Name + "-" + name, Program: "tailscaled", Namespace: plan.ClientNamespace, Niceness: nicenessOutside,
		Command: []string{
			bin["tailscaled"],
			"--config", filepath.Join(dir, "config.json"),
			"--no-logs-no-support",
			"--port", "0",
			"--socket", socket,
			"--statedir", dir,
			"--tun", "userspace-networking",
		},
		Env:   []string{"TS_DISABLE_PORTMAPPER=1", "TS_ASSUME_NETWORK_UP_FOR_TEST=1", "TS_PANIC_IF_HIT_MAIN_CONTROL=1"},
		Ready: component.Check{Socket: socket},
	}
}

// clientServer returns the server behind every client: a userspace tailscaled forwards
// connections that it does not serve itself to the ports of its machine.
func clientServer(bin map[string]string) component.Component {
	return component.Component{
		Name: "client-server", Program: "agnhost", Namespace: plan.ClientNamespace,
		Command: []string{
			bin["agnhost"], "netexec",
			"--http-port", strconv.Itoa(plan.ClientHTTPPort),
			"--udp-port", strconv.Itoa(plan.ClientUDPPort),
		},
		Ready: component.Check{URL: "http://" + net.JoinHostPort(plan.ClientAddress, strconv.Itoa(plan.ClientHTTPPort)) + "/healthz"},
	}
}

// clientGRPCServer returns the server of gRPC behind every client. Like in Kubernetes' image, it serves HTTP, too.
func clientGRPCServer(bin map[string]string) component.Component {
	return component.Component{
		Name: "client-grpc-server", Program: "agnhost", Namespace: plan.ClientNamespace,
		Command: []string{
			bin["agnhost"], "grpc-health-checking",
			"--port", strconv.Itoa(plan.ClientGRPCPort),
			"--http-port", strconv.Itoa(plan.ClientGRPCPort + 1),
		},
		Ready: component.Check{URL: "http://" + net.JoinHostPort(plan.ClientAddress, strconv.Itoa(plan.ClientGRPCPort+1)) + "/make-serving"},
	}
}

// enableRoutes lets peers use all routes that a client advertises, as an admin
// would.
func (d *Daemon) enableRoutes(ctx context.Context, t plan.Tailnet, name string, routes []string) error {
	c, err := d.apiClient(t)
	if err != nil {
		return err
	}
	all, err := c.Devices().List(ctx)
	if err != nil {
		return errors.Wrap(err, "cannot list devices")
	}
	for _, d := range all {
		if d.Hostname == name {
			return errors.Wrapf(c.Devices().SetSubnetRoutes(ctx, d.NodeID, routes), "cannot enable routes of tailnet client %q", name)
		}
	}
	return errors.Errorf("cannot find the device of tailnet client %q", name)
}

// writeClient writes the configuration with which a tailscaled joins. It accepts the tailnet's
// DNS, as users' clients do; in userspace mode that does not change the machine.
func writeClient(p host.Paths, t plan.Tailnet, name, key string, routes []string) error {
	cfg := ipn.ConfigVAlpha{Version: "alpha0", Locked: "false", ServerURL: &t.URL, AuthKey: &key, Hostname: &name, AcceptDNS: "true"}
	for _, r := range routes {
		prefix, err := netip.ParsePrefix(r)
		if err != nil {
			return errors.Wrapf(err, "cannot parse route %q", r)
		}
		cfg.AdvertiseRoutes = append(cfg.AdvertiseRoutes, prefix)
	}
	b, err := json.Marshal(cfg) //nolint:gosec // The file must contain the key; its mode is 0600.
	if err != nil {
		return errors.Wrap(err, "cannot encode client's configuration")
	}
	dir := p.Client(t.Name, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return errors.Wrap(err, "cannot make client's folder")
	}
	return errors.Wrap(os.WriteFile(filepath.Join(dir, "config.json"), b, 0o600), "cannot write client's configuration")
}

// joined waits until a client is part of its tailnet.
func joined(ctx context.Context, socket, name string, say func(string)) error {
	lc := &local.Client{Socket: socket, UseSocketOnly: true}
	return until(ctx, time.Minute, say, func(ctx context.Context) error {
		st, err := lc.StatusWithoutPeers(ctx)
		if err != nil {
			return errors.Wrapf(err, "cannot get status of tailnet client %q", name)
		}
		if st.BackendState != ipn.Running.String() {
			return errors.Errorf("tailnet client %q is in state %s", name, st.BackendState)
		}
		return nil
	})
}
