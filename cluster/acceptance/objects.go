// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// An object identifies an object that a run created, or may have created.
type object struct{ kind, name, id string }

// A kind finds and removes its objects. find returns those whose names have the prefix; remove
// succeeds if the object does not exist.
type kind struct {
	name   string
	find   func(ctx context.Context, s *session, prefix string) ([]object, error)
	remove func(ctx context.Context, s *session, o object) error
}

// kinds returns the kinds in the order of their removal.
func kinds() []kind {
	return []kind{
		{kindPolicy, findPolicyMarks, removePolicyMark},
		{kindFragment, findFragments, removeFragment},
		{kindSetting, nil, removeSetting},
		{kindService, findServices, removeService},
		{kindAttribute, nil, removeAttribute},
		{kindDevice, findDevices, removeDevice},
		{kindKey, findKeys, removeKey},
		{kindWebhook, findWebhooks, removeWebhook},
		{kindSplitDNS, findSplitDNS, removeSplitDNS},
		{kindDir, nil, removeDir},
	}
}

// mine reports whether a name has the prefix: it is the prefix, or continues with a separator.
func mine(name, prefix string) bool {
	rest, ok := strings.CutPrefix(name, prefix)
	return ok && prefix != "" && (rest == "" || strings.ContainsAny(rest[:1], "-. /"))
}

// list returns the objects that match in a list of the API.
func list(ctx context.Context, s *session, field string, match func(map[string]any) (object, bool), path ...string) ([]object, error) {
	r, err := s.do(ctx, call{method: http.MethodGet, path: path, query: allOf(field)})
	if err != nil {
		return nil, err
	}
	if !r.ok() {
		return nil, &statusError{r.status, "cannot list " + field}
	}
	all, _ := r.object()[field].([]any)
	var out []object
	for _, e := range all {
		m, _ := e.(map[string]any)
		if o, ok := match(m); ok {
			out = append(out, o)
		}
	}
	return out, nil
}

// A statusError is a refusal by the API.
type statusError struct {
	status  int
	message string
}

func (e *statusError) Error() string { return e.message + ": " + http.StatusText(e.status) }

func str(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}

// removed returns nil if a reply means that the object is gone.
func removed(subject string, r *reply, err error) error {
	if err != nil {
		return err
	}
	if r.ok() || r.status == http.StatusNotFound || r.status == http.StatusGone {
		return nil
	}
	return errors.Wrapf(&statusError{r.status, "refused"}, "cannot remove %s", subject)
}

func findServices(ctx context.Context, s *session, prefix string) ([]object, error) {
	return list(ctx, s, "vipServices", func(m map[string]any) (object, bool) {
		n := str(m, "name")
		return object{kindService, n, ""}, mine(strings.TrimPrefix(n, "svc:"), prefix)
	}, s.tn("vip-services")...)
}

func removeService(ctx context.Context, s *session, o object) error {
	r, err := s.delete(ctx, s.tn("vip-services", o.name)...)
	return removed("service "+o.name, r, err)
}

func findDevices(ctx context.Context, s *session, prefix string) ([]object, error) {
	return list(ctx, s, "devices", func(m map[string]any) (object, bool) {
		id := str(m, "nodeId")
		if id == "" {
			id = str(m, "id")
		}
		return object{kindDevice, str(m, "hostname"), id}, mine(str(m, "hostname"), prefix)
	}, s.tn("devices")...)
}

// removeDevice removes a device by its ID, or by its hostname if the ledger has no ID, because the
// node did not join, or the run ended before it recorded the ID.
func removeDevice(ctx context.Context, s *session, o object) error {
	if o.id != "" {
		r, err := s.delete(ctx, "device", o.id)
		return removed("device "+o.name, r, err)
	}
	found, err := findDevices(ctx, s, o.name)
	for _, f := range found {
		if f.name == o.name && err == nil {
			err = removeDevice(ctx, s, f)
		}
	}
	return err
}

// allOf returns the query for a list: without it an OAuth client gets no auth keys.
func allOf(field string) url.Values {
	if field == "keys" {
		return url.Values{"all": {"true"}}
	}
	return nil
}

// isAuthKey reports whether a key is an auth key, and not an OAuth client or another kind. Lists
// that have only identifiers do not have the kind.
func isAuthKey(m map[string]any) bool {
	t := str(m, "keyType")
	return t == "auth" || t == ""
}

// findKeys gets keys one by one if the list has only identifiers, as in some versions of the API.
func findKeys(ctx context.Context, s *session, prefix string) ([]object, error) {
	all, err := list(ctx, s, "keys", func(m map[string]any) (object, bool) {
		return object{kindKey, str(m, "description"), str(m, "id")}, str(m, "id") != "" && isAuthKey(m)
	}, s.tn("keys")...)
	if err != nil {
		return nil, err
	}
	var out []object
	for _, k := range all {
		if k.name == "" {
			r, err := s.get(ctx, s.tn("keys", k.id)...)
			if err != nil {
				return nil, err
			}
			if !isAuthKey(r.object()) {
				continue
			}
			k.name = str(r.object(), "description")
		}
		if mine(k.name, prefix) {
			out = append(out, k)
		}
	}
	return out, nil
}

