// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"cmp"
	"encoding/json"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"maps"
	"net/http"
	"os"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/hack/apicheck/facts"
)

// A finding is a use of the API that its OpenAPI document does not describe.
type finding struct {
	// op is the operation: its name in the document, or the method and the path if the document
	// lacks it.
	op string

	// part is the undocumented part: path, query NAME, accept MEDIA, send MEDIA, body
	// PLACE TYPE, reply PLACE or scope SCOPE.
	part string
}

// An undocumented is a use of the API that has another source than the document.
type undocumented struct {
	// op is the finding's op, as a pattern of path.Match.
	op    string
	parts []string

	source string
	reason string
}

func (u undocumented) covers(f finding) bool {
	ok, err := path.Match(u.op, f.op)
	return err == nil && ok && slices.Contains(u.parts, f.part)
}

// sameAs maps paths to the documented paths with another spelling.
var sameAs = map[string]string{
	"/vip-services": "/services",
}

var undocumentedUses = []undocumented{
	{
		op: "GET /tailnet/-/vip-services", parts: []string{"path"},
		source: "ServicesResource.List in services.go of the official Go client",
		reason: "The document says services. Annotations are known to be stored only under this spelling.",
	},
	{
		op: "* /tailnet/-/vip-services/x", parts: []string{"path"},
		source: "ServicesResource in services.go of the official Go client",
		reason: "As for the list.",
	},
	{
		op:     "* /tailnet/{tailnet}/services",
		parts:  []string{"reply $.vipServices[].annotations", "reply $.vipServices[].displayName"},
		source: "Service in services.go of the official Go client",
		reason: "Annotations name the owner of a service.",
	},
	{
		op:     "* /tailnet/{tailnet}/services/{serviceName}",
		parts:  []string{"body $.annotations object", "body $.displayName string", "reply $.annotations", "reply $.displayName"},
		source: "Service in services.go of the official Go client",
		reason: "As for the list.",
	},
	{
		op: "GET /tailnet/{tailnet}/services/{serviceName}/devices", parts: []string{"reply $.hosts[].nodeId"},
		source: "ServiceDevices in services.go of the main branch of the official Go client",
		reason: "The document says stableNodeID, which the API does not return. Both are read.",
	},
	{
		op: "* /tailnet/{tailnet}/settings", parts: []string{"body $.routeSelection string", "reply $.routeSelection"},
		source: "TailnetSettings in tailnet_settings.go of the official Go client",
		reason: "The setting is newer than the document at hand.",
	},
	{
		op: "GET /organizations/-/tailnets", parts: []string{"path"},
		source: "TailnetsResource in tailnet.go of the official Go client",
		reason: "The call is alpha. The product works without it.",
	},
	{
		op:     "GET /device/{deviceId}",
		parts:  []string{"reply $.clientConnectivity.derp", "reply $.postureIdentity.hardwareAddresses"},
		source: "ClientConnectivity and DevicePostureIdentity in devices.go of the official Go client",
		reason: "The client library decodes them into Device; the product uses neither.",
	},
	{
		op:     "GET /tailnet/{tailnet}/devices",
		parts:  []string{"reply $.devices[].clientConnectivity.derp", "reply $.devices[].postureIdentity.hardwareAddresses"},
		source: "ClientConnectivity and DevicePostureIdentity in devices.go of the official Go client",
		reason: "As for one device.",
	},
	{
		op: "* /tailnet/{tailnet}/acl", parts: []string{
			"scope policy_file and devices:posture_attributes:read and devices:core:read",
			"scope policy_file:read and devices:posture_attributes:read and devices:core:read",
		},
		source: "abn/ansible-tailscale-admin, docs/troubleshooting.md, \"403: the credential is valid and not authorised\"",
		reason: "The document names only the first scope.",
	},
	{
		op:     "POST /tailnet/{tailnet}/acl/validate",
		parts:  []string{"scope policy_file:read and devices:posture_attributes:read and devices:core:read"},
		source: "abn/ansible-tailscale-admin, docs/troubleshooting.md, \"403: the credential is valid and not authorised\"",
		reason: "As for the policy file.",
	},
	{
		op: "* /tailnet/{tailnet}/dns/*", parts: []string{"scope dns", "scope dns:read"},
		source: "https://tailscale.com/kb/1623/trust-credentials, the list of scopes",
		reason: "The document names no scope for DNS.",
	},
	{
		op: "PUT /tailnet/{tailnet}/logging/{logType}/stream", parts: []string{"body $.s3ExternalId string"},
		source: "SetLogstreamConfigurationRequest in logging.go of the official Go client",
		reason: "The document says that it is read-only. It is one of several IDs with which an AWS role can be assumed.",
	},
}

// A checker compares uses of the API with its document, and collects the undocumented uses.
type checker struct {
	t     *testing.T
	doc   *facts.Document
	found map[finding]bool
}

