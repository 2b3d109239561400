// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"

	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

const mediaJSON = "application/json"

// A request is a call that the client library lacks or implements wrongly.
type request struct {
	// scope is the OAuth scope of the call.
	scope string

	method string

	// path is the path below /api/v2 as unescaped elements.
	path []string

	query url.Values

	// media is the media type of the body and of the response; "" means JSON. accept is the media
	// type of the response if it differs.
	media, accept string

	// ifMatch is the ETag that the object must still have; "" means any.
	ifMatch string

	body []byte

	// tailnet is set for calls on a whole tailnet: a 404 means that the tailnet is unknown.
	tailnet bool
}

// An answer is the complete response to a request.
type answer struct {
	body   []byte
	header http.Header
}

// raw makes a call with body as JSON, and decodes the JSON response to out. Both may be nil. A response
// without a body leaves out unchanged.
func (c *core) raw(ctx context.Context, scope, method string, body, out any, path ...string) error {
	r := request{scope: scope, method: method, path: path}
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return errors.Wrap(err, "cannot encode request")
		}
		r.body = b
	}
	_, err := c.rawJSON(ctx, r, out)
	return err
}

// rawHuJSON makes a call whose body and response are HuJSON. If ifMatch is not empty, the write
// succeeds only if the object still has this ETag. It returns the response's body and ETag
// unchanged.
func (c *core) rawHuJSON(ctx context.Context, scope, method, ifMatch string, body []byte, path ...string) ([]byte, string, error) {
	a, err := c.do(ctx, request{scope: scope, method: method, path: path, media: mediaHuJSON, ifMatch: ifMatch, body: body})
	if err != nil {
		return nil, "", err
	}
	return a.body, a.header.Get("ETag"), nil
}

// rawJSON makes a call and decodes the response's body, if there is one, into out.
func (c *core) rawJSON(ctx context.Context, r request, out any) (http.Header, error) {
	a, err := c.do(ctx, r)
	if err != nil {
		return nil, err
	}
	empty := len(bytes.TrimSpace(a.body)) == 0
	if empty && r.method == http.MethodGet {
		// An empty body must not be read as an empty list.
		return nil, &Error{Class: ClassUnavailable, Status: http.StatusOK, Scope: r.scope, Message: "the answer is empty"}
	}
	if out == nil || empty {
		return a.header, nil
	}
	return a.header, classify(json.Unmarshal(a.body, out), r.scope, false)
}

func (c *core) do(ctx context.Context, r request) (answer, error) {
	u := c.base.JoinPath(append([]string{"/api/v2"}, escaped(r.path)...)...)
	u.RawQuery = r.query.Encode()
	var body io.Reader = http.NoBody
	if r.body != nil {
		body = bytes.NewReader(r.body)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, u.String(), body)
	if err != nil {
		return answer{}, errors.New("cannot make request, check the API URL")
	}
	media := r.media
	if media == "" {
		media = mediaJSON
	}
	req.Header.Set("Accept", cmp.Or(r.accept, media))
	if r.body != nil {
		req.Header.Set("Content-Type", media)
	}
	if r.ifMatch != "" {
		req.Header.Set("If-Match", r.ifMatch)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return answer{}, classify(err, r.scope, false)
	}
	b, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return answer{}, classify(err, r.scope, false)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		e := tsclient.APIError{}
		if err := json.Unmarshal(b, &e); err != nil {
			e.Message = http.StatusText(resp.StatusCode)
		}
		e.Status = resp.StatusCode
		return answer{}, classify(e, r.scope, r.tailnet)
	}
	return answer{body: b, header: resp.Header}, nil
}

// escaped escapes each element of a path.
func escaped(path []string) []string {
	out := make([]string, 0, len(path))
	for _, e := range path {
		out = append(out, url.PathEscape(e))
	}
	return out
}
