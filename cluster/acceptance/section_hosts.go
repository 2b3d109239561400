// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

const sectionHosts = "hosts"

// webPorts are the ports of the service that carries traffic, and the version of the
// PROXY protocol header that each gets.
var webPorts = map[uint16]int{80: 0, 81: 1, 82: 2}

func hostRows() []row {
	write := []need{needWrite}
	return []row{
		{sectionHosts, "join", "A node joins with a key of the run, and the API shows its device as the product expects.", write, joinNode},
		{sectionHosts, "key", "A used key is invalid, and may be removed.", write, usedKey},
		{sectionHosts, "name-clash", "How the API handles a service with the name of a machine.", write, nameClash},
		{sectionHosts, "approve-early", "Approval of a host before it advertises the service.", write, approveEarly},
		{sectionHosts, "configured", "The API's state of a host at each step from advertising to withdrawing.", write, configuredSteps},
		{sectionHosts, "accepted", "Two nodes advertise a service, are approved and accepted, and the product reads them as such.", write, accepted},
		{sectionHosts, "certificate", "A host gets a certificate for the service's name.", []need{needWrite, needCerts}, certificate},
		{sectionHosts, "agent-certificate", "The agent's issuer gets a certificate for a service that a proxy advertises.", []need{needWrite, needCerts}, agentCertificate},
		{sectionHosts, "containerboot", "Containerboot, configured as in a proxy pod, hosts a service, reloads its advertised services, and drains.", write, containerboot},
		{sectionHosts, "restart-without-control", "A proxy that restarts while control refuses connections is the same device afterwards.", write, restartWithoutControl},
	}
}

func joinNode(ctx context.Context, t *turn) error {
	began := time.Now()
	hosts, err := t.twoHosts(ctx)
	if err != nil {
		return err
	}
	t.measure("two nodes join", time.Since(began))
	n := hosts[0]
	r, err := t.do(ctx, call{method: http.MethodGet, path: []string{"device", n.id}, query: url.Values{"fields": {"all"}}})
	if err != nil {
		return err
	}
	if err := t.want("GET device", r, http.StatusOK); err != nil {
		return err
	}
	if err := t.findings(r, reflect.TypeFor[tailscale.Device](), "nodeId", "name", "hostname", "addresses", "authorized", "tags"); err != nil {
		return err
	}
	var d tailscale.Device
	if err := r.into(&d); err != nil {
		return err
	}
	switch {
	case d.NodeID != n.id:
		return errors.Errorf("nodeId is %q, the node says %q", d.NodeID, n.id)
	case d.Hostname != n.hostname:
		return errors.Errorf("hostname is %q, want %q", d.Hostname, n.hostname)
	case !d.Authorized:
		return errors.New("the device is not authorized, though its key was preauthorized")
	case !slices.Equal(d.Tags, []string{t.run.opts.Tag}):
		return errors.Errorf("tags are %v, want %s", d.Tags, t.run.opts.Tag)
	case !slices.Contains(d.Addresses, n.v4.String()):
		return errors.Errorf("addresses are %v, the node says %s", d.Addresses, n.v4)
	case !strings.HasPrefix(d.Name, n.hostname+"."):
		return errors.Errorf("name is %q, want one that begins with %s.", d.Name, n.hostname)
	}
	t.observe("keyExpiryDisabled", d.KeyExpiryDisabled)
	t.observe("connectedToControl", d.ConnectedToControl)
	t.observe("lastSeen is absent while connected", d.LastSeen == nil)
	return t.certificates(ctx, n, "", "joined")
}

// certificates records the names for which a node may get certificates.
func (t *turn) certificates(ctx context.Context, n *node, service, step string) error {
	st, err := n.status(ctx)
	if err != nil {
		return err
	}
	var names []string
	for _, d := range st.CertDomains {
		switch label, _, _ := strings.Cut(d, "."); label {
		case n.hostname:
			names = append(names, "the node's")
		case strings.TrimPrefix(service, "svc:"):
			names = append(names, "the service's")
		default:
			names = append(names, "another")
		}
	}
	slices.Sort(names)
	t.observe("certificate domains, "+step, strings.Join(names, ", "))
	if st.Self != nil {
		t.observe("capability https, "+step, st.Self.CapMap.Contains("https"))
	}
	return nil
}

