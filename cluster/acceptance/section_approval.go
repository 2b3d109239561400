// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"slices"

	"tailscale.com/ipn/ipnstate"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// approvalRows returns the rows about which hosts have the addresses of a service, and who decides
// that.
func approvalRows() []row {
	write := []need{needWrite}
	return []row{
		{sectionTraffic, "primary-routes", "Which hosts are primary for the service, by their own netmap and by that of a client.", write, primaryRoutes},
		{sectionTraffic, "route-selection", "Which hosts are primary under each route selection that the tailnet may have.", []need{needWrite, needSettings}, routeSelections},
		{sectionTraffic, "approval-withdrawn", "Manual approval is withdrawn from the host that carries traffic; how long clients take to move.", write, approvalWithdrawn(false)},
		{sectionTraffic, "approval-withdrawn-auto", "The same where autoApprovers of the policy file approve the host.", write, approvalWithdrawn(true)},
	}
}

// primaries counts the hosts of a service that are primary for it.
type primaries struct {
	// own counts the hosts that are primary in their own netmap.
	own int

	// seen counts the hosts that are primary in a client's netmap, and routed those to which it sends
	// the service's traffic.
	seen, routed int

	// silent reports that no netmap has primary routes at all.
	silent bool
}

// primaries counts the primary hosts of an address in the netmaps of the hosts and of a client.
func (t *turn) primaries(ctx context.Context, client *node, hosts []*node, a netip.Addr) (primaries, error) {
	p := primaries{silent: true}
	primary := func(s *ipnstate.PeerStatus) bool {
		if s == nil || s.PrimaryRoutes == nil {
			return false
		}
		p.silent = false
		return slices.Contains(s.PrimaryRoutes.AsSlice(), netip.PrefixFrom(a, a.BitLen()))
	}
	ids := map[string]bool{}
	for _, n := range hosts {
		ids[n.id] = true
		st, err := n.status(ctx)
		if err != nil {
			return p, err
		}
		if primary(st.Self) {
			p.own++
		}
	}
	st, err := client.local.Status(ctx)
	if err != nil {
		return p, errors.Wrap(err, "cannot get a node's status")
	}
	for _, s := range st.Peer {
		if !ids[string(s.ID)] {
			continue
		}
		if primary(s) {
			p.seen++
		}
		if s.AllowedIPs != nil && slices.Contains(s.AllowedIPs.AsSlice(), netip.PrefixFrom(a, a.BitLen())) {
			p.routed++
		}
	}
	return p, nil
}

// observePrimaries waits until a client has a route, and records the primary hosts. A service may
// have no primary although all its hosts are accepted (tailscale/tailscale#19666), which rows about
// reachability show.
func (t *turn) observePrimaries(ctx context.Context, step string) error {
	client, hosts, v4, _, err := t.traffic(ctx)
	if err != nil {
		return err
	}
	var last primaries
	took, err := t.until(ctx, step+": a client has a route", func(ctx context.Context) (string, error) {
		var err error
		if last, err = t.primaries(ctx, client, hosts, v4); err != nil || last.routed > 0 {
			return "", err
		}
		return "no host has the address", nil
	})
	if err != nil {
		return err
	}
	t.measure(step+": a client has a route", took)
	t.observe(step+": hosts that are primary by their own netmap", last.own)
	t.observe(step+": hosts that are primary by a client's netmap", last.seen)
	t.observe(step+": hosts with the address in a client's netmap", last.routed)
	if last.silent {
		t.note("%s: no netmap has primary routes: the product only reports, and repairs nothing", step)
	}
	return nil
}

// routeSelection is a tailnet setting: which of a service's hosts, or of a route's routers,
// clients use (tailscale-client-go-v2 v2.12.0, TailnetSettings).
const routeSelection = "routeSelection"

// routeSelectionModes are its values.
var routeSelectionModes = []string{"active-passive-failover", "regional-routing", "regional-routing-failover", "magicroute"}

// settings gets the tailnet's settings.
func (s *session) settings(ctx context.Context) (map[string]any, *reply, error) {
	r, err := s.get(ctx, s.tn("settings")...)
	if err != nil {
		return nil, nil, err
	}
	return r.object(), r, nil
}

