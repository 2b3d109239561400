// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	_ "embed"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

//go:embed page.css
var style string

// A view is what the page shows.
type view struct {
	Overview
	Answer *Answer
	Query  Query
}

// page returns the page. Its texts are escaped, and no part of it is raw but the style.
//
// It is no html/template, which finds methods by name: the linker would keep each method of each type, a quarter of
// the extension.
func (v view) page() g.Node {
	return h.Doctype(h.HTML(h.Lang("en"),
		h.Head(
			h.Meta(h.Charset("utf-8")),
			h.Meta(h.Name("viewport"), h.Content("width=device-width")),
			h.TitleEl(g.Text("Where does this request go?")),
			h.StyleEl(g.Raw(style)),
		),
		h.Body(
			h.H1(g.Text("Where does this request go?")),
			form("Explain",
				input("host", "host", v.Query.Host, 30, h.Placeholder("www.example.com")),
				input("path, empty for TLS passthrough", "path", v.Query.Path, 30),
				input("method", "method", v.Query.Method, 8),
			),
			g.Iff(v.Answer != nil, func() g.Node { return v.Answer.node() }),
			h.H2(g.Text("Gateways")),
			gatewayTable(v.Gateways),
			g.If(len(v.Trouble) > 0, g.Group{
				h.H2(g.Text("Targets without an answer")),
				h.Table(g.Map(v.Trouble, func(b Backend) g.Node { return h.Tr(h.Td(code(b.Name)), h.Td(h.Class("bad"), g.Text(b.Problem))) })),
			}),
			g.If(v.TotalGenerated > 0, g.Group{
				h.H2(g.Text("Generated routes")),
				quiet(g.Textf("%d, of which %d are listed; those that do not answer come first", v.TotalGenerated, len(v.Generated))),
				generatedTable(v.Generated),
			}),
			v.rules(),
		),
	))
}

// rules returns one page of the rules, with links to the others.
func (v view) rules() g.Node {
	link := func(page int, text string) g.Node {
		if page == 0 {
			return nil
		}
		return h.A(h.Href(fmt.Sprintf("/?page=%d&filter=%s", page, url.QueryEscape(v.Filter))), g.Text(text))
	}
	return g.Group{
		h.H2(g.Text("Rules")),
		form("Show", input("filter", "filter", v.Filter, 30)),
		quiet(
			g.Textf("%d rules, %d targets, revision %d; page %d of %d ", v.Total, v.Targets, v.Revision, v.Page, v.Pages),
			link(v.Previous(), "previous"), g.Text(" "), link(v.Next(), "next"),
		),
		g.Map(v.Rules, func(l Listed) g.Node {
			hosts := h.Span(h.Class("quiet"), g.Text("any host of its listeners"))
			if len(l.Hostnames) > 0 {
				hosts = codes(l.Hostnames, ", ")
			}
			return h.Section(h.H3(l.title()), h.P(hosts), l.node())
		}),
	}
}

// node returns the answer to a query.
func (a *Answer) node() g.Node {
	found := make(g.Group, 0, len(a.Rules))
	for i, f := range a.Rules {
		order := "Else: "
		if i == 0 {
			order = "First: "
		}
		reason := g.Text("its listener matches the host")
		if f.Hostname != "" {
			reason = g.Group{g.Text("the host is "), code(f.Hostname)}
		}
		found = append(found, h.Section(
			h.H3(g.Text(order), f.title()),
			h.P(g.Text("because "), reason, g.Text(" and "), code(f.Match),
				g.If(len(f.Conditions) > 0, g.Group{g.Text("; only if "), codes(f.Conditions, " and ")})),
			f.node(),
		))
	}
	return g.Group{
		h.P(g.Text(a.Note)),
		found,
		g.If(len(a.Generated) > 0, g.Group{h.P(g.Text("Generated routes for it, of which the longest prefix comes first:")), generatedTable(a.Generated)}),
	}
}

// title returns the route, index and name of a rule.
func (r Rule) title() g.Node {
	name := ""
	if r.Name != "" {
		name = " (" + r.Name + ")"
	}
	return g.Group{code(r.Route), g.Textf(", rule %d%s", r.Index, name)}
}

// node returns a rule with its backends.
func (r Rule) node() g.Node {
	return g.Group{
		h.P(g.Text("matches: "), codes(r.Matches, "; or ")),
		quiet(
			g.Text("listeners: "), codes(r.Listeners, ", "),
			g.If(r.Own != "", g.Text("; has separate clusters: "+r.Own)),
			g.If(len(r.Policies) > 0, g.Group{g.Text("; preceded by rules of TailscaleRoutePolicies: "), codes(r.Policies, ", ")}),
		),
		g.If(len(r.Backends) == 0, bad("It has no backends.")),
		g.Map(r.Backends, Backend.node),
		g.If(len(r.Mirrors) > 0, h.P(g.Text("Copies of requests go to:"))),
		g.Map(r.Mirrors, Backend.node),
	}
}