func usedKey(ctx context.Context, t *turn) error {
	if _, err := t.twoHosts(ctx); err != nil {
		return err
	}
	var used entry
	for _, e := range t.run.ledger.left() {
		if e.Kind == kindKey && e.ID != "" {
			used = e
		}
	}
	r, err := t.get(ctx, t.tn("keys", used.ID)...)
	if err != nil {
		return err
	}
	t.observe("GET of a used key", r.status)
	if r.ok() {
		t.observe("invalid", r.object()["invalid"])
		if err := t.findings(r, reflect.TypeFor[tailscale.Key](), "id"); err != nil {
			return err
		}
	}
	all, err := t.do(ctx, call{method: http.MethodGet, path: t.tn("keys"), query: url.Values{"all": {"true"}}})
	if err != nil {
		return err
	}
	keys, _ := all.object()["keys"].([]any)
	t.observe("a used key is listed", slices.ContainsFunc(keys, func(k any) bool {
		m, _ := k.(map[string]any)
		return str(m, "id") == used.ID
	}))
	if r, err = t.delete(ctx, t.tn("keys", used.ID)...); err != nil {
		return err
	}
	t.observe("DELETE of a used key", r.status)
	return t.want("DELETE of a used key", r, http.StatusOK, http.StatusNoContent, http.StatusNotFound)
}

func nameClash(ctx context.Context, t *turn) error {
	hosts, err := t.twoHosts(ctx)
	if err != nil {
		return err
	}
	s := t.service(strings.TrimPrefix(hosts[0].hostname, t.run.prefix+"-"))
	r, err := t.put(ctx, s)
	if err != nil {
		return err
	}
	return t.refused("a service with the name of a machine", r, false)
}

// A hostState is the API's state of a service's host.
type hostState struct {
	listed     bool
	approval   string
	configured any
}

func (s hostState) String() string {
	if !s.listed {
		return "not listed"
	}
	return fmt.Sprintf("configured %s, %s", mustJSON(s.configured), s.approval)
}

// hostState gets the state of one host.
func (t *turn) hostState(ctx context.Context, service, nodeID string) (hostState, error) {
	r, err := t.get(ctx, t.tn("services", service, "devices")...)
	if err != nil {
		return hostState{}, err
	}
	if err := t.want("GET hosts", r, http.StatusOK); err != nil {
		return hostState{}, err
	}
	hosts, _ := r.object()["hosts"].([]any)
	for _, h := range hosts {
		m, _ := h.(map[string]any)
		// The official client reads nodeId, the OpenAPI document has stableNodeID.
		if str(m, "nodeId") == nodeID || str(m, "stableNodeID") == nodeID {
			return hostState{true, str(m, "approvalLevel"), m["configured"]}, nil
		}
	}
	return hostState{}, nil
}

// settled waits until the API's state of a host is as wanted and stays the same, and notes all
// states. After the timeout it returns the last state.
func (t *turn) settled(ctx context.Context, service string, n *node, step string, wanted func(hostState) bool) (hostState, error) {
	began := time.Now()
	var seen []string
	var last hostState
	var lastChange time.Time
	_, err := t.within(ctx, t.run.opts.Timeout, step, func(ctx context.Context) (string, error) {
		s, err := t.hostState(ctx, service, n.id)
		if err != nil {
			return "", err
		}
		if lastChange.IsZero() || !reflect.DeepEqual(s, last) {
			last, lastChange = s, time.Now()
			seen = append(seen, fmt.Sprintf("%.1fs %s", time.Since(began).Seconds(), s))
		}
		if !wanted(s) {
			return s.String(), nil
		}
		if time.Since(lastChange) < t.run.opts.Settle {
			return "the state may still change", nil
		}
		return "", nil
	})
	t.note("%s: %s", step, strings.Join(seen, "; "))
	var tooLate late
	if errors.As(err, &tooLate) {
		t.note("%s: not as expected within %s", step, t.run.opts.Timeout)
		err = nil
	}
	t.observe(step, last.String())
	return last, err
}

