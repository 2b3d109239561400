// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
	"tailscale.com/types/key"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim/simtest"
)

// A replyRow is one request and Tailscale's reply, according to its source. The files of
// testdata/replies group them by subject. A recording from a real tailnet can replace a row:
// its source then names the recording, and the simulator must match it.
type replyRow struct {
	Name string `json:"name"`
	// Source of the reply: a file of a repository, an issue, or a place in the OpenAPI
	// document. It begins with "assumption" where no source has the reply.
	Source string `json:"source"`
	// State is the state of the tailnet before the request.
	State   given   `json:"given"`
	Request request `json:"request"`
	Want    want    `json:"want"`
}

// given is carried out in the order of its fields.
type given struct {
	Policy   string                            `json:"policy"`
	Switches tailnetsim.Switches               `json:"switches"`
	Lock     bool                              `json:"lock"`
	Devices  []tailnetsim.Puppet               `json:"devices"`
	Calls    []request                         `json:"calls"`
	Facts    map[string]tailnetsim.DeviceFacts `json:"facts"`
	Offers   map[string][]tailnetsim.Offer     `json:"offers"`
	Edits    map[string]tailnetsim.ServiceEdit `json:"edits"`
}

// A request uses the owner's API key by default. Paths are relative to /api/v2/. ${name} is
// replaced with the value that an earlier call saved.
type request struct {
	Method  string            `json:"method"`
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers"`
	// Body is sent as JSON, Text unchanged.
	Body any     `json:"body"`
	Text *string `json:"text"`
	// Scopes make the request with a token of an OAuth client with these scopes.
	Scopes []string `json:"scopes"`
	// Client is the OAuth client of the request, whose id and key an earlier call saved as NAME
	// and NAMEKey.
	Client string `json:"client"`
	// Bearer makes the request with this token.
	Bearer string `json:"bearer"`
	// Save keeps fields of the reply, by the name to keep them as.
	Save map[string]string `json:"save"`
}

type want struct {
	Status int `json:"status"`
	// Body is a part of the reply: objects may have more fields, lists must have as
	// many elements. A string that begins with "re:" is a regular expression.
	Body any `json:"body"`
	// Absent are fields that the reply's object must not have.
	Absent []string `json:"absent"`
	// Text is the whole reply.
	Text *string `json:"text"`
	// Headers are regular expressions of headers.
	Headers map[string]string `json:"headers"`
}

func TestReplies(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/replies/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("cannot find replies: %v", err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatalf("cannot read: %v", err)
		}
		var rows []replyRow
		if err := yaml.UnmarshalStrict(b, &rows); err != nil {
			t.Fatalf("cannot decode %s: %v", file, err)
		}
		seen := map[string]bool{}
		for _, row := range rows {
			if row.Source == "" || seen[row.Name] {
				t.Errorf("%s: row %q has no source or is there twice", file, row.Name)
			}
			seen[row.Name] = true
			t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml")+"/"+row.Name, func(t *testing.T) { row.run(t) })
		}
	}
}

func (row replyRow) run(t *testing.T) {
	t.Parallel()
	c := newReplyClient(t, row)
	for _, q := range row.State.Calls {
		if res, b := c.do(t, q); res.StatusCode/100 != 2 {
			t.Fatalf("%s\n%s %s: %d %s", row.Source, q.Method, q.Path, res.StatusCode, b)
		}
	}
	for id, f := range row.State.Facts {
		if !c.sim.SetDeviceFacts(id, f) {
			t.Fatalf("there is no device %q", id)
		}
	}
	for id, offers := range row.State.Offers {
		mustDo(t, c.sim.SetOffers(id, offers...))
	}
	for name, e := range row.State.Edits {
		mustDo(t, c.sim.EditService(name, e))
	}

	res, b := c.do(t, row.Request)
	if res.StatusCode != row.Want.Status {
		t.Errorf("%s\nstatus: want %d, got %d: %s", row.Source, row.Want.Status, res.StatusCode, b)
	}
	for _, err := range row.Want.differences(res, b, c.vars) {
		t.Errorf("%s\n%v\nof the reply %s", row.Source, err, b)
	}
}

// A replyClient makes raw requests to a simulator.
type replyClient struct {
	sim  *simtest.Running
	vars map[string]string
}

func newReplyClient(t *testing.T, row replyRow) *replyClient {
	t.Helper()
	c := &replyClient{vars: map[string]string{}}
	c.sim = simtest.StartAPI(t, func(o *tailnetsim.Options) {
		o.Policy, o.Switches = row.State.Policy, row.State.Switches
		for i, q := range append(slices.Clone(row.State.Calls), row.Request) {
			if len(q.Scopes) > 0 {
				o.Clients = append(o.Clients, tailnetsim.OAuthClient{
					ID: fmt.Sprintf("scoped%d", i), Secret: strings.Join(q.Scopes, " "), Scopes: q.Scopes, Tags: []string{"tag:k8s-operator"},
				})
			}
		}
	})
	if row.State.Lock {
		mustDo(t, c.sim.EnableLock(key.NewNLPrivate()))
	}
	for _, p := range row.State.Devices {
		if _, err := c.sim.Join(p); err != nil {
			t.Fatalf("cannot join %q: %v", p.Hostname, err)
		}
	}
	return c
}

