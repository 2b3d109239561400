// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// messageFreshClient is the message for a 404 that does not mean that an object is missing.
const messageFreshClient = "the credential reaches nothing in the tailnet yet; a new OAuth client takes up to a minute"

// A provingTransport accepts a 404 only if the credential works. The API answers 404 to every
// request of a new OAuth client until its scopes have propagated (live tests of Ansible's
// collection abn.tailscale), and controllers read "not found" as "deleted". Until a call has
// succeeded, the transport checks a 404 of an object with a list of its kind.
type provingTransport struct {
	base    http.RoundTripper
	proven  *atomic.Bool
	api     *url.URL
	tailnet string
}

// RoundTrip implements http.RoundTripper.
func (t *provingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.base.RoundTrip(req)
	if err != nil || t.proven.Load() {
		return resp, err
	}
	if resp.StatusCode < http.StatusMultipleChoices {
		t.proven.Store(true)
		return resp, nil
	}
	list := t.listFor(req.URL)
	if resp.StatusCode != http.StatusNotFound || list == nil {
		return resp, nil
	}
	status, err := t.get(req, list)
	switch {
	case err != nil:
		return nil, errors.Join(err, resp.Body.Close())
	case status == http.StatusNotFound:
		return nil, errors.Join(&Error{Class: ClassUnavailable, Status: status, Message: messageFreshClient}, resp.Body.Close())
	case status < http.StatusMultipleChoices:
		t.proven.Store(true)
	}
	return resp, nil
}

// get returns the status of a list.
func (t *provingTransport) get(req *http.Request, list *url.URL) (int, error) {
	probe, err := http.NewRequestWithContext(req.Context(), http.MethodGet, list.String(), http.NoBody)
	if err != nil {
		return 0, err
	}
	resp, err := t.base.RoundTrip(probe)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, errors.Join(err, resp.Body.Close())
}

// listFor returns the URL of the list that contains the object of a URL. It returns nil if there is
// none, or if the URL is that of a list.
func (t *provingTransport) listFor(u *url.URL) *url.URL {
	_, suffix, _ := strings.Cut(strings.TrimPrefix(u.EscapedPath(), t.api.EscapedPath()), "api/v2/")
	path := strings.Split(suffix, "/")
	var kind string
	switch {
	case path[0] == "device":
		kind = "devices"
	case len(path) > 3 && path[0] == "tailnet" && path[2] == "services":
		kind = "vip-services"
	case len(path) > 3 && path[0] == "tailnet" && (path[2] == "vip-services" || path[2] == "keys"):
		kind = path[2]
	default:
		return nil
	}
	return t.api.JoinPath("/api/v2/tailnet", url.PathEscape(t.tailnet), kind)
}