func newChecker(t *testing.T) *checker {
	t.Helper()
	doc, err := facts.Tailscale()
	if err != nil {
		t.Fatalf("Tailscale(): %v", err)
	}
	return &checker{t: t, doc: doc, found: map[finding]bool{}}
}

// op returns the documented operation of a call, or nil.
func (k *checker) op(c apiCall) *facts.Operation {
	for used, documented := range sameAs {
		c.path = strings.ReplaceAll(c.path+"/", used+"/", documented+"/")
		c.path = strings.TrimSuffix(c.path, "/")
	}
	return k.doc.Find(c.method, c.path)
}

// documentedAnswer returns a function that answers a call with all documented properties. extra
// holds further properties by operation.
func (k *checker) documentedAnswer(extra map[string]map[string]map[string]any) func(apiCall) (int, []byte) {
	return func(c apiCall) (int, []byte) {
		op := k.op(c)
		if op == nil || c.accept == mediaHuJSON && slices.Contains(op.Produces, mediaHuJSON) {
			return http.StatusOK, []byte("{}")
		}
		if len(op.Reply) == 0 {
			return http.StatusOK, nil
		}
		b, err := json.Marshal(sample(op.Reply, "$", extra[op.Name()]))
		if err != nil {
			k.t.Fatalf("cannot encode a sample: %v", err)
		}
		return http.StatusOK, b
	}
}

// calls returns the requests of a method with documented replies and with empty
// ones.
func (k *checker) calls(method string) []apiCall {
	full := &fakeAPI{answer: k.documentedAnswer(nil)}
	if out := invoke(k.t, method, full); ClassOf(out.err) == ClassUnavailable {
		k.t.Errorf("%s(...): a documented response cannot be read: %v", method, out.err)
	}
	// Some methods return an error for an empty response; their requests count.
	empty := &fakeAPI{answer: emptyAnswer}
	_ = invoke(k.t, method, empty)
	return append(full.calls, empty.calls...)
}

func emptyAnswer(c apiCall) (int, []byte) {
	if c.method == http.MethodGet {
		return http.StatusOK, []byte("{}")
	}
	return http.StatusOK, nil
}

// request checks the path, parameters, media types and body of a call.
func (k *checker) request(c apiCall) {
	if k.doc.Find(c.method, c.path) == nil {
		k.found[finding{c.method + " " + c.path, "path"}] = true
	}
	op := k.op(c)
	if op == nil {
		return
	}
	for _, name := range c.query {
		if _, ok := op.Query[name]; !ok {
			k.found[finding{op.Name(), "query " + name}] = true
		}
	}
	if c.accept != "" && len(op.Produces) > 0 && !slices.Contains(op.Produces, c.accept) {
		k.found[finding{op.Name(), "accept " + c.accept}] = true
	}
	if len(c.body) == 0 {
		return
	}
	if !slices.Contains(op.Consumes, c.contentType) {
		k.found[finding{op.Name(), "send " + c.contentType}] = true
	}
	if c.contentType != mediaJSON {
		return
	}
	unknown, err := facts.Undocumented(op.Body, c.body)
	if err != nil {
		k.t.Fatalf("%s %s: %v", c.method, c.path, err)
	}
	for _, u := range unknown {
		k.found[finding{op.Name(), "body " + u}] = true
	}
}

// replies checks the properties that a method reads. It sets an undocumented property to a number
// that no Go type can hold, and expects that the result stays the same.
func (k *checker) replies(method string, calls []apiCall, names []string) {
	baseline := invoke(k.t, method, &fakeAPI{answer: k.documentedAnswer(nil)})
	ops := map[string]*facts.Operation{}
	for _, c := range calls {
		if op := k.op(c); op != nil {
			ops[op.Name()] = op
		}
	}
	for name, op := range ops {
		for _, at := range objects(op.Reply) {
			// A Go map accepts any name.
			if len(k.read(method, baseline, name, at, []string{"noSuchProperty"})) > 0 {
				continue
			}
			unknown := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return describes(op.Reply, at, n) })
			for _, n := range k.read(method, baseline, name, at, unknown) {
				k.found[finding{name, "reply " + at + "." + n}] = true
			}
		}
	}
}

// read returns the names that a method reads at a place.
func (k *checker) read(method string, baseline methodOutcome, op, location string, names []string) []string {
	if len(names) == 0 {
		return nil
	}
	extra := map[string]any{}
	for _, n := range names {
		extra[n] = json.Number("1e999")
	}
	result := invoke(k.t, method, &fakeAPI{answer: k.documentedAnswer(map[string]map[string]map[string]any{op: {location: extra}})})
	if reflect.DeepEqual(baseline, result) {
		return nil
	}
	if len(names) == 1 {
		return names
	}
	half := len(names) / 2
	return append(k.read(method, baseline, op, location, names[:half]), k.read(method, baseline, op, location, names[half:])...)
}