func (c *replyClient) expand(s string) string {
	return os.Expand(s, func(name string) string { return c.vars[name] })
}

// do makes a request and returns its reply.
func (c *replyClient) do(t *testing.T, q request) (*http.Response, []byte) {
	t.Helper()
	var body []byte
	switch {
	case q.Text != nil:
		body = []byte(*q.Text)
	case q.Body != nil:
		b, err := json.Marshal(q.Body)
		if err != nil {
			t.Fatalf("cannot encode: %v", err)
		}
		body = []byte(c.expand(string(b)))
	}
	req, err := http.NewRequestWithContext(t.Context(), q.Method, c.sim.URL+"/api/v2/"+c.expand(q.Path), bytes.NewReader(body))
	if err != nil {
		t.Fatalf("cannot make a request: %v", err)
	}
	for k, v := range q.Headers {
		req.Header.Set(k, c.expand(v))
	}
	switch {
	case q.Bearer != "":
		req.Header.Set("Authorization", "Bearer "+q.Bearer)
	case len(q.Scopes) > 0:
		req.Header.Set("Authorization", "Bearer "+c.token(t, "", strings.Join(q.Scopes, " ")))
	case q.Client != "":
		req.Header.Set("Authorization", "Bearer "+c.token(t, c.vars[q.Client], c.vars[q.Client+"Key"]))
	case !strings.HasPrefix(q.Path, "oauth/"):
		req.SetBasicAuth(simtest.APIKey, "")
	}
	res, b := send(t, req)
	if len(q.Save) > 0 {
		var fields map[string]any
		if err := json.Unmarshal(b, &fields); err != nil {
			t.Fatalf("cannot decode %s: %v", b, err)
		}
		for name, field := range q.Save {
			c.vars[name] = fmt.Sprint(fields[field])
		}
	}
	return res, b
}

// token returns an access token of an OAuth client.
func (c *replyClient) token(t *testing.T, id, secret string) string {
	t.Helper()
	form := url.Values{"client_id": {id}, "client_secret": {secret}, "grant_type": {"client_credentials"}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.sim.URL+"/api/v2/oauth/token", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatalf("cannot make a request: %v", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, b := send(t, req)
	var out struct {
		AccessToken string `json:"access_token"`
	}
	if err := json.Unmarshal(b, &out); err != nil || out.AccessToken == "" {
		t.Fatalf("cannot get a token: %d %s", res.StatusCode, b)
	}
	return out.AccessToken
}

func send(t *testing.T, req *http.Request) (*http.Response, []byte) {
	t.Helper()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", req.Method, req.URL.Path, err)
	}
	b, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil {
		t.Fatalf("cannot read: %v", err)
	}
	return res, b
}

// differences returns the differences between the wanted and the actual reply.
func (w want) differences(res *http.Response, b []byte, vars map[string]string) []error {
	var out []error
	if w.Text != nil && *w.Text != string(b) {
		out = append(out, errors.Errorf("body: want %q", *w.Text))
	}
	for k, re := range w.Headers {
		if !regexp.MustCompile(re).MatchString(res.Header.Get(k)) {
			out = append(out, errors.Errorf("header %s: want %q, got %q", k, re, res.Header.Get(k)))
		}
	}
	if w.Body == nil && len(w.Absent) == 0 {
		return out
	}
	var got any
	if err := json.Unmarshal(b, &got); err != nil {
		return append(out, errors.Wrap(err, "cannot decode the reply"))
	}
	for _, f := range w.Absent {
		if o, ok := got.(map[string]any); ok {
			if _, exists := o[f]; exists {
				out = append(out, errors.Errorf("field %q: want none", f))
			}
		}
	}
	if w.Body != nil {
		out = append(out, within("body", w.Body, got, vars)...)
	}
	return out
}

// within returns the paths at which got lacks a wanted value.
func within(path string, want, got any, vars map[string]string) []error {
	var out []error
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return []error{errors.Errorf("%s: want an object, got %v", path, got)}
		}
		for k, v := range w {
			if value, exists := g[k]; exists {
				out = append(out, within(path+"."+k, v, value, vars)...)
				continue
			}
			out = append(out, errors.Errorf("%s.%s: want %v, got nothing", path, k, v))
		}
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return []error{errors.Errorf("%s: want %v, got %v", path, want, got)}
		}
		for i := range w {
			out = append(out, within(fmt.Sprintf("%s[%d]", path, i), w[i], g[i], vars)...)
		}
	case string:
		w = os.Expand(w, func(name string) string { return vars[name] })
		re, isRE := strings.CutPrefix(w, "re:")
		g, ok := got.(string)
		if !ok || (isRE && !regexp.MustCompile(re).MatchString(g)) || (!isRE && g != w) {
			out = append(out, errors.Errorf("%s: want %q, got %v", path, w, got))
		}
	default:
		if want != got {
			out = append(out, errors.Errorf("%s: want %v, got %v", path, want, got))
		}
	}
	return out
}
