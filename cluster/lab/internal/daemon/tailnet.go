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

const (
	// ClientID is the simulated tailnet's OAuth client.
	ClientID = "lab"
	// DefaultClient is the tailnet client that every lab has.
	DefaultClient = "client"
)

// clientName is what a machine of the tailnet may be called.
var clientName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// policy of the simulated tailnet unless another is given: proxies may host any
// service of their tag, and everyone reaches everyone.
const policy = `{
  // The policy of the lab's tailnet.
  "tagOwners": {
    "tag:k8s-operator": [], // The OAuth client's own tag.
    "tag:k8s":          ["tag:k8s-operator"],
    "tag:client":       ["tag:k8s-operator"],
    // Of the examples.
    "tag:app":          ["tag:k8s-operator"],
    "tag:sensor":       ["tag:k8s-operator"],
  },
  "autoApprovers": {
    "services": {"tag:k8s": ["tag:k8s"]},
  },
  "grants": [
    {"src": ["*"], "dst": ["*"], "ip": ["*"]},
  ],
}
`

// SecretFile holds the OAuth client's secret.
func SecretFile(p host.Paths) string { return filepath.Join(p.Tailnet(), "client-secret") }

// ClientSocket is where a tailnet client's LocalAPI is reached.
func ClientSocket(p host.Paths, name string) string {
	return filepath.Join(p.Run, "client-"+name+".sock")
}

// writeTailnet writes the files that the simulator reads. A secret that is
// there stays, as users may have put it into a cluster.
func writeTailnet(p host.Paths, policyFile string) error {
	if err := os.MkdirAll(p.Tailnet(), 0o700); err != nil {
		return errors.Wrap(err, "cannot make the tailnet's folder")
	}
	body := []byte(policy)
	if policyFile != "" {
		var err error
		if body, err = os.ReadFile(policyFile); err != nil {
			return errors.Wrap(err, "cannot read policy")
		}
	}
	if err := os.WriteFile(filepath.Join(p.Tailnet(), "policy.hujson"), body, 0o644); err != nil { // No secret.
		return errors.Wrap(err, "cannot write policy")
	}
	secret := "tskey-client-" + ClientID + "-" + rand.Text()
	return errors.Wrap(os.WriteFile(SecretFile(p), []byte(secret), 0o600), "cannot write secret of OAuth client")
}

// simulator is the process that is the tailnet.
func simulator(p host.Paths, binary string) component.Component {
	return component.Component{
		Name: "tailnetsim", Program: "tailnetsim", Namespace: plan.TailnetNamespace,
		Command: []string{
			binary,
			"--listen", plan.HubAddress + ":80",
			"--stun", plan.HubAddress + ":3478",
			"--dns", plan.PublicDNS,
			"--domain", plan.TailnetDomain,
			"--client-id", ClientID,
			"--client-secret-file", SecretFile(p),
			"--policy", filepath.Join(p.Tailnet(), "policy.hujson"),
			"--state", filepath.Join(p.Tailnet(), "state.json"),
			"--sim-admin",
		},
		Ready: component.Check{URL: plan.TailnetURL + "/key?v=100"},
	}
}

func apiClient(api, secretFile string) (*tsclient.Client, error) {
	secret, err := os.ReadFile(secretFile)
	if err != nil {
		return nil, errors.Wrap(err, "cannot read secret of OAuth client")
	}
	u, err := url.Parse("http://" + api)
	if err != nil {
		return nil, errors.Wrap(err, "cannot parse the API's address")
	}
	return &tsclient.Client{BaseURL: u, Tailnet: "-", Auth: &tsclient.OAuth{ClientID: ClientID, ClientSecret: string(secret)}}, nil
}

// mintKey makes a key for one client of the lab. The API is reached by its
// forward, as the OAuth library dials on its own.
func mintKey(ctx context.Context, api, secretFile, name string) (string, error) {
	c, err := apiClient(api, secretFile)
	if err != nil {
		return "", err
	}
	req := tsclient.CreateKeyRequest{ExpirySeconds: 600, Description: "lab client " + name}
	req.Capabilities.Devices.Create.Preauthorized = true
	req.Capabilities.Devices.Create.Tags = []string{"tag:client"}
	key, err := c.Keys().CreateAuthKey(ctx, req)
	if err != nil {
		return "", errors.Wrapf(err, "cannot make key for tailnet client %q", name)
	}
	return key.Key, nil
}

// client is a real tailscaled in userspace mode that joined the tailnet.
func client(p host.Paths, bin map[string]string, name string) component.Component {
	dir := p.Client(name)
	return component.Component{
		Name: "client-" + name, Program: "tailscaled", Namespace: plan.ClientNamespace,
		Command: []string{
			bin["tailscaled"],
			"--config", filepath.Join(dir, "config.json"),
			"--no-logs-no-support",
			"--port", "0",
			"--socket", ClientSocket(p, name),
			"--statedir", dir,
			"--tun", "userspace-networking",
		},
		Env:   []string{"TS_DISABLE_PORTMAPPER=1", "TS_ASSUME_NETWORK_UP_FOR_TEST=1", "TS_PANIC_IF_HIT_MAIN_CONTROL=1"},
		Ready: component.Check{Socket: ClientSocket(p, name)},
	}
}

// clientServer is what answers behind every client: a userspace tailscaled hands
// connections that no one serves to the machine's own ports.
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

// enableRoutes lets peers use all routes that a client advertises, as an admin
// does.
func enableRoutes(ctx context.Context, api, secretFile, name string, routes []string) error {
	c, err := apiClient(api, secretFile)
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

// writeClient writes the configuration that makes a tailscaled join.
func writeClient(p host.Paths, name, key string, routes []string) error {
	server, hostname := plan.TailnetURL, name
	cfg := ipn.ConfigVAlpha{Version: "alpha0", Locked: "false", ServerURL: &server, AuthKey: &key, Hostname: &hostname, AcceptDNS: "false"}
	for _, r := range routes {
		prefix, err := netip.ParsePrefix(r)
		if err != nil {
			return errors.Wrapf(err, "cannot parse route %q", r)
		}
		cfg.AdvertiseRoutes = append(cfg.AdvertiseRoutes, prefix)
	}
	b, err := json.Marshal(cfg) //nolint:gosec // The key is what the file is for; its mode is 0600.
	if err != nil {
		return errors.Wrap(err, "cannot encode client's configuration")
	}
	if err := os.MkdirAll(p.Client(name), 0o700); err != nil {
		return errors.Wrap(err, "cannot make client's folder")
	}
	return errors.Wrap(os.WriteFile(filepath.Join(p.Client(name), "config.json"), b, 0o600), "cannot write client's configuration")
}

// joined waits until a client is part of the tailnet.
func joined(ctx context.Context, p host.Paths, name string, say func(string)) error {
	lc := &local.Client{Socket: ClientSocket(p, name), UseSocketOnly: true}
	return until(ctx, time.Minute, say, func(ctx context.Context) error {
		st, err := lc.StatusWithoutPeers(ctx)
		if err != nil {
			return errors.Wrapf(err, "cannot ask tailnet client %q", name)
		}
		if st.BackendState != ipn.Running.String() {
			return errors.Errorf("tailnet client %q is in state %s", name, st.BackendState)
		}
		return nil
	})
}