func primaryRoutes(ctx context.Context, t *turn) error {
	all, r, err := t.settings(ctx)
	if err != nil {
		return err
	}
	if r.ok() {
		for _, k := range []string{routeSelection, "regionalRoutingOn"} {
			if v, ok := all[k]; ok && v != nil {
				t.observe(k, v)
			}
		}
	} else {
		t.note("cannot read the tailnet's settings: %d: %s", r.status, r.message())
	}
	return t.observePrimaries(ctx, "now")
}

func routeSelections(ctx context.Context, t *turn) error {
	all, r, err := t.settings(ctx)
	if err != nil {
		return err
	}
	if err := t.want("GET settings", r, http.StatusOK); err != nil {
		return err
	}
	previous, ok := all[routeSelection].(string)
	if !ok {
		return skipf(skipMissing, "the API has no setting %s", routeSelection)
	}
	seq, err := t.run.ledger.intend(t.owner(), kindSetting, routeSelection, previous)
	if err != nil {
		return err
	}
	tried := 0
	for _, mode := range routeSelectionModes {
		r, err := t.send(ctx, http.MethodPatch, map[string]string{routeSelection: mode}, t.tn("settings")...)
		if err != nil {
			return err
		}
		t.observe(mode+": status", r.status)
		if !r.ok() {
			t.note("%s: %d: %s", mode, r.status, r.message())
			continue
		}
		tried++
		if err := t.observePrimaries(ctx, mode); err != nil {
			return err
		}
	}
	if err := removeSetting(ctx, t.session, object{kindSetting, routeSelection, previous}); err != nil {
		return err
	}
	if err := t.run.ledger.gone(seq); err != nil {
		return err
	}
	if tried == 0 {
		return skipf(skipPlan, "the tailnet supports no route selection of %v", routeSelectionModes)
	}
	return nil
}

// removeSetting restores the value of a setting, which the ledger has as the object's ID.
func removeSetting(ctx context.Context, s *session, o object) error {
	r, err := s.send(ctx, http.MethodPatch, map[string]string{o.name: o.id}, s.tn("settings")...)
	if err != nil {
		return err
	}
	if !r.ok() {
		return errors.Errorf("cannot set %s to %s: the API answered %d", o.name, o.id, r.status)
	}
	return nil
}

// approval is the API's approval of a host.
type approval struct {
	Approved     bool `json:"approved"`
	AutoApproved bool `json:"autoApproved"`
}

func approvalWithdrawn(auto bool) func(context.Context, *turn) error {
	return func(ctx context.Context, t *turn) error {
		_, hosts, _, _, err := t.traffic(ctx)
		if err != nil {
			return err
		}
		r, err := t.get(ctx, t.tn("services", t.run.web.Name, "device", hosts[0].id, "approved")...)
		if err != nil {
			return err
		}
		if err := t.want("GET approval", r, http.StatusOK); err != nil {
			return err
		}
		var a approval
		if err := json.Unmarshal(r.body, &a); err != nil {
			return errors.Wrap(err, "cannot decode an approval")
		}
		switch {
		case a.AutoApproved && !auto:
			return skipf(skipMissing, "autoApprovers of the policy file approve hosts tagged %s: this row needs a policy file without that entry", t.run.opts.Tag)
		case !a.AutoApproved && auto:
			return skipf(skipMissing, "the policy file has no autoApprovers for services and hosts tagged %s", t.run.opts.Tag)
		}
		return t.withdrawApproval(ctx)
	}
}

// withdrawApproval refuses the host that carries traffic, and measures how clients move. They may
// not move: no source documents a refusal that contradicts autoApprovers.
func (t *turn) withdrawApproval(ctx context.Context) (err error) {
	var refused *node
	defer func() {
		if refused == nil {
			return
		}
		// Other rows use the host, too.
		ctx := context.WithoutCancel(ctx)
		err = errors.Join(err, t.approve(ctx, "approved again", t.run.web.Name, refused, true))
		if err == nil {
			err = t.awaitAcceptance(ctx, t.run.web.Name, refused)
		}
	}()
	err = t.away(ctx, func(ctx context.Context, n *node) error {
		refused = n
		if err := t.approve(ctx, "refused", t.run.web.Name, n, false); err != nil {
			return err
		}
		return t.getApproval(ctx, "after refusal", t.run.web.Name, n)
	}, nil)
	var tooLate late
	if _, moved := t.res.Observed[movesByItself]; moved && errors.As(err, &tooLate) {
		t.note("clients do not leave a host whose approval is withdrawn within %s", t.run.opts.Timeout)
		return nil
	}
	return err
}
