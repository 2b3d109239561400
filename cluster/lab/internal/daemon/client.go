// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/cluster/lab/internal/host"
)

// ErrNotRunning reports that no lab is running.
var ErrNotRunning = errors.New("no lab is up: run `lab up`")

// A Client talks to a lab's daemon.
type Client struct {
	Paths host.Paths
}

// Foreign reports whether a daemon listens that was started for other paths. Labs
// share names of network namespaces and links, so a machine can have only one.
func (c Client) Foreign(ctx context.Context) bool {
	if _, ours := c.Paths.Daemon(); ours {
		return false
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", c.Paths.Socket())
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

func (c Client) do(ctx context.Context, method, path string) ([]byte, error) {
	if _, ok := c.Paths.Daemon(); !ok {
		return nil, ErrNotRunning
	}
	t := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", c.Paths.Socket())
	}}
	req, err := http.NewRequestWithContext(ctx, method, "http://lab"+path, nil)
	if err != nil {
		return nil, errors.Wrap(err, "cannot make request for the lab's daemon")
	}
	rsp, err := (&http.Client{Transport: t}).Do(req)
	if err != nil {
		return nil, errors.Wrap(err, "cannot send request to the lab's daemon")
	}
	defer rsp.Body.Close() // Only read.
	b, err := io.ReadAll(rsp.Body)
	if err != nil {
		return nil, errors.Wrap(err, "cannot read the response of the lab's daemon")
	}
	if rsp.StatusCode != http.StatusOK {
		return nil, errors.New(strings.TrimSpace(string(b)))
	}
	return b, nil
}

// Status returns the lab's status, including that of each component if components is true.
func (c Client) Status(ctx context.Context, components bool) (Status, error) {
	path := "/status"
	if components {
		path += "?components"
	}
	b, err := c.do(ctx, http.MethodGet, path)
	if err != nil {
		return Status{}, err
	}
	var st Status
	return st, errors.Wrap(json.Unmarshal(b, &st), "cannot decode the lab's status")
}

// ClientOptions are the options of a new tailnet client.
type ClientOptions struct {
	// Owner assigns the client to the tailnet's owner, without tag:client.
	Owner bool

	// Routes are the networks for which the client is a subnet router.
	Routes []string
}

// tags returns the tags with which the client joins.
func (o ClientOptions) tags() []string {
	if o.Owner {
		return nil
	}
	return []string{"tag:client"}
}

// EnsureClient creates a client of that name in a tailnet, unless it exists.
func (c Client) EnsureClient(ctx context.Context, tailnet, name string, as ClientOptions) error {
	q := url.Values{"route": as.Routes}
	if as.Owner {
		q.Set("owner", "")
	}
	_, err := c.do(ctx, http.MethodPost, "/tailnets/"+url.PathEscape(tailnet)+"/clients/"+url.PathEscape(name)+"?"+q.Encode())
	return err
}

// Forward returns a forward's address on the host's loopback.
func (s Status) Forward(name string) (string, error) {
	for _, f := range s.Forwards {
		if f.Name == name {
			return f.From, nil
		}
	}
	return "", errors.Errorf("cannot find forward %q: the lab is not up yet", name)
}
