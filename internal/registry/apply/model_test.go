// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/registry"
	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
)

// In the model, clusters run the passes of this package as coroutines that stop at every request. A
// chooser decides which cluster continues, what happens to requests, and how time passes. Every run
// is the sequence of its choices; zero is the choice without faults and races.

const (
	modelService = "svc:web"
	pollEvery    = time.Minute // Maximum age of a list for an observation.
	recent       = 2 * time.Second
)

// A world is a tailnet and the clusters in it.
type world struct {
	choose   func(n int) int
	faults   bool
	at       time.Time
	services map[string]tailscale.Service
	devices  map[string]*tsclient.Device
	lastIP   int
	clusters []*cluster
	late     []late
	writes   int
	log      []string
	broken   string // The first violated invariant.
}

// A late is a request that its sender has given up and that may still arrive.
type late struct {
	from     *cluster
	name     string
	service  *tailscale.Service
	deadline time.Time
}

// A cluster runs passes. The fields in persisted survive a crash.
type cluster struct {
	w         *world
	id        string
	persisted struct {
		attached  bool // Should be a member.
		done      bool // Has detached.
		addresses []string
	}
	node string
	want registry.Want

	passes int // How many it has completed.

	waitStart time.Time
	cache     *registry.View
	// pinned is the service's address when the cluster was last idle, and "" if it was not idle
	// since it attached.
	pinned string

	next  func() (struct{}, bool)
	stop  func()
	yield func(struct{}) bool
}

type crash struct{}

func newWorld(n int, choose func(int) int, faults bool) *world {
	w := &world{
		choose: choose, faults: faults, at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		services: map[string]tailscale.Service{}, devices: map[string]*tsclient.Device{},
	}
	for i := range n {
		c := &cluster{w: w, id: string(rune('a' + i))}
		c.node = "n-" + c.id
		c.persisted.done = true
		c.want = registry.Want{Service: modelService, Ports: []string{"tcp:443"}, Tags: []string{"tag:k8s"}, Nodes: []string{c.node}}
		w.devices[c.node] = &tsclient.Device{NodeID: c.node, ConnectedToControl: true}
		w.clusters = append(w.clusters, c)
	}
	return w
}

