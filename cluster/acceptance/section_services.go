// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

const sectionServices = "services"

func serviceRows() []row {
	write := []need{needWrite}
	return []row{
		{sectionServices, "create", "A service is created without addresses, and gets an IPv4 and an IPv6 address.", write, createService},
		{sectionServices, "update", "An update that includes the addresses keeps them and changes the rest.", write, updateService},
		{sectionServices, "delete", "A removed service is not found, and a second removal does no harm.", write, deleteService},
		{sectionServices, "spellings", "/services and /vip-services show the same service.", write, spellings},
		{sectionServices, "no-ports", "How the API handles a service without ports.", write, noPorts},
		{sectionServices, "omitted-addresses", "How the API handles an update that omits the addresses.", write, omittedAddresses},
		{sectionServices, "reserved-address", "No service gets an address that Tailscale uses itself.", write, reservedAddress},
		{sectionServices, "foreign-tag", "A tag that the credential does not own is refused.", write, foreignTag},
		{sectionServices, "bad-name", "A name that is not a DNS label is refused.", write, badName},
		{sectionServices, "address-again", "A service that is created again gets its IPv4 address back on request.", write, addressAgain},
		{sectionServices, "comment-size", "A service keeps a comment of 256 characters; the row finds the limit.", write, commentSize},
		{sectionServices, "annotation-size", "A service keeps an annotation of 4 KiB; the row finds the limit.", write, annotationSize},
		{sectionServices, "annotation-number", "A service keeps eight annotations; the row finds the limit.", write, annotationNumber},
		{sectionServices, "product", "The product's own client creates, changes and removes a service.", write, productService},
	}
}

// service returns a service of the run with one port.
func (t *turn) service(suffix string) tailscale.Service {
	return tailscale.Service{
		Name: "svc:" + t.name(suffix), Ports: []string{"tcp:80"}, Tags: []string{t.run.opts.Tag},
		Comment: "acceptance run " + t.run.prefix,
	}
}

// put creates or replaces a service, after its entry in the ledger.
func (t *turn) put(ctx context.Context, s tailscale.Service) (*reply, error) {
	path := t.tn("vip-services", s.Name)
	if slices.ContainsFunc(t.run.ledger.left(), func(e entry) bool { return e.Kind == kindService && e.Name == s.Name }) {
		return t.send(ctx, http.MethodPut, s, path...)
	}
	seq, err := t.run.ledger.intend(t.owner(), kindService, s.Name, "")
	if err != nil {
		return nil, err
	}
	r, err := t.send(ctx, http.MethodPut, s, path...)
	if err != nil {
		return nil, err
	}
	return r, t.tried(seq, r)
}

// owner returns the ID of the row that owns an object.
func (t *turn) owner() string { return t.row.id() }

// fetch returns a service from the API.
func (t *turn) fetch(ctx context.Context, name string) (tailscale.Service, error) {
	var s tailscale.Service
	r, err := t.get(ctx, t.tn("vip-services", name)...)
	if err != nil {
		return s, err
	}
	if err := t.want("GET service", r, http.StatusOK); err != nil {
		return s, err
	}
	return s, errors.Join(t.findings(r, reflect.TypeFor[tailscale.Service](), "name", "addrs"), r.into(&s))
}

// made creates a service and returns it as the API has it.
func (t *turn) made(ctx context.Context, s tailscale.Service) (tailscale.Service, error) {
	r, err := t.put(ctx, s)
	if err != nil {
		return s, err
	}
	if err := t.want("PUT service", r, http.StatusOK, http.StatusCreated); err != nil {
		return s, err
	}
	return t.fetch(ctx, s.Name)
}

// addresses returns the addresses of a service, which must be one of each kind.
func addresses(s tailscale.Service) (v4, v6 netip.Addr, err error) {
	for _, a := range s.Addrs {
		p, err := netip.ParseAddr(a)
		if err != nil {
			return v4, v6, errors.Wrap(err, "cannot parse address")
		}
		if p.Is4() {
			v4 = p
		} else {
			v6 = p
		}
	}
	if !v4.IsValid() || !v6.IsValid() || len(s.Addrs) != 2 {
		return v4, v6, errors.Errorf("want an IPv4 and an IPv6 address, got %v", s.Addrs)
	}
	return v4, v6, nil
}

