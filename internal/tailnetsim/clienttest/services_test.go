// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package clienttest

import (
	"net/netip"

	"github.com/google/go-cmp/cmp/cmpopts"
	"tailscale.com/client/tailscale/v2"
)

func wantService() tailscale.Service {
	return tailscale.Service{
		Name: "svc:web", DisplayName: "Web", Comment: "Front door", Annotations: map[string]string{"owner": "team"},
		Ports: []string{"tcp:80", "tcp:443"}, Tags: []string{"tag:k8s"},
	}
}

// serve makes a service and returns it.
func (w *world) serve() tailscale.Service {
	w.Helper()
	w.ok(w.c.Services().CreateOrUpdate(w.ctx, wantService()))
	s, err := w.c.Services().Get(w.ctx, "svc:web")
	w.ok(err)
	return *s
}

var serviceDrivers = aliased(map[string]driver{
	"Get": func(w *world) {
		got := w.serve()
		w.want(wantService(), got, nil, cmpopts.IgnoreFields(tailscale.Service{}, "Addrs"))
		if len(got.Addrs) != 2 {
			w.Fatalf("want two addresses, got %v", got.Addrs)
		}
		for i, match := range []func(netip.Addr) bool{netip.Addr.Is4, netip.Addr.Is6} {
			a, err := netip.ParseAddr(got.Addrs[i])
			w.ok(err)
			w.want(true, match(a), nil)
		}
		_, err := w.c.Services().Get(w.ctx, "svc:none")
		w.gone(err)
	},
	"List": func(w *world) {
		got, err := w.c.Services().List(w.ctx)
		w.want([]tailscale.Service{}, got, err, cmpopts.EquateEmpty())
		s := w.serve()
		got, err = w.c.Services().List(w.ctx)
		w.want([]tailscale.Service{s}, got, err)
	},
	"CreateOrUpdate": func(w *world) {
		w.ok(w.c.Services().CreateOrUpdate(w.ctx, tailscale.Service{Name: "svc:db", Addrs: []string{"100.90.0.1"}, Ports: []string{"tcp:5432"}, Tags: []string{"tag:k8s"}}))
		s, err := w.c.Services().Get(w.ctx, "svc:db")
		w.ok(err)
		w.want("100.90.0.1", s.Addrs[0], nil)
		s.Comment, s.Ports, s.Annotations = "Database", []string{"do-not-validate"}, map[string]string{"a": "b"}
		w.ok(w.c.Services().CreateOrUpdate(w.ctx, *s))
		got, err := w.c.Services().Get(w.ctx, "svc:db")
		w.want(s, got, err)
		s.Addrs = nil
		if err := w.c.Services().CreateOrUpdate(w.ctx, *s); err == nil {
			w.Error("an update without addresses: want an error")
		}
	},
	"Delete": func(w *world) {
		w.serve()
		w.ok(w.c.Services().Delete(w.ctx, "svc:web"))
		_, err := w.c.Services().Get(w.ctx, "svc:web")
		w.gone(err)
		w.gone(w.c.Services().Delete(w.ctx, "svc:web"))
	},
})

// aliased names drivers of the resource that has two names.
func aliased(byMethod map[string]driver) map[string]driver {
	out := map[string]driver{}
	for method, d := range byMethod {
		out["Services."+method], out["VIPServices."+method] = d, d
	}
	return out
}