func removeKey(ctx context.Context, s *session, o object) error {
	if o.id != "" {
		r, err := s.delete(ctx, s.tn("keys", o.id)...)
		return removed("key "+o.name, r, err)
	}
	found, err := findKeys(ctx, s, o.name)
	for _, f := range found {
		if f.name == o.name && err == nil {
			err = removeKey(ctx, s, f)
		}
	}
	return err
}

func findWebhooks(ctx context.Context, s *session, prefix string) ([]object, error) {
	return list(ctx, s, "webhooks", func(m map[string]any) (object, bool) {
		u := str(m, "endpointUrl")
		return object{kindWebhook, u, str(m, "endpointId")}, mine(strings.TrimPrefix(u, "https://"), prefix)
	}, s.tn("webhooks")...)
}

func removeWebhook(ctx context.Context, s *session, o object) error {
	if o.id != "" {
		r, err := s.delete(ctx, "webhooks", o.id)
		return removed("webhook "+o.name, r, err)
	}
	found, err := findWebhooks(ctx, s, strings.TrimPrefix(o.name, "https://"))
	for _, f := range found {
		if f.name == o.name && err == nil {
			err = removeWebhook(ctx, s, f)
		}
	}
	return err
}

func findSplitDNS(ctx context.Context, s *session, prefix string) ([]object, error) {
	r, err := s.get(ctx, s.tn("dns", "split-dns")...)
	if err != nil {
		return nil, err
	}
	if !r.ok() {
		return nil, &statusError{r.status, "cannot get split DNS"}
	}
	var out []object
	for domain := range r.object() {
		if mine(domain, prefix) {
			out = append(out, object{kindSplitDNS, domain, ""})
		}
	}
	return out, nil
}

// removeSplitDNS tries both ways to remove a domain. The documentation has the first.
func removeSplitDNS(ctx context.Context, s *session, o object) error {
	r, err := s.send(ctx, http.MethodPatch, map[string]any{o.name: nil}, s.tn("dns", "split-dns")...)
	if err != nil {
		return err
	}
	remaining, err := findSplitDNS(ctx, s, o.name)
	if err != nil || len(remaining) == 0 {
		return errors.Join(err, removed("split DNS of "+o.name, r, nil))
	}
	r, err = s.send(ctx, http.MethodPatch, map[string]any{o.name: []string{}}, s.tn("dns", "split-dns")...)
	if err := removed("split DNS of "+o.name, r, err); err != nil {
		return err
	}
	if remaining, err = findSplitDNS(ctx, s, o.name); err == nil && len(remaining) > 0 {
		err = errors.Errorf("cannot remove split DNS of %s: the API keeps it", o.name)
	}
	return err
}

func removeAttribute(ctx context.Context, s *session, o object) error {
	r, err := s.delete(ctx, "device", o.id, "attributes", o.name)
	return removed("attribute "+o.name, r, err)
}

// removeDir removes a temporary folder, and nothing else.
func removeDir(_ context.Context, _ *session, o object) error {
	if filepath.Dir(o.name) != filepath.Clean(os.TempDir()) {
		return errors.Errorf("folder %q is not in the temporary folder", o.name)
	}
	return errors.Wrap(os.RemoveAll(o.name), "cannot remove folder")
}

// policyMark returns the line that a run adds to the policy file.
func policyMark(prefix string) string {
	return "// " + prefix + ": added by the acceptance run, may be removed"
}

// withMark returns the policy file with the mark as its last line.
func withMark(text, mark string) string {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text + mark + "\n"
}

// withoutMark returns the policy file without the lines that are the mark.
func withoutMark(text, mark string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != mark {
			out.WriteString(line)
		}
	}
	return out.String()
}

func getPolicy(ctx context.Context, s *session) (*reply, error) {
	return s.do(ctx, call{method: http.MethodGet, path: s.tn("acl"), header: map[string]string{"Accept": "application/hujson"}})
}

// setPolicy writes the policy file if it still has the ETag.
func setPolicy(ctx context.Context, s *session, text, etag string) (*reply, error) {
	return s.do(ctx, call{
		method: http.MethodPost, path: s.tn("acl"), body: text,
		header: map[string]string{"Accept": "application/hujson", "If-Match": `"` + strings.Trim(etag, `"`) + `"`},
	})
}

func findPolicyMarks(ctx context.Context, s *session, prefix string) ([]object, error) {
	r, err := getPolicy(ctx, s)
	if err != nil {
		return nil, err
	}
	if !r.ok() {
		return nil, &statusError{r.status, "cannot get the policy file"}
	}
	if text := string(r.body); withoutMark(text, policyMark(prefix)) != text {
		return []object{{kindPolicy, policyMark(prefix), ""}}, nil
	}
	return nil, nil
}

// removePolicyMark removes the mark.
func removePolicyMark(ctx context.Context, s *session, o object) error {
	return editPolicy(ctx, s, func(text string) (string, error) { return withoutMark(text, o.name), nil })
}