// describes reports whether an object has a property. An object without documented properties has
// any property. Names are compared without regard to case.
func describes(described map[string]facts.Value, location, name string) bool {
	opaque := true
	for place := range described {
		if place == location+"{}" || strings.EqualFold(place, location+"."+name) {
			return true
		}
		opaque = opaque && !strings.HasPrefix(place, location+".")
	}
	return opaque
}

// scopes checks the OAuth scope in a method's error if an operation is refused.
func (k *checker) scopes(method string, calls []apiCall) {
	for _, refused := range calls {
		op := k.op(refused)
		if op == nil {
			continue
		}
		// Methods differ in the responses that they need to reach this call.
		e := k.refusal(method, op, k.documentedAnswer(nil))
		if e == nil {
			e = k.refusal(method, op, emptyAnswer)
		}
		if e == nil {
			k.t.Errorf("%s(...): no error if %s is refused", method, op.Name())
			continue
		}
		for scope := range strings.SplitSeq(e.Scope, " or ") {
			if !documents(op, strings.Split(scope, " and ")) {
				k.found[finding{op.Name(), "scope " + scope}] = true
			}
		}
	}
}

// refusal returns the error of a method if an operation is refused, or nil.
func (k *checker) refusal(method string, op *facts.Operation, others func(apiCall) (int, []byte)) *Error {
	out := invoke(k.t, method, &fakeAPI{answer: func(c apiCall) (int, []byte) {
		if k.op(c) == op {
			return http.StatusForbidden, []byte(`{"message":"refused"}`)
		}
		return others(c)
	}})
	var e *Error
	if !errors.As(out.err, &e) || e.Class != ClassForbidden {
		return nil
	}
	return e
}

// documents reports whether the document lists the scopes for an operation. A scope includes its
// :read part.
func documents(op *facts.Operation, scopes []string) bool {
	return slices.ContainsFunc(op.Scopes, func(set []string) bool {
		return slices.EqualFunc(set, scopes, func(want, got string) bool {
			return want == got || want == got+":read"
		})
	})
}

// jsonNames returns the names of all JSON properties in this package and the client library,
// sorted.
func jsonNames(t *testing.T) []string {
	t.Helper()
	names := map[string]bool{}
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatalf("cannot read the package: %v", err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(gotoken.NewFileSet(), e.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatalf("cannot parse: %v", err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if field, ok := n.(*ast.Field); ok && field.Tag != nil {
				if tag, err := strconv.Unquote(field.Tag.Value); err == nil {
					addJSONName(names, reflect.StructTag(tag))
				}
			}
			return true
		})
	}
	ct := reflect.TypeFor[*tsclient.Client]()
	for i := range ct.NumMethod() {
		// A method without arguments returns a resource.
		if m := ct.Method(i).Type; m.NumIn() == 1 && m.NumOut() == 1 {
			for j := range m.Out(0).NumMethod() {
				method := m.Out(0).Method(j).Type
				for o := range method.NumOut() {
					addJSONNames(names, method.Out(o), map[reflect.Type]bool{})
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func addJSONNames(names map[string]bool, rt reflect.Type, seen map[reflect.Type]bool) {
	if seen[rt] {
		return
	}
	seen[rt] = true
	switch rt.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		addJSONNames(names, rt.Elem(), seen)
	case reflect.Struct:
		for i := range rt.NumField() {
			addJSONName(names, rt.Field(i).Tag)
			addJSONNames(names, rt.Field(i).Type, seen)
		}
	default:
	}
}

func addJSONName(names map[string]bool, tag reflect.StructTag) {
	if name, _, _ := strings.Cut(tag.Get("json"), ","); name != "" && name != "-" {
		names[name] = true
	}
}

// TestOpenAPI calls every method of Client's resources with an API that answers as Tailscale's OpenAPI document
// describes. It compares the requests, the properties that the method reads and the OAuth scopes in
// errors with the document. Undocumented uses need another source.
func TestOpenAPI(t *testing.T) {
	k := newChecker(t)
	names := jsonNames(t)
	for _, method := range clientMethods(t) {
		calls := k.calls(method)
		if len(calls) == 0 {
			t.Errorf("%s(...): sends nothing", method)
		}
		for _, c := range calls {
			k.request(c)
		}
		k.replies(method, calls, names)
		k.scopes(method, calls)
	}
	needed := map[string]bool{}
	byName := func(a, b finding) int { return cmp.Or(cmp.Compare(a.op, b.op), cmp.Compare(a.part, b.part)) }
	for _, f := range slices.SortedFunc(maps.Keys(k.found), byName) {
		i := slices.IndexFunc(undocumentedUses, func(u undocumented) bool { return u.covers(f) })
		if i < 0 {
			t.Errorf("%s: the OpenAPI document lacks: %s", f.op, f.part)
			continue
		}
		needed[undocumentedUses[i].op+f.part] = true
	}
	for _, u := range undocumentedUses {
		for _, w := range u.parts {
			if !needed[u.op+w] {
				t.Errorf("%s: %s no longer needs an exception", u.op, w)
			}
		}
	}
}
