// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

const (
	contentType = "Content-Type"
	mediaHTML   = "text/html; charset=utf-8"
	mediaJSON   = "application/json"

	// policy of the page: it has no script, and loads nothing.
	policy = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)

// A Page serves overviews and answers.
type Page struct {
	snapshot func() *ir.Snapshot
	probes   Probes
	reports  Reports
	settings *Settings
	log      logging.Logger
}

// NewPage returns a page that reads the newest snapshot, probe results, reports and settings.
// settings may be nil.
func NewPage(snapshot func() *ir.Snapshot, probes Probes, reports Reports, settings *Settings, log logging.Logger) *Page {
	return &Page{snapshot: snapshot, probes: probes, reports: reports, settings: settings, log: log}
}

// Register registers the page at / and its JSON form at /explain.
//
// /explain?host=HOST&path=PATH&method=METHOD returns an Answer; without any of them it returns an
// Overview, for ?page=N&filter=TEXT. / takes the same parameters.
func (p *Page) Register(mux *http.ServeMux) {
	mux.HandleFunc("GET /{$}", p.html)
	mux.HandleFunc("GET /explain", p.json)
}

// read returns the query of a request, if it has one.
func read(r *http.Request) (q Query, ok bool) {
	v := r.URL.Query()
	q = Query{Host: v.Get("host"), Path: v.Get("path"), Method: strings.ToUpper(v.Get("method"))}
	q.Path, _, _ = strings.Cut(q.Path, "?")
	return q, v.Has("host") || v.Has("path")
}

// overview returns the overview for a request.
func (p *Page) overview(s *ir.Snapshot, r *http.Request) Overview {
	n, err := strconv.Atoi(r.URL.Query().Get("page"))
	if err != nil {
		n = 1
	}
	o := Describe(s, r.URL.Query().Get("filter"), n)
	for i := range o.Rules {
		p.settings.describe(&o.Rules[i].Rule)
		p.probes.describe(&o.Rules[i].Rule)
	}
	for i := range o.Trouble {
		p.settings.describeTarget(&o.Trouble[i])
	}
	o.Generated, o.TotalGenerated = generated(p.reports.all(), func(g Generated) bool { return g.holds(o.Filter) })
	return o
}

// answer returns the answer to a query.
func (p *Page) answer(s *ir.Snapshot, q Query) Answer {
	a := Explain(s, q)
	for i := range a.Rules {
		p.settings.describe(&a.Rules[i].Rule)
		p.probes.describe(&a.Rules[i].Rule)
	}
	a.Generated, _ = generated(p.reports.all(), func(g Generated) bool { return g.takes(q) })
	return a
}

func (p *Page) html(w http.ResponseWriter, r *http.Request) {
	s := p.snapshot()
	v := view{Overview: p.overview(s, r), Query: Query{Path: "/", Method: http.MethodGet}}
	if q, ok := read(r); ok {
		a := p.answer(s, q)
		v.Query, v.Answer = q, &a
	}
	// The page is rendered completely first: half a page is worse than an error.
	var b bytes.Buffer
	if err := v.page().Render(&b); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	p.write(w, mediaHTML, b.Bytes())
}

func (p *Page) json(w http.ResponseWriter, r *http.Request) {
	s := p.snapshot()
	var v any = p.overview(s, r)
	if q, ok := read(r); ok {
		v = p.answer(s, q)
	}
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	p.write(w, mediaJSON, append(b, '\n'))
}

func (p *Page) write(w http.ResponseWriter, media string, b []byte) {
	h := w.Header()
	h.Set(contentType, media)
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	if _, err := w.Write(b); err != nil {
		// The client has closed the connection.
		p.log.Debug("Cannot answer", "error", err)
	}
}
