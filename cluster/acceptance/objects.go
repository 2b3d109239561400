// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/marks"
	"github.com/tailscale-gateway/tailscale-gateway/internal/policyfile"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
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
		{kindDevice, findDevices, byID(findDevices, func(c *tailscale.Client) remover { return c.Devices().DeleteDevice })},
		{kindKey, findKeys, byID(findKeys, func(c *tailscale.Client) remover { return c.Keys().RevokeAuthKey })},
		{kindWebhook, findWebhooks, byID(findWebhooks, func(c *tailscale.Client) remover { return c.Webhooks().DeleteWebhook })},
		{kindSplitDNS, findSplitDNS, removeSplitDNS},
		{kindDir, nil, removeDir},
	}
}

// mine reports whether a name has the prefix: it is the prefix, or continues with a separator.
func mine(name, prefix string) bool {
	rest, ok := strings.CutPrefix(name, prefix)
	return ok && prefix != "" && (rest == "" || strings.ContainsAny(rest[:1], "-. /"))
}

// filter returns a function that returns the objects of a list of the API whose names have the prefix.
func filter[T any](prefix string, identify func(T) object) func([]T, error) ([]object, error) {
	return func(all []T, err error) ([]object, error) {
		var out []object
		for _, e := range all {
			o := identify(e)
			if mine(strings.TrimPrefix(strings.TrimPrefix(o.name, "svc:"), "https://"), prefix) {
				out = append(out, o)
			}
		}
		return out, err
	}
}

// A remover removes an object by its ID.
type remover = func(ctx context.Context, id string) error

// byID returns a function that removes an object by its ID, or all with its name if the ledger has no
// ID, because the object was not created, or the run ended before it recorded the ID.
func byID(find func(context.Context, *session, string) ([]object, error), choose func(*tailscale.Client) remover) func(context.Context, *session, object) error {
	return func(ctx context.Context, s *session, o object) error {
		remove := choose(s.product)
		if o.id != "" {
			return remove(ctx, o.id)
		}
		found, err := find(ctx, s, strings.TrimPrefix(o.name, "https://"))
		for _, f := range found {
			if f.name == o.name && err == nil {
				err = remove(ctx, f.id)
			}
		}
		return err
	}
}

// named returns the objects of the run in the tailnet that have a kind and a name.
func (t *turn) named(ctx context.Context, o object) ([]object, error) {
	all := kinds()
	i := slices.IndexFunc(all, func(k kind) bool { return k.name == o.kind })
	found, err := all[i].find(ctx, t.session, t.run.prefix)
	return slices.DeleteFunc(found, func(f object) bool { return f.name != o.name }), err
}

func str(m map[string]any, key string) string {
	s, _ := m[key].(string)
	return s
}

func findServices(ctx context.Context, s *session, prefix string) ([]object, error) {
	return filter(prefix, func(v tailscale.Service) object { return object{kindService, v.Name, ""} })(s.product.Services().Services(ctx, tailscale.Current))
}

func removeService(ctx context.Context, s *session, o object) error {
	return s.product.Services().DeleteService(ctx, o.name)
}

func findDevices(ctx context.Context, s *session, prefix string) ([]object, error) {
	return filter(prefix, func(d tailscale.Device) object { return object{kindDevice, d.Hostname, cmp.Or(d.NodeID, d.ID)} })(s.product.Devices().Devices(ctx, tailscale.Current))
}

func findKeys(ctx context.Context, s *session, prefix string) ([]object, error) {
	return filter(prefix, func(k tailscale.Key) object { return object{kindKey, marks.Text(k.Description), k.ID} })(s.product.Keys().AuthKeys(ctx, tailscale.Current))
}

func findWebhooks(ctx context.Context, s *session, prefix string) ([]object, error) {
	return filter(prefix, func(w tailscale.Webhook) object { return object{kindWebhook, w.EndpointURL, w.EndpointID} })(s.product.Webhooks().Webhooks(ctx, tailscale.Current))
}

func findSplitDNS(ctx context.Context, s *session, prefix string) ([]object, error) {
	d, err := s.product.DNS().DNS(ctx, tailscale.Current)
	return filter(prefix, func(domain string) object { return object{kindSplitDNS, domain, ""} })(sortedKeys(d.SplitDNS), err)
}

func removeSplitDNS(ctx context.Context, s *session, o object) error {
	return s.product.DNS().PatchSplitDNS(ctx, map[string][]string{o.name: nil})
}

func removeAttribute(ctx context.Context, s *session, o object) error {
	return s.product.Devices().DeleteDeviceAttribute(ctx, o.id, o.name)
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
	p, err := s.product.PolicyFile().PolicyFile(ctx, tailscale.Current)
	if err != nil || withoutMark(p.Text, policyMark(prefix)) == p.Text {
		return nil, err
	}
	return []object{{kindPolicy, policyMark(prefix), ""}}, nil
}

// removePolicyMark removes the mark.
func removePolicyMark(ctx context.Context, s *session, o object) error {
	_, err := s.product.PolicyFile().EditPolicyFile(ctx, func(text string) (string, error) { return withoutMark(text, o.name), nil })
	return err
}

// fragmentRoot begins the owners of the entries that runs add to the policy file: clusterID, a prefix, and a
// name.
const fragmentRoot = clusterID + "/"

func findFragments(ctx context.Context, s *session, prefix string) ([]object, error) {
	p, err := s.product.PolicyFile().PolicyFile(ctx, tailscale.Current)
	if err != nil {
		return nil, err
	}
	owners, err := policyfile.Owners([]byte(p.Text))
	if err != nil {
		return nil, errors.Wrap(err, "cannot read the policy file")
	}
	var out []object
	for _, o := range sortedKeys(owners) {
		if name, ok := strings.CutPrefix(o, fragmentRoot); ok && mine(name, prefix) {
			out = append(out, object{kindFragment, o, ""})
		}
	}
	return out, nil
}

// removeFragment removes the owner's entries, and nothing else.
func removeFragment(ctx context.Context, s *session, o object) error {
	_, err := s.product.PolicyFile().EditPolicyFile(ctx, func(text string) (string, error) {
		out, _, err := policyfile.Merge([]byte(text), o.name, nil, policyfile.Options{})
		return string(out), err
	})
	return err
}
