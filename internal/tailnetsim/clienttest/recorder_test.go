// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package clienttest

import (
	"bytes"
	"cmp"
	"io"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tailscale-gateway/tailscale-gateway/hack/apicheck/facts"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailnetsim"
)

// A finding is something that the OpenAPI document does not have.
type finding struct {
	// op is the operation: its name in the document, or the method and the path of
	// one that is not there.
	op string

	// part is the undocumented part: path, query NAME, body PLACE TYPE, reply PLACE TYPE or scope SCOPE.
	part string
}

// An undocumented behaviour of the client or of the simulator has another source.
type undocumented struct {
	op     string // A pattern of path.Match.
	parts  []string
	source string
}

func (u undocumented) covers(f finding) bool {
	ok, err := path.Match(u.op, f.op)
	return err == nil && ok && slices.Contains(u.parts, f.part)
}

// A recorder is a transport that compares calls with the OpenAPI document.
type recorder struct {
	doc *facts.Document

	mu    sync.Mutex
	calls map[string][]string // By host.
	found map[finding]bool
}

func newRecorder(t *testing.T) *recorder {
	t.Helper()
	doc, err := facts.Tailscale()
	if err != nil {
		t.Fatalf("cannot read facts: %v", err)
	}
	return &recorder{doc: doc, calls: map[string][]string{}, found: map[finding]bool{}}
}

func (r *recorder) callsOf(host string) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls[host]
}

// RoundTrip implements http.RoundTripper.
func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := drain(&req.Body)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	reply, err := drain(&resp.Body)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls[req.URL.Host] = append(r.calls[req.URL.Host], req.Method+" "+req.URL.Path)
	r.compare(req, body, resp, reply)
	return resp, nil
}

// drain reads a body and puts it back.
func drain(body *io.ReadCloser) ([]byte, error) {
	if *body == nil {
		return nil, nil
	}
	b, err := io.ReadAll(*body)
	if err != nil {
		return nil, err
	}
	*body = io.NopCloser(bytes.NewReader(b))
	return b, nil
}

// compare looks at one call. mu must be held.
func (r *recorder) compare(req *http.Request, body []byte, resp *http.Response, reply []byte) {
	op := documented(r.doc, req.Method, strings.TrimPrefix(req.URL.EscapedPath(), "/api/v2"))
	if op == nil {
		return // TestRoutes has the exceptions.
	}
	for name := range req.URL.Query() {
		if _, ok := op.Query[name]; !ok {
			r.found[finding{op.Name(), "query " + name}] = true
		}
	}
	if req.Header.Get("Content-Type") == "application/json" && len(body) > 0 {
		r.note(op, "body ", op.Body, body)
	}
	isJSON := resp.Header.Get("Content-Type") == "application/json"
	// Many calls answer nothing worth reading, as {} or null.
	if isJSON && resp.StatusCode == http.StatusOK && len(op.Reply) > 0 {
		r.note(op, "reply ", op.Reply, reply)
	}
}

func (r *recorder) note(op *facts.Operation, prefix string, described map[string]facts.Value, body []byte) {
	unknown, err := facts.Undocumented(described, body)
	if err != nil {
		unknown = []string{"is no JSON"}
	}
	for _, u := range unknown {
		r.found[finding{op.Name(), prefix + u}] = true
	}
}

// check fails the test for findings without another source.
func (r *recorder) check(t *testing.T) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	checkFindings(t, r.found, undocumentedContents)
}

func checkFindings(t *testing.T, found map[finding]bool, exceptions []undocumented) {
	t.Helper()
	needed := map[string]bool{}
	order := func(a, b finding) int { return cmp.Or(cmp.Compare(a.op, b.op), cmp.Compare(a.part, b.part)) }
	for _, f := range slices.SortedFunc(maps.Keys(found), order) {
		i := slices.IndexFunc(exceptions, func(u undocumented) bool { return u.covers(f) })
		if i < 0 {
			t.Errorf("%s: the OpenAPI document does not have: %s", f.op, f.part)
			continue
		}
		needed[exceptions[i].op+f.part] = true
	}
	for _, u := range exceptions {
		for _, w := range u.parts {
			if !needed[u.op+w] {
				t.Errorf("%s: %s needs no exception any more", u.op, w)
			}
		}
	}
}

// documented returns the operation of a path below /api/v2, or nil. The client says
// vip-services for the document's services.
func documented(doc *facts.Document, method, path string) *facts.Operation {
	return doc.Find(method, strings.TrimSuffix(strings.Replace(path+"/", "/vip-services/", "/services/", 1), "/"))
}

// TestRoutes compares the simulator's routes with the OpenAPI document.
func TestRoutes(t *testing.T) {
	doc, err := facts.Tailscale()
	if err != nil {
		t.Fatalf("cannot read facts: %v", err)
	}
	found := map[finding]bool{}
	for route, scope := range tailnetsim.Scopes() {
		method, p, _ := strings.Cut(route, " ")
		p = strings.TrimPrefix(p, "/api/v2")
		op := doc.Find(method, p)
		if op == nil {
			found[finding{method + " " + p, "path"}] = true
			continue
		}
		// Without a scope, the handler decides by the content of the call.
		if scope != "" && !takes(op, scope) {
			found[finding{op.Name(), "scope " + scope}] = true
		}
	}
	checkFindings(t, found, undocumentedRoutes)
}

// takes reports whether a scope, or its :read part for reading, is documented.
func takes(op *facts.Operation, scope string) bool {
	return slices.ContainsFunc(op.Scopes, func(set []string) bool {
		return slices.Contains(set, scope) || op.Method == http.MethodGet && slices.Contains(set, scope+":read")
	})
}