// getApproval asks whether a node may host a service.
func (t *turn) getApproval(ctx context.Context, step, service string, n *node) error {
	r, err := t.get(ctx, t.tn("services", service, "device", n.id, "approved")...)
	if err != nil {
		return err
	}
	t.observe(step+": status", r.status)
	if r.ok() {
		t.observe(step+": approved", r.object()["approved"])
		t.observe(step+": autoApproved", r.object()["autoApproved"])
		return nil
	}
	t.note("%s: %d: %s", step, r.status, r.message())
	return refusal(r.status, r.message())
}

// approve approves or refuses a node as a host of a service.
func (t *turn) approve(ctx context.Context, step, service string, n *node, approved bool) error {
	r, err := t.send(ctx, http.MethodPost, map[string]bool{"approved": approved}, t.tn("services", service, "device", n.id, "approved")...)
	if err != nil {
		return err
	}
	t.observe(step+": status", r.status)
	if !r.ok() {
		t.note("%s: %d: %s", step, r.status, r.message())
	}
	return refusal(r.status, r.message())
}

func approveEarly(ctx context.Context, t *turn) error {
	hosts, err := t.twoHosts(ctx)
	if err != nil {
		return err
	}
	n := hosts[1]
	s, err := t.made(ctx, t.service("early"))
	if err != nil {
		return err
	}
	if err := t.getApproval(ctx, "before", s.Name, n); err != nil {
		return err
	}
	if err := t.approve(ctx, "approve", s.Name, n, true); err != nil {
		return err
	}
	if err := t.getApproval(ctx, "after", s.Name, n); err != nil {
		return err
	}
	st, err := t.hostState(ctx, s.Name, n.id)
	if err != nil {
		return err
	}
	t.observe("hosts after approval", st.String())
	if err := t.approve(ctx, "refuse", s.Name, n, false); err != nil {
		return err
	}
	return t.getApproval(ctx, "after refusal", s.Name, n)
}

// configuredSteps records the states of a host at each step. The only requirement is that a host
// which serves is listed.
func configuredSteps(ctx context.Context, t *turn) error {
	hosts, err := t.twoHosts(ctx)
	if err != nil {
		return err
	}
	n := hosts[0]
	s, err := t.made(ctx, t.service("steps"))
	if err != nil {
		return err
	}
	defer func() {
		// Other rows use the node, too, and report if it is gone.
		_ = n.advertise(context.WithoutCancel(ctx))
		_ = n.unserve(context.WithoutCancel(ctx), s.Name)
	}()
	listed := func(h hostState) bool { return h.listed }
	var serving hostState
	for _, step := range []struct {
		name   string
		action func() error
		want   func(hostState) bool
	}{
		{"1 advertised, nothing served", func() error { return n.advertise(ctx, s.Name) }, listed},
		{"2 another port served", func() error { return n.serve(ctx, s.Name, map[uint16]int{8080: 0}) }, listed},
		{"3 the port served", func() error { return n.serve(ctx, s.Name, map[uint16]int{80: 0}) }, func(h hostState) bool { return h.listed && configuredOf(h) }},
		{"4 withdrawn, still served", func() error { return n.advertise(ctx) }, func(h hostState) bool { return !h.listed || !configuredOf(h) }},
	} {
		if err := step.action(); err != nil {
			return err
		}
		state, err := t.settled(ctx, s.Name, n, step.name, step.want)
		if err != nil {
			return err
		}
		if strings.HasPrefix(step.name, "3") {
			serving = state
			if err := t.certificates(ctx, n, s.Name, "served"); err != nil {
				return err
			}
		}
	}
	if !serving.listed {
		return errors.New("a node that advertises and serves the service is not listed")
	}
	return nil
}

// configuredOf guesses what a value of configured means, which is a boolean in Tailscale's
// documentation and a string in its official client.
func configuredOf(h hostState) bool {
	switch v := h.configured.(type) {
	case bool:
		return v
	case string:
		return v == "ready" || v == "configured" || v == "true"
	}
	return false
}

