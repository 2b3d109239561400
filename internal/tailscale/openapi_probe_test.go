// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"bytes"
	"context"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/hack/apicheck/facts"
)

// An apiCall is a request that a Client sent.
type apiCall struct {
	method, path string
	query        []string // Names of parameters, sorted.
	body         []byte
	contentType  string
	accept       string
}

// A fakeAPI is a transport that answers every request and records it.
type fakeAPI struct {
	answer func(c apiCall) (status int, body []byte)

	mu    sync.Mutex
	calls []apiCall
}

// RoundTrip implements http.RoundTripper.
func (f *fakeAPI) RoundTrip(req *http.Request) (*http.Response, error) {
	path, ok := strings.CutPrefix(req.URL.EscapedPath(), "/api/v2")
	if !ok {
		return nil, errors.Errorf("%s is not a path of the API", req.URL.Path)
	}
	c := apiCall{
		method: req.Method, path: path, query: slices.Sorted(maps.Keys(req.URL.Query())),
		contentType: req.Header.Get("Content-Type"), accept: req.Header.Get("Accept"),
	}
	if req.Body != nil {
		var err error
		if c.body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
	}
	f.mu.Lock()
	f.calls = append(f.calls, c)
	f.mu.Unlock()
	status, body := f.answer(c)
	return &http.Response{
		StatusCode: status, Request: req, Body: io.NopCloser(bytes.NewReader(body)),
		Header: http.Header{"Content-Type": {mediaJSON}, "Etag": {`"x"`}, "Date": {"Fri, 02 Jan 2026 03:04:05 GMT"}},
	}, nil
}

// A methodOutcome holds the results of a method of a resource, except for its error.
type methodOutcome struct {
	results []any
	err     error
}

// clientMethods returns the names of all exported methods of Client's resources that call the API: the
// name of the resource, a dot and that of the method. It fails the test if Client has another method.
func clientMethods(t *testing.T) []string {
	t.Helper()
	var names []string
	ct := reflect.TypeFor[*Client]()
	for i := range ct.NumMethod() {
		resource := ct.Method(i)
		switch resource.Name {
		case "Guarded", "Signing", "RoundTripper": // Send nothing.
			continue
		}
		if resource.Type.NumIn() != 1 || resource.Type.NumOut() != 1 || !strings.HasSuffix(resource.Type.Out(0).Name(), "Resource") {
			t.Errorf("Client.%s returns no resource: no test of all calls knows it", resource.Name)
			continue
		}
		for j := range resource.Type.Out(0).NumMethod() {
			switch n := resource.Type.Out(0).Method(j).Name; n {
			case "KnownTailnetIdentity": // Sends nothing.
			case "TailnetIdentity": // Calls Domain and Organization, and permits that both are refused.
			default:
				names = append(names, resource.Name+"."+n)
			}
		}
	}
	return names
}

// invoke calls a method of a resource of a new Client with arguments that are not zero.
func invoke(t *testing.T, method string, api http.RoundTripper) methodOutcome {
	t.Helper()
	o := Options{Rate: 1e9, Burst: 1e6, ListMaxAge: time.Minute, Metrics: NewMetrics(), Transport: api}
	c, err := NewClient(Config{URL: "http://api.invalid", APIKey: "tskey-api-x-test"}, o)
	if err != nil {
		t.Fatalf("NewClient(...): %v", err)
	}
	resource, call, _ := strings.Cut(method, ".")
	m := reflect.ValueOf(c).MethodByName(resource).Call(nil)[0].MethodByName(call)
	args := make([]reflect.Value, 0, m.Type().NumIn())
	for i := range m.Type().NumIn() {
		args = append(args, nonZero(t, m.Type().In(i)))
	}
	var out methodOutcome
	for _, r := range m.Call(args) {
		if err, ok := r.Interface().(error); ok {
			out.err = err
			continue
		}
		out.results = append(out.results, withoutOthers(r.Interface()))
	}
	return out
}

// withoutOthers returns a result without the fields that a service keeps for others: they hold
// whatever an API returns, and say nothing of what the product reads.
func withoutOthers(result any) any {
	switch r := result.(type) {
	case *Service:
		if r != nil {
			r.Others = nil
		}
	case []Service:
		for i := range r {
			r[i].Others = nil
		}
	}
	return result
}

// nonZero returns a value of a type, all of whose parts are not zero.
func nonZero(t *testing.T, rt reflect.Type) reflect.Value {
	t.Helper()
	switch rt {
	case reflect.TypeFor[context.Context]():
		return reflect.ValueOf(t.Context())
	case reflect.TypeFor[time.Duration]():
		return reflect.ValueOf(time.Hour)
	case reflect.TypeFor[func(string) (string, error)]():
		return reflect.ValueOf(func(text string) (string, error) { return text + "\n", nil })
	case reflect.TypeFor[Fields]():
		// Fields of other programs are in no document.
		return reflect.Zero(rt)
	case reflect.TypeFor[any]():
		return reflect.ValueOf("x")
	}
	v := reflect.New(rt).Elem()
	switch rt.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Pointer:
		v.Set(reflect.New(rt.Elem()))
		v.Elem().Set(nonZero(t, rt.Elem()))
	case reflect.Slice:
		v.Set(reflect.Append(v, nonZero(t, rt.Elem())))
	case reflect.Map:
		v.Set(reflect.MakeMap(rt))
		v.SetMapIndex(nonZero(t, rt.Key()), nonZero(t, rt.Elem()))
	case reflect.Struct:
		for i := range rt.NumField() {
			v.Field(i).Set(nonZero(t, rt.Field(i).Type))
		}
	default:
		t.Fatalf("nonZero does not support %s: add it", rt)
	}
	return v
}

// sample returns JSON of everything that is documented at a place and below. extra holds further
// properties of objects, by the place of the object.
func sample(described map[string]facts.Value, location string, extra map[string]map[string]any) any {
	v := described[location]
	switch kind(v) {
	case "object":
		out := map[string]any{}
		for place := range described {
			if name, ok := strings.CutPrefix(place, location+"."); ok && !strings.ContainsAny(name, ".[{") {
				out[name] = sample(described, place, extra)
			}
		}
		if _, ok := described[location+"{}"]; ok {
			out["x"] = sample(described, location+"{}", extra)
		}
		maps.Copy(out, extra[location])
		return out
	case "array":
		return []any{sample(described, location+"[]", extra)}
	case "boolean":
		return true
	case "integer", "number":
		return 1
	case "null":
		return nil
	}
	switch {
	case len(v.Enum()) > 0:
		return v.Enum()[0]
	case v.Format() == "date-time":
		return "2026-01-02T03:04:05Z"
	}
	return "x"
}

// kind returns the type among a value's types that samples use.
func kind(v facts.Value) string {
	ts := v.Types()
	if len(ts) > 1 {
		ts = slices.DeleteFunc(ts, func(t string) bool { return t == "null" })
	}
	if len(ts) == 0 {
		return "string"
	}
	return ts[0]
}

// objects returns the places that hold objects, sorted.
func objects(described map[string]facts.Value) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(described)), func(location string) bool { return kind(described[location]) != "object" })
}
