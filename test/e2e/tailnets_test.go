// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	neturl "net/url"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tailscale.com/client/tailscale/v2"
)

// A tailnet of the lab, by its name there.
type tailnet string

// The tailnet of the quickstart, and another one independent of it.
const (
	tailnetOne tailnet = "one"
	tailnetTwo tailnet = "two"
)

// labEnvs is the output of `lab env`, by tailnet.
var labEnvs sync.Map

// env returns an address or a file of the lab for the tailnet.
func (n tailnet) env(t *testing.T, key string) string {
	t.Helper()
	cached, ok := labEnvs.Load(n)
	if !ok {
		out, err := exec.CommandContext(t.Context(), lab, "--tailnet="+string(n), "env").Output()
		if err != nil {
			t.Fatalf("cannot read the lab's environment: %v", err)
		}
		env := map[string]string{}
		for line := range strings.Lines(string(out)) {
			name, quoted, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "export "), "=")
			if env[name], err = strconv.Unquote(quoted); err != nil {
				t.Fatalf("cannot parse the lab's environment: %v", err)
			}
		}
		cached, _ = labEnvs.LoadOrStore(n, env)
	}
	v := cached.(map[string]string)[key]
	if v == "" {
		t.Fatalf("the lab has no %s", key)
	}
	return v
}

// A state holds the objects of a simulated tailnet.
type state struct {
	Devices []struct {
		NodeID   string   `json:"nodeId"`
		Hostname string   `json:"hostname"`
		Online   bool     `json:"online"`
		Tags     []string `json:"tags"`
	} `json:"devices"`
	Keys []struct {
		ID          string `json:"id"`
		Description string `json:"description"`
		Invalid     bool   `json:"invalid"`
	} `json:"keys"`
	Services []struct {
		Name string `json:"name"`

		// Primary is the node that has the service's addresses now.
		Primary string `json:"primary"`
		Hosts   []struct {
			NodeID string `json:"nodeId"`
		} `json:"hosts"`
	} `json:"services"`

	// Calls of the API, by method and path. Injected failures are counted by method alone.
	Calls map[string]int `json:"calls"`
}

// tailnetState returns the state of the quickstart's tailnet.
func tailnetState(t *testing.T) state {
	t.Helper()
	return tailnetOne.state(t)
}

func (n tailnet) state(t *testing.T) state {
	t.Helper()
	b, err := rawState(t.Context(), n.env(t, "TAILNET_API"))
	if err != nil {
		t.Fatalf("cannot read the state of tailnet %s: %v", n, err)
	}
	s := state{}
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatalf("cannot parse the state of tailnet %s: %v", n, err)
	}
	return s
}

// rawState returns the state of a tailnet as JSON, from the address of its API.
func rawState(ctx context.Context, api string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, api+"/sim/state", nil)
	if err != nil {
		return nil, err
	}
	rsp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer rsp.Body.Close()
	return io.ReadAll(rsp.Body)
}

// primary returns the machine that has the service's addresses, or an empty string.
func (s state) primary(service string) (string, error) {
	for _, v := range s.Services {
		if v.Name == "svc:"+service {
			return v.Primary, nil
		}
	}
	return "", fmt.Errorf("the tailnet has no svc:%s", service)
}

// ours counts the objects of this cluster in the tailnet: machines of the quickstart, their keys,
// and services.
func (s state) ours() (devices, keys, services int) {
	for _, d := range s.Devices {
		if strings.HasPrefix(d.Hostname, namespace+"-") {
			devices++
		}
	}
	for _, k := range s.Keys {
		if strings.Contains(k.Description, namespace) && !k.Invalid {
			keys++
		}
	}
	return devices, keys, len(s.Services)
}

// tailnetClient returns a client of the quickstart's tailnet.
func tailnetClient(t *testing.T) *tailscale.Client {
	t.Helper()
	return tailnetOne.client(t)
}

// client returns the official client with the lab's credential.
func (n tailnet) client(t *testing.T) *tailscale.Client {
	t.Helper()
	base, err := neturl.Parse(n.env(t, "TAILNET_API"))
	if err != nil {
		t.Fatalf("cannot parse the address of tailnet %s: %v", n, err)
	}
	return &tailscale.Client{
		BaseURL: base,
		HTTP:    &http.Client{Timeout: 20 * time.Second},
		Auth:    &tailscale.OAuth{ClientID: n.env(t, "TAILNET_CLIENT_ID"), ClientSecret: strings.TrimSpace(readFile(t, n.env(t, "TAILNET_CLIENT_SECRET_FILE")))},
	}
}

// post sends a request that the API's client does not support.
func (n tailnet) post(t *testing.T, path, body string) {
	t.Helper()
	c := n.client(t)
	hc := c.Auth.HTTPClient(c.HTTP, c.BaseURL.String())
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.BaseURL.JoinPath("api/v2", path).String(), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	rsp, err := hc.Do(req)
	if err != nil {
		t.Fatalf("cannot post to %s: %v", path, err)
	}
	if err := rsp.Body.Close(); err != nil || rsp.StatusCode != http.StatusOK {
		t.Fatalf("cannot post to %s: %s, %v", path, rsp.Status, err)
	}
}

// curl requests a URL as a client of the tailnet, and returns the body, or stderr on a failure.
func (n tailnet) curl(t *testing.T, url string) (string, error) {
	t.Helper()
	return labOutput(t, "--tailnet="+string(n), "tailnet-curl", "--timeout=10s", url)
}

// url returns the URL of a Tailscale Service.
func (n tailnet) url(t *testing.T, service string) string {
	t.Helper()
	return "http://" + strings.TrimPrefix(service, "svc:") + "." + n.env(t, "TAILNET_DOMAIN") + "/"
}

// behindClients is the address of the HTTP server behind all clients of the lab.
const behindClients = "127.0.0.1:8080"

// hostedBy has a client of the tailnet host an existing service, with a port of the server behind
// it.
func (n tailnet) hostedBy(t *testing.T, client, service, port, behind string) {
	t.Helper()
	labCommand(t, "--tailnet="+string(n), "tailscale", "--as="+client, "serve", "--yes", "--service="+service, "--tcp="+port, "tcp://"+behind)
	n.post(t, "tailnet/-/services/"+service+"/device/"+n.node(t, client)+"/approved", `{"approved":true}`)
}

// node returns the ID of a device, once it is in the tailnet.
func (n tailnet) node(t *testing.T, hostname string) (id string) {
	t.Helper()
	eventually(t, 30*time.Second, "device "+hostname, func() string {
		for _, d := range n.state(t).Devices {
			if d.Hostname == hostname {
				id = d.NodeID
				return ""
			}
		}
		return "the device is not there"
	})
	return id
}