// web creates the service that carries traffic, which two nodes host, and waits until both are
// accepted. Rows share it.
func (t *turn) web(ctx context.Context) (tailscale.Service, []*node, error) {
	if err := t.run.unhosted; err != nil {
		return tailscale.Service{}, nil, skipf(skipMissing, "nodes are not accepted as hosts: %v", err)
	}
	hosts, err := t.twoHosts(ctx)
	if err != nil {
		return tailscale.Service{}, nil, err
	}
	if t.run.web.Name == "" {
		s := t.service("web")
		s.Ports = []string{"tcp:80", "tcp:81", "tcp:82"}
		if _, err := t.run.ledger.intend("", kindService, s.Name, ""); err != nil {
			return s, nil, err
		}
		if t.run.web, err = t.made(ctx, s); err != nil {
			t.run.web = tailscale.Service{}
			return s, nil, err
		}
	}
	s := t.run.web
	for _, n := range hosts {
		admitted, err := n.accepted(ctx, s.Name)
		if err != nil {
			return s, nil, err
		}
		// The capability outlives a withdrawal for a moment.
		if admitted && slices.Contains(n.offered, s.Name) {
			continue
		}
		if err := t.hostWeb(ctx, s, n); err != nil {
			var tooLate late
			if errors.As(err, &tooLate) {
				t.run.unhosted = err
			}
			return s, nil, err
		}
	}
	return s, hosts, nil
}

// hostWeb makes a node host the service, approves it if nobody else does, and waits until control
// has accepted it.
func (t *turn) hostWeb(ctx context.Context, s tailscale.Service, n *node) error {
	if err := n.serve(ctx, s.Name, webPorts); err != nil {
		return err
	}
	if err := n.advertise(ctx, s.Name); err != nil {
		return err
	}
	return t.awaitAcceptance(ctx, s.Name, n)
}

// awaitAcceptance waits until control has accepted a host, and approves it if nobody
// else does.
func (t *turn) awaitAcceptance(ctx context.Context, service string, n *node) error {
	began := time.Now()
	requested := false
	took, err := t.until(ctx, n.hostname+" is accepted", func(ctx context.Context) (string, error) {
		if admitted, err := n.accepted(ctx, service); err != nil || admitted {
			return "", err
		}
		h, err := t.hostState(ctx, service, n.id)
		if err != nil {
			return "", err
		}
		// Control may approve by itself a moment later.
		if h.listed && h.approval == "not-approved" && !requested && time.Since(began) > t.run.opts.Settle {
			requested = true
			t.note("the policy file does not approve %s: approving it through the API", n.hostname)
			if err := t.approve(ctx, "approve", service, n, true); err != nil {
				return "", err
			}
		}
		return h.String(), nil
	})
	t.measure(n.hostname[len(t.run.prefix)+1:]+" is accepted", took)
	return err
}

func accepted(ctx context.Context, t *turn) error {
	s, hosts, err := t.web(ctx)
	if err != nil {
		return err
	}
	c, err := t.login(t.cred)
	if err != nil {
		return err
	}
	for _, n := range hosts {
		// Accept any state of a listed host: control has accepted the node.
		if _, err := t.settled(ctx, s.Name, n, "host", func(h hostState) bool { return h.listed }); err != nil {
			return err
		}
		if err := t.getApproval(ctx, "approval", s.Name, n); err != nil {
			return err
		}
		if err := t.certificates(ctx, n, s.Name, "accepted"); err != nil {
			return err
		}
	}
	all, err := c.Services().Hosts(ctx, s.Name)
	if err != nil {
		return errors.Wrap(err, "the product cannot list the hosts")
	}
	for _, n := range hosts {
		i := slices.IndexFunc(all, func(h tailscale.Host) bool { return h.NodeID == n.id })
		switch {
		case i < 0:
			return errors.Errorf("the product does not find host %s", n.hostname)
		case all[i].Approval == "":
			t.note("the API does not show the approval of %s", n.hostname)
		case !all[i].Approved():
			return errors.Errorf("the product reads an accepted host as not approved: %+v", all[i])
		}
		// The words for a host's state are not a contract (tailscale/tailscale#17769): the node's own
		// capability has proven that control accepts it.
		t.observe("the product reads the host as configured", all[i].Ready())
	}
	return nil
}