func createService(ctx context.Context, t *turn) error {
	want := t.service("create")
	want.Annotations = map[string]string{meta.AnnotationOwner: t.run.prefix, "example.com/empty": ""}
	r, err := t.put(ctx, want)
	if err != nil {
		return err
	}
	if err := t.want("PUT service", r, http.StatusOK, http.StatusCreated); err != nil {
		return err
	}
	t.observe("status", r.status)
	t.observe("reply has the service", str(r.object(), "name") == want.Name)
	stored, err := t.fetch(ctx, want.Name)
	if err != nil {
		return err
	}
	if _, _, err := addresses(stored); err != nil {
		return err
	}
	if first, err := netip.ParseAddr(stored.Addrs[0]); err != nil || !first.Is4() {
		t.note("the first address is not the IPv4 address")
	}
	if diff := differs(want, stored); diff != "" {
		return errors.New(diff)
	}
	all, err := findServices(ctx, t.session, t.run.prefix)
	if err != nil {
		return err
	}
	if !slices.Contains(all, object{kindService, want.Name, ""}) {
		return errors.New("the list lacks the service")
	}
	return nil
}

// differs describes what the API did not keep of a service, except for its addresses.
func differs(want, stored tailscale.Service) string {
	var out []string
	if want.Name != stored.Name {
		out = append(out, fmt.Sprintf("name is %q, want %q", stored.Name, want.Name))
	}
	if want.Comment != stored.Comment {
		out = append(out, fmt.Sprintf("comment of %d characters, want %d", len(stored.Comment), len(want.Comment)))
	}
	if !slices.Equal(want.Ports, stored.Ports) {
		out = append(out, fmt.Sprintf("ports are %v, want %v", stored.Ports, want.Ports))
	}
	if !slices.Equal(want.Tags, stored.Tags) {
		out = append(out, fmt.Sprintf("tags are %v, want %v", stored.Tags, want.Tags))
	}
	for k, v := range want.Annotations {
		if g, ok := stored.Annotations[k]; g != v {
			out = append(out, fmt.Sprintf("annotation %s differs (kept: %t)", k, ok))
		}
	}
	if len(stored.Annotations) > len(want.Annotations) {
		out = append(out, "there are annotations that nobody wrote")
	}
	return strings.Join(out, "; ")
}

func updateService(ctx context.Context, t *turn) error {
	s, err := t.made(ctx, t.service("update"))
	if err != nil {
		return err
	}
	next := s
	next.Comment, next.Ports = "another comment", []string{"tcp:80", "tcp:443"}
	next.Annotations = map[string]string{"example.com/a": "1", "example.com/b": "{\"json\": [1, \"two\"]}"}
	stored, err := t.made(ctx, next)
	if err != nil {
		return err
	}
	if !slices.Equal(stored.Addrs, s.Addrs) {
		return errors.Errorf("the addresses changed from %v to %v", s.Addrs, stored.Addrs)
	}
	if diff := differs(next, stored); diff != "" {
		return errors.New(diff)
	}
	// An update removes the fields that it omits.
	next.Annotations, next.Comment = map[string]string{"example.com/a": "2"}, ""
	if stored, err = t.made(ctx, next); err != nil {
		return err
	}
	if diff := differs(next, stored); diff != "" {
		return errors.Errorf("an update that omits fields: %s", diff)
	}
	return nil
}

func deleteService(ctx context.Context, t *turn) error {
	s, err := t.made(ctx, t.service("delete"))
	if err != nil {
		return err
	}
	path := t.tn("vip-services", s.Name)
	r, err := t.delete(ctx, path...)
	if err != nil {
		return err
	}
	t.observe("first", r.status)
	if err := t.want("DELETE service", r, http.StatusOK, http.StatusNoContent, http.StatusAccepted); err != nil {
		return err
	}
	if r, err = t.get(ctx, path...); err != nil {
		return err
	}
	if err := t.want("GET of a service that was removed", r, http.StatusNotFound); err != nil {
		return err
	}
	if r, err = t.delete(ctx, path...); err != nil {
		return err
	}
	t.observe("second", r.status)
	return t.want("DELETE of a service that was removed", r, http.StatusNotFound, http.StatusOK, http.StatusNoContent)
}

func spellings(ctx context.Context, t *turn) error {
	s := t.service("spelling")
	s.Annotations = map[string]string{"example.com/a": "1"}
	if _, err := t.made(ctx, s); err != nil {
		return err
	}
	r, err := t.get(ctx, t.tn("services", s.Name)...)
	if err != nil {
		return err
	}
	t.observe("status", r.status)
	if !r.ok() {
		t.note("/services answered %d: %s", r.status, r.message())
		return nil
	}
	a, _ := r.object()["annotations"].(map[string]any)
	t.observe("/services has annotations", len(a) > 0)
	t.observe("/services has the name", str(r.object(), "name") == s.Name)
	return nil
}

func noPorts(ctx context.Context, t *turn) error {
	s := t.service("no-ports")
	s.Ports = nil
	r, err := t.put(ctx, s)
	if err != nil {
		return err
	}
	return t.refused("a service without ports", r, false)
}