func (w *world) logf(format string, args ...any) {
	w.log = append(w.log, w.at.Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
}

func (w *world) fail(format string, args ...any) {
	if w.broken == "" {
		w.broken = fmt.Sprintf(format, args...)
		w.logf("BROKEN: %s", w.broken)
	}
}

// start runs the cluster's passes, one after the other, until it is stopped.
func (c *cluster) start() {
	c.next, c.stop = iter.Pull(func(yield func(struct{}) bool) {
		defer func() {
			if r := recover(); r != nil {
				if _, ok := r.(crash); !ok {
					panic(r)
				}
			}
		}()
		c.yield = yield
		for {
			c.pass()
			c.passes++
			c.pause()
		}
	})
}

// pause lets others continue. A cluster that crashed does not return from it.
func (c *cluster) pause() {
	if !c.yield(struct{}{}) {
		panic(crash{})
	}
}

func (c *cluster) self() registry.Self { return registry.Self{Cluster: c.id, Operator: "default/web"} }

// pass runs one reconciliation of a controller.
func (c *cluster) pass() {
	ctx := context.Background()
	want := c.want
	want.Addresses, want.Seen = c.persisted.addresses, c.persisted.addresses
	if !c.persisted.attached {
		if c.persisted.done {
			return
		}
		done, waitStart, err := DetachPass(ctx, c, c.look, c.self(), want, c.waitStart)
		c.waitStart = waitStart
		if err == nil && done {
			c.w.logf("%s: detached", c.id)
			c.persisted.done, c.persisted.addresses, c.waitStart = true, nil, time.Time{}
		}
		return
	}
	v, err := c.view(ctx, pollEvery)
	if err != nil {
		return
	}
	if s := v.Service(modelService); s != nil {
		c.persisted.addresses = s.Addrs
		want.Addresses, want.Seen = s.Addrs, s.Addrs
	}
	actions, err := registry.Attach(v, c.self(), want)
	if err != nil {
		c.w.fail("cluster %s is refused: %v", c.id, err)
		return
	}
	if len(actions) == 0 {
		if c.persisted.attached {
			c.pinned = append(slices.Clip(c.persisted.addresses), "")[0] // The first is the IPv4 address.
		}
		return
	}
	if _, err := AttachPass(ctx, c, c.look, c.self(), want); err != nil {
		c.w.logf("%s: %v", c.id, err)
	}
}

func (c *cluster) look(ctx context.Context, s tailscale.Staleness) (registry.View, error) {
	if s == tailscale.Current {
		return c.view(ctx, -1)
	}
	return c.view(ctx, recent)
}

// view returns a list that is no older than maxAge.
func (c *cluster) view(_ context.Context, maxAge time.Duration) (registry.View, error) {
	if c.cache != nil && c.w.at.Sub(c.cache.ServicesAt) <= maxAge {
		return *c.cache, nil
	}
	var v registry.View
	err := c.request("list", func() error {
		v = c.w.view()
		return nil
	})
	if err != nil {
		return registry.View{}, err
	}
	c.cache = &v
	return v, nil
}

func (w *world) view() registry.View {
	v := registry.View{ServicesAt: w.at, DevicesAt: w.at}
	for _, n := range slices.Sorted(maps.Keys(w.services)) {
		v.Services = append(v.Services, w.services[n])
	}
	for _, n := range slices.Sorted(maps.Keys(w.devices)) {
		v.Devices = append(v.Devices, *w.devices[n])
	}
	return v
}

// fold applies the cluster's writes to its list, as the client does.
func (c *cluster) fold(name string, s *tailscale.Service) {
	if c.cache == nil {
		return
	}
	v := *c.cache
	v.Services = slices.DeleteFunc(slices.Clone(v.Services), func(existing tailscale.Service) bool { return existing.Name == name })
	if s != nil {
		v.Services = append(v.Services, *s)
	}
	c.cache = &v
}

// request runs one request: the request and its response may be lost.
func (c *cluster) request(description string, arrive func() error) error {
	start := c.w.at
	c.pause()
	if c.w.at.Sub(start) > tailscale.RequestTimeout {
		return unavailable()
	}
	fault := 0
	if c.w.faults {
		fault = c.w.choose(12)
	}
	if fault == 1 {
		c.w.logf("%s: %s: request lost", c.id, description)
		return unavailable()
	}
	err := arrive()
	if c.w.faults {
		c.pause() // Otherwise the next request follows immediately.
	}
	if fault == 2 {
		c.w.logf("%s: %s: answer lost", c.id, description)
		return unavailable()
	}
	return err
}

func unavailable() error { return &tailscale.Error{Class: tailscale.ClassUnavailable} }

// Service implements API.
func (c *cluster) Service(_ context.Context, name string) (*tailscale.Service, error) {
	var out *tailscale.Service
	err := c.request("get "+name, func() error {
		s, ok := c.w.services[name]
		if !ok {
			return &tailscale.Error{Class: tailscale.ClassNotFound, Status: http.StatusNotFound}
		}
		out = &s
		return nil
	})
	return out, err
}

// PutService implements API.
func (c *cluster) PutService(_ context.Context, s tailscale.Service) (*tailscale.Service, error) {
	return c.write(late{from: c, name: s.Name, service: &s})
}

// DeleteService implements API.
func (c *cluster) DeleteService(_ context.Context, name string) error {
	_, err := c.write(late{from: c, name: name})
	return err
}

func (c *cluster) write(l late) (*tailscale.Service, error) {
	if c.w.faults && c.w.choose(12) == 1 {
		l.deadline = c.w.at.Add(tailscale.RequestTimeout)
		c.w.late = append(c.w.late, l)
		c.w.logf("%s: %s: given up, but on its way", c.id, l)
		c.cache = nil
		return nil, unavailable()
	}
	var out *tailscale.Service
	err := c.request(l.String(), func() error {
		var err error
		out, err = c.w.arrive(l)
		return err
	})
	switch tailscale.ClassOf(err) {
	case "":
		c.fold(l.name, out)
	case tailscale.ClassUnavailable:
		c.cache = nil
	default:
	}
	return out, err
}

func (l late) String() string {
	if l.service == nil {
		return "delete " + l.name
	}
	return fmt.Sprintf("put %s %v", l.name, l.service.Addrs)
}

// arrive applies a write as Tailscale's API does.
func (w *world) arrive(l late) (*tailscale.Service, error) {
	w.checkWrite(l)
	old, exists := w.services[l.name]
	if l.service == nil {
		w.logf("%s: %s (exists: %t)", l.from.id, l, exists)
		if exists {
			w.writes++
		}
		delete(w.services, l.name)
		return nil, nil
	}
	s := *l.service
	s.Annotations = maps.Clone(s.Annotations)
	switch {
	case exists && !slices.Equal(old.Addrs, s.Addrs), !exists && len(s.Addrs) > 1, !exists && len(s.Addrs) == 1 && w.taken(s.Addrs[0]):
		w.logf("%s: %s: refused", l.from.id, l)
		return nil, &tailscale.Error{Class: tailscale.ClassInvalid, Status: http.StatusBadRequest}
	case !exists && len(s.Addrs) == 0:
		w.lastIP++
		s.Addrs = []string{fmt.Sprintf("100.96.0.%d", w.lastIP%250+1), fmt.Sprintf("fd7a::%x", w.lastIP%250+1)}
	case !exists:
		s.Addrs = append(s.Addrs, "fd7a::"+fmt.Sprintf("%x", s.Addrs[0][len("100.96.0."):]))
	}
	w.services[s.Name] = s
	w.writes++
	w.logf("%s: %s -> %s", l.from.id, l, s.Addrs[0])
	if s.Name == modelService && !exists {
		w.checkAddress(s)
	}
	return &s, nil
}

func (w *world) taken(a string) bool {
	for _, s := range w.services {
		if slices.Contains(s.Addrs, a) {
			return true
		}
	}
	return false
}

// checkWrite verifies that a cluster writes no record of another cluster, unless that one has
// expired.
func (w *world) checkWrite(l late) {
	for _, c := range w.clusters {
		if c == l.from || registry.RecordName(modelService, c.id) != l.name {
			continue
		}
		d := w.devices[c.node]
		if l.service == nil && d != nil && !d.ConnectedToControl && w.at.Sub(d.LastSeen.Time) > registry.ExpiresAfter {
			continue
		}
		w.fail("cluster %s does %q, which is %s's", l.from.id, l, c.id)
	}
}

// checkAddress verifies that a service that was created again has the address that idle clusters
// have recorded.
func (w *world) checkAddress(s tailscale.Service) {
	for _, c := range w.clusters {
		if c.persisted.attached && c.pinned != "" && c.pinned != s.Addrs[0] {
			w.fail("the service is made with %s, but %s knows it as %s", s.Addrs[0], c.id, c.pinned)
		}
	}
}

// toggle attaches or detaches a cluster, as users do.
func (w *world) toggle(c *cluster) {
	switch {
	case c.persisted.attached:
		w.logf("%s: user detaches", c.id)
		c.persisted.attached, c.pinned = false, ""
	case c.persisted.done:
		w.logf("%s: user attaches", c.id)
		c.persisted.attached, c.persisted.done = true, false
	}
}

func (w *world) crash(c *cluster) {
	w.logf("%s: crashes", c.id)
	c.stop()
	c.waitStart, c.cache = time.Time{}, nil
	c.start()
}

// deliver lets a late request arrive.
func (w *world) deliver(i int) {
	l := w.late[i]
	w.late = slices.Delete(w.late, i, i+1)
	w.logf("%s: %s arrives late", l.from.id, l)
	if _, err := w.arrive(l); err != nil {
		return // The sender is gone.
	}
}

// advance lets time pass. Requests that are in transit for too long are lost.
func (w *world) advance(d time.Duration) {
	w.at = w.at.Add(d)
	w.late = slices.DeleteFunc(w.late, func(l late) bool { return w.at.After(l.deadline) })
}

// settleStep is the time that passes in each step of settle.
const settleStep = 31 * time.Second

// settle runs everything without faults until no cluster writes any more.
func (w *world) settle() {
	w.faults = false
	quiet := 0
	for range 100 {
		writes := w.writes
		for len(w.late) > 0 {
			w.deliver(0)
		}
		for _, c := range w.clusters {
			c.run()
		}
		w.advance(settleStep)
		if w.writes != writes || slices.ContainsFunc(w.clusters, func(c *cluster) bool { return !c.persisted.attached && !c.persisted.done }) {
			quiet = 0
			continue
		}
		// Longer than the maximum age of a list.
		if quiet++; quiet > int(pollEvery/settleStep)+1 {
			w.checkRest()
			return
		}
	}
	w.fail("the world does not come to rest")
}

// run completes the current pass of the cluster and runs another one.
func (c *cluster) run() {
	for end := c.passes + 2; c.passes < end; {
		c.step()
	}
}

func (c *cluster) step() {
	if _, ok := c.next(); !ok {
		c.start()
	}
}

// checkRest verifies that the members are the attached clusters, and that the service exists if
// there are any.
func (w *world) checkRest() {
	members, ignored := w.view().Members(modelService)
	var got, want []string
	for _, m := range members {
		got = append(got, m.Cluster)
	}
	for _, c := range w.clusters {
		if c.persisted.attached {
			want = append(want, c.id)
		}
	}
	if !slices.Equal(got, want) || len(ignored) > 0 {
		w.fail("at rest the members are %v, want %v (ignored %v)", got, want, ignored)
	}
	s, exists := w.services[modelService]
	if exists != (len(want) > 0) {
		w.fail("at rest the service exists: %t, members: %v", exists, want)
	}
	if n := len(w.services); n != len(want)+min(1, len(want)) {
		w.fail("at rest there are %d services for %d members", n, len(want))
	}
	for _, m := range members {
		if !slices.Equal(m.Addresses, s.Addrs) {
			w.fail("at rest the record of %s has the address %v, want %v", m.Cluster, m.Addresses, s.Addrs)
		}
	}
	if exists && s.Annotations[meta.AnnotationConsumerCount] != strconv.Itoa(len(want)) {
		w.fail("at rest the copy counts %s, want %d", s.Annotations[meta.AnnotationConsumerCount], len(want))
	}
	for _, id := range want {
		if exists && !strings.Contains(s.Annotations[meta.AnnotationRegistry], registry.RecordName(modelService, id)) {
			w.fail("at rest the copy lacks %s", id)
		}
	}
}

func (w *world) close() {
	for _, c := range w.clusters {
		if c.stop != nil {
			c.stop()
		}
	}
}