// node returns a backend with its endpoints.
func (b Backend) node() g.Node {
	percent, check, tier := "", "", ""
	if b.Percent != 0 {
		percent = " gets " + strconv.FormatFloat(b.Percent, 'g', -1, 64) + " %"
	}
	if b.Check != "" {
		check = ", Envoy checks by " + b.Check
	}
	if b.Tier != "" {
		tier = ", answered by " + string(b.Tier)
	}
	return h.Div(
		h.H3(code(b.Name), g.If(percent != "", h.Span(h.Class("quiet"), g.Text(percent)))),
		g.If(b.Problem != "", bad(b.Problem)),
		g.Map(b.Refused, bad),
		g.If(b.Cluster != "", quiet(g.Text("cluster "), code(b.Cluster), g.Text(check+tier))),
		g.Map(b.Settings, func(s Setting) g.Node {
			differs := g.Group{}
			for i, f := range s.Differs {
				prefix := ", "
				if i == 0 {
					prefix = " differs in "
				}
				differs = append(differs, g.Text(prefix+f))
			}
			return quiet(g.Text("separate settings: "), code(s.Cluster), differs)
		}),
		g.If(len(b.Localities) > 0, table([]string{"priority", "backend", "zone", "weight", "endpoints"}, b.Localities, Locality.row)),
	)
}

// row returns a locality with its endpoints.
func (l Locality) row() g.Node {
	endpoints := g.Node(g.Map(l.Endpoints, Endpoint.node))
	if len(l.Endpoints) == 0 {
		endpoints = h.Span(h.Class("quiet"), g.Text("none"))
	}
	return h.Tr(
		h.Td(g.Textf("%d ", l.Priority), h.Span(h.Class("quiet"), g.Text(l.Meaning))),
		h.Td(code(l.Name)), h.Td(g.Text(l.Zone)), h.Td(g.Textf("%d", l.Weight)), h.Td(endpoints),
	)
}

// node returns an endpoint with its health.
func (e Endpoint) node() g.Node {
	return g.Group{code(e.Address), g.Text(" " + e.Health), g.Iff(e.Probed != nil, func() g.Node {
		reason := ""
		if e.Probed.Reason != "" {
			reason = ", " + e.Probed.Reason
		}
		return g.Group{g.Text("; "), h.Span(
			g.If(reason != "", h.Class("bad")), g.Textf("probed: %s, score %d%s", e.Probed.Status, e.Probed.Score, reason),
		)}
	}), h.Br()}
}

// gatewayTable returns the table of Gateways.
func gatewayTable(gateways []Gateway) g.Node {
	if len(gateways) == 0 {
		return quiet(g.Text("No route has a Tailscale backend."))
	}
	lines := func(texts []string) g.Node {
		return g.Map(texts, func(t string) g.Node { return g.Group{code(t), h.Br()} })
	}
	return table([]string{"Gateway", "class", "listens on", "routes", "listeners"}, gateways, func(w Gateway) g.Node {
		class := h.Span(h.Class("bad"), g.Text("no such Gateway"))
		if w.Class != "" {
			class = code(w.Class)
		}
		return h.Tr(h.Td(code(w.Name)), h.Td(class), h.Td(lines(w.Sockets)), h.Td(g.Textf("%d", w.Routes)), h.Td(lines(w.Listeners)))
	})
}

// generatedTable returns the table of generated routes.
func generatedTable(routes []Generated) g.Node {
	return table([]string{"address", "leads to", "for TailscaleGateway", "HTTPRoute", "state"}, routes, func(r Generated) g.Node {
		route := h.Span(h.Class("quiet"), g.Text("none"))
		if r.Route != "" {
			route = code(r.Route)
		}
		return h.Tr(
			h.Td(code(r.Hostname+r.PathPrefix)), h.Td(g.Text(r.Service)),
			h.Td(code(r.TailscaleGateway), g.Textf(", tailnet %s, %s", r.Tailnet, r.Direction)), h.Td(route),
			h.Td(g.Text(string(r.State)), g.If(r.Message != "", g.Group{g.Text(" "), h.Span(h.Class("bad"), g.Text(r.Message))})),
		)
	})
}

// table returns a table with a head.
func table[T any](head []string, rows []T, row func(T) g.Node) g.Node {
	return h.Table(h.Tr(g.Map(head, func(t string) g.Node { return h.Th(g.Text(t)) })), g.Map(rows, row))
}

// form returns a form that queries the page.
func form(button string, inputs ...g.Node) g.Node {
	return h.Form(h.Method(http.MethodGet), h.Action("/"), g.Group(inputs), h.Button(g.Text(button)))
}

// input returns a field of a form below a label.
func input(label, name, value string, size int, attributes ...g.Node) g.Node {
	return h.Label(g.Text(label+" "), h.Input(h.Name(name), h.Value(value), g.Attr("size", strconv.Itoa(size)), g.Group(attributes)))
}

// code returns a text in the font of code.
func code(text string) g.Node { return h.Code(g.Text(text)) }

// codes returns several such texts.
func codes(texts []string, separator string) g.Node {
	out := make(g.Group, 0, 2*len(texts))
	for i, t := range texts {
		if i > 0 {
			out = append(out, g.Text(separator))
		}
		out = append(out, code(t))
	}
	return out
}

// quiet returns a paragraph in a pale color.
func quiet(nodes ...g.Node) g.Node { return h.P(h.Class("quiet"), g.Group(nodes)) }

// bad returns a paragraph about a problem.
func bad(text string) g.Node { return h.P(h.Class("bad"), g.Text(text)) }