func omittedAddresses(ctx context.Context, t *turn) error {
	s, err := t.made(ctx, t.service("omitted"))
	if err != nil {
		return err
	}
	next := s
	next.Addrs, next.Comment = nil, "without addresses"
	r, err := t.put(ctx, next)
	if err != nil {
		return err
	}
	if err := t.refused("an update without addresses", r, false); err != nil {
		return err
	}
	stored, err := t.fetch(ctx, s.Name)
	if err != nil {
		return err
	}
	t.observe("addresses stay", slices.Equal(stored.Addrs, s.Addrs))
	if !slices.Equal(stored.Addrs, s.Addrs) {
		t.note("the service has other addresses now: an update that omits them replaces them")
	}
	return nil
}

func reservedAddress(ctx context.Context, t *turn) error {
	s := t.service("reserved")
	s.Addrs = []string{"100.100.100.100"}
	r, err := t.put(ctx, s)
	if err != nil {
		return err
	}
	if r.ok() {
		stored, err := t.fetch(ctx, s.Name)
		if err != nil {
			return err
		}
		if slices.Contains(stored.Addrs, s.Addrs[0]) {
			return errors.New("a service got the address of MagicDNS")
		}
		t.note("not refused: the service got other addresses")
	}
	return t.refused("the address of MagicDNS", r, false)
}

func foreignTag(ctx context.Context, t *turn) error {
	if t.cred.apiKey != "" {
		return skipf(skipMissing, "an API access token acts for a user, who may own every tag")
	}
	s := t.service("foreign")
	s.Tags = []string{"tag:" + t.name("foreign")}
	r, err := t.put(ctx, s)
	if err != nil {
		return err
	}
	t.observe("status", r.status)
	if r.ok() {
		return errors.New("the API accepted a tag that nobody owns")
	}
	t.note("refused with %d: %s", r.status, r.message())
	return nil
}

func badName(ctx context.Context, t *turn) error {
	s := t.service("bad_name")
	r, err := t.put(ctx, s)
	if err != nil {
		return err
	}
	return t.refused("a name with an underscore", r, true)
}

func addressAgain(ctx context.Context, t *turn) error {
	s, err := t.made(ctx, t.service("again"))
	if err != nil {
		return err
	}
	v4, v6, err := addresses(s)
	if err != nil {
		return err
	}
	remake := func(addrs []string) (tailscale.Service, error) {
		if err := t.product.Services().DeleteService(ctx, s.Name); err != nil {
			return s, err
		}
		next := t.service("again")
		next.Addrs = addrs
		return t.made(ctx, next)
	}
	same, err := remake(nil)
	if err != nil {
		return err
	}
	t.observe("made again without a wish has the same address", slices.Equal(same.Addrs, s.Addrs))
	wish, err := remake([]string{v4.String()})
	if err != nil {
		return errors.Wrap(err, "cannot create the service with the requested IPv4 address")
	}
	got4, got6, err := addresses(wish)
	if err != nil {
		return err
	}
	if got4 != v4 {
		return errors.Errorf("requested %s, got %s", v4, got4)
	}
	t.observe("the IPv6 address comes back with the IPv4 address", got6 == v6)
	return nil
}

func productService(ctx context.Context, t *turn) error {
	c, err := t.login(t.cred)
	if err != nil {
		return err
	}
	s := t.service("product")
	s.DisplayName = "Acceptance"
	if _, err := t.run.ledger.intend(t.owner(), kindService, s.Name, ""); err != nil {
		return err
	}
	created, err := c.Services().PutService(ctx, s)
	if err != nil {
		return errors.Wrap(err, "cannot create the service")
	}
	t.observe("displayName is kept", created.DisplayName == s.DisplayName)
	created.Comment = "changed by the product's client"
	updated, err := c.Services().PutService(ctx, *created)
	if err != nil {
		return errors.Wrap(err, "cannot change the service")
	}
	if updated.Comment != created.Comment || !slices.Equal(updated.Addrs, created.Addrs) {
		return errors.New("the service is not what was written")
	}
	hosts, err := c.Services().Hosts(ctx, s.Name)
	if err != nil {
		return errors.Wrap(err, "cannot list the hosts")
	}
	if len(hosts) != 0 {
		return errors.Errorf("a service that nobody hosts has %d hosts", len(hosts))
	}
	if err := c.Services().DeleteService(ctx, s.Name); err != nil {
		return errors.Wrap(err, "cannot remove the service")
	}
	_, err = c.Services().Service(ctx, s.Name)
	if !tailscale.IsNotFound(err) {
		return errors.Errorf("the service is not gone: %v", err)
	}
	return nil
}
