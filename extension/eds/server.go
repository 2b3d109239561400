// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package eds

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	discovery "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	endpointservice "github.com/envoyproxy/go-control-plane/envoy/service/endpoint/v3"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/grpc"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
)

const (
	// defaultDebounce is the time that the server waits for further changes. A rollout changes many
	// endpoints at once.
	defaultDebounce = 3 * time.Millisecond

	// defaultPatience is the time until an unknown name is answered with an empty list. Envoy
	// Gateway may have called a replica that is ahead of this one. Envoy waits two seconds before
	// it continues without endpoints.
	defaultPatience = 500 * time.Millisecond
)

// Options of a Server.
type Options struct {
	// Debounce is the time that the server waits for further changes. Zero means 3 milliseconds.
	Debounce time.Duration

	// Patience is the time until an unknown name is answered with an empty list. Zero means half a
	// second.
	Patience time.Duration

	// Log may be nil.
	Log logging.Logger

	// Limits of clients' resources. Zero values have defaults.
	Limits Limits

	// Tracer makes a span of each push of endpoints. May be nil.
	Tracer trace.Tracer
}

// A Server serves endpoints to Envoys. Callers register it, run Run, and call Changed or
// ChangedAll after each new snapshot. It must not serve before the snapshot is complete: names that
// the snapshot lacks count as unknown.
type Server struct {
	endpointservice.UnimplementedEndpointDiscoveryServiceServer

	snapshot func() *ir.Snapshot
	opts     Options
	metrics  *Metrics

	// changed holds one token while a new snapshot waits.
	changed chan struct{}

	mu      sync.Mutex
	entries map[string]*entry
	usage   *usage

	// byList are the entries of each list, which may have several names and tunings.
	byList map[string]map[*entry]struct{}

	// tuned are the entries whose lists are expected only while a policy has their tuning.
	tuned map[*entry]struct{}

	// announced are the lists to update, all reports that any may have changed, and retuned that policies
	// may have other tunings.
	announced    map[string]struct{}
	all, retuned bool
}

// NewServer returns a server of the newest snapshot.
func NewServer(snapshot func() *ir.Snapshot, o Options) *Server {
	if o.Debounce == 0 {
		o.Debounce = defaultDebounce
	}
	if o.Patience == 0 {
		o.Patience = defaultPatience
	}
	if o.Log == nil {
		o.Log = logging.NewNopLogger()
	}
	if o.Tracer == nil {
		o.Tracer = noop.NewTracerProvider().Tracer("")
	}
	return &Server{
		snapshot: snapshot,
		opts:     o,
		metrics:  newMetrics(),
		changed:  make(chan struct{}, 1),
		entries:  map[string]*entry{},
		usage:    newUsage(o.Limits),
		byList:   map[string]map[*entry]struct{}{},
		tuned:    map[*entry]struct{}{},

		announced: map[string]struct{}{},
	}
}

// Register registers the server's two services: for endpoints only, and for all types of an
// authority of xdstp names.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	endpointservice.RegisterEndpointDiscoveryServiceServer(r, s)
	discovery.RegisterAggregatedDiscoveryServiceServer(r, aggregated{server: s})
}

// Metrics returns the collector of the server.
func (s *Server) Metrics() *Metrics { return s.metrics }

// Changed announces a new snapshot in which lists differ from those of earlier ones, and in which policies
// may have other tunings. It does not wait for lists to be built.
func (s *Server) Changed(lists []string, tunings bool) {
	s.mu.Lock()
	s.retuned = s.retuned || tunings
	for _, l := range lists {
		if len(s.byList[l]) > 0 {
			s.announced[l] = struct{}{}
		}
	}
	s.mu.Unlock()
	s.wake()
}

// ChangedAll announces a new snapshot in which any list may differ.
func (s *Server) ChangedAll() {
	s.mu.Lock()
	s.all = true
	s.mu.Unlock()
	s.wake()
}

func (s *Server) wake() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Run sends changes until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.changed:
		}
		start := time.Now()
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(s.opts.Debounce):
		}
		// Changes from here on are in the snapshot, or have another token.
		select {
		case <-s.changed:
		default:
		}
		lists, streams := s.refresh()
		s.metrics.refreshed.Observe(time.Since(start).Seconds())
		if lists > 0 {
			_, span := s.opts.Tracer.Start(ctx, "PushEndpoints", trace.WithTimestamp(start), trace.WithAttributes(
				attribute.Int("lists", lists), attribute.Int("streams", streams)))
			span.End()
		}
	}
}

// publish sends the entry to all streams that do not have it. The caller holds the lock.
func (s *Server) publish(e *entry) {
	for _, st := range e.streams {
		st.mark(e)
		s.start(st)
	}
}

// start starts a sender for a stream with due entries. The caller holds the lock.
func (s *Server) start(st *stream) {
	if st.sending || st.closed || len(st.due)+len(st.rejected) == 0 {
		return
	}
	st.sending = true
	st.senders.Add(1)
	go s.deliver(st)
}

// deliver sends due entries, and ends when there are none.
func (s *Server) deliver(st *stream) {
	defer st.senders.Done()
	for {
		s.mu.Lock()
		r := st.next()
		if r == nil {
			st.sending = false
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()

		if err := st.send(r); err != nil {
			// The stream is broken, and its receiver gets an error too. It stays marked as sending,
			// so that no other sender starts.
			s.opts.Log.Debug("Cannot send endpoints", "error", err)
			return
		}
		s.metrics.delivered.Add(float64(len(r.GetResources())))
	}
}

// open returns a stream of a client at an address, with a function that sends responses. It is an
// error if there are too many.
func (s *Server) open(address string, send func(*discovery.DeltaDiscoveryResponse) error) (*stream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.usage.open(address)
	if err != nil {
		s.metrics.limited.Inc()
		return nil, err
	}
	s.metrics.streams.Inc()
	return &stream{account: t, send: send, subscriptions: map[*entry]subscription{}}, nil
}

// close removes the stream's subscriptions, and waits for its sender.
func (s *Server) close(st *stream) {
	s.mu.Lock()
	st.closed = true
	for e := range st.subscriptions {
		s.drop(st, e)
	}
	s.usage.close(st.account)
	s.mu.Unlock()
	st.senders.Wait()
	s.metrics.streams.Dec()
}

// subscribe adds subscriptions to a stream. versions are those that the client has from an earlier
// stream, by name. A name that cannot be served is answered as a removed list, with which Envoy
// opens the cluster without endpoints or keeps those that it has, and ends no stream: an Envoy may
// have the names of many tenants on one. It returns the error of the first such name.
func (s *Server) subscribe(st *stream, names []string, versions map[string]string) error {
	var refusal error
	for _, name := range names {
		// Other streams do not wait for a list to be built.
		candidate, snap, err := s.build(name)
		s.mu.Lock()
		for err == nil && candidate != nil && s.snapshot() != snap && s.entries[name] == nil {
			s.mu.Unlock()
			candidate, snap, err = s.build(name)
			s.mu.Lock()
		}
		if err == nil {
			err = s.add(st, name, versions[name], candidate)
		}
		if err != nil {
			refusal = cmp.Or(refusal, err)
			st.reject(name)
		}
		s.mu.Unlock()
	}
	s.mu.Lock()
	s.start(st)
	s.mu.Unlock()
	return refusal
}

// build returns an entry for a name that has none, and the snapshot that it is made of. Nil if the name
// has an entry.
func (s *Server) build(name string) (*entry, *ir.Snapshot, error) {
	s.mu.Lock()
	exists := s.entries[name] != nil
	s.mu.Unlock()
	if exists {
		return nil, nil, nil
	}
	snap := s.snapshot()
	e, err := newEntry(name, snap)
	return e, snap, err
}

// add adds a subscription to a stream. If the name has no entry, it gets the given one. The caller holds
// the lock.
func (s *Server) add(st *stream, name, version string, candidate *entry) error {
	e, err := s.entry(st.account, name, candidate)
	if err != nil {
		return err
	}
	sub, ok := st.subscriptions[e]
	if !ok {
		if err := s.usage.subscribe(st); err != nil {
			s.forget(e)
			s.metrics.limited.Inc()
			return err
		}
		e.streams = append(e.streams, st)
		s.metrics.subscriptions.Inc()
	}
	// A client that subscribes again wants the resource again. No version of this server is longer.
	if sub.version = version; len(sub.version) > versionLength {
		sub.version = ""
	}
	st.subscriptions[e] = sub
	st.mark(e)
	return nil
}

func (s *Server) unsubscribe(st *stream, names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if e := s.entries[name]; e != nil {
			s.drop(st, e)
		}
	}
}

// drop removes a subscription, and the entry with its last one. The caller holds the lock.
func (s *Server) drop(st *stream, e *entry) {
	sub, ok := st.subscriptions[e]
	if !ok {
		return
	}
	if sub.alone {
		st.alone--
	}
	delete(st.subscriptions, e)
	s.usage.unsubscribe(st)
	s.metrics.subscriptions.Dec()
	if i := slices.Index(e.streams, st); i >= 0 {
		e.streams = slices.Delete(e.streams, i, i+1)
	}
	s.forget(e)
}

// forget removes an entry without subscriptions. The caller holds the lock.
func (s *Server) forget(e *entry) {
	if len(e.streams) > 0 {
		return
	}
	if e.patience != nil {
		e.patience.Stop()
	}
	s.usage.release(e)
	delete(s.entries, e.name)
	if delete(s.byList[e.canonical], e); len(s.byList[e.canonical]) == 0 {
		delete(s.byList, e.canonical)
	}
	delete(s.tuned, e)
	s.metrics.lists.Dec()
}

// entry returns the entry of a name. If there is none, it takes the given one, which it charges to the
// client. The caller holds the lock.
func (s *Server) entry(client *account, name string, candidate *entry) (*entry, error) {
	if e := s.entries[name]; e != nil {
		return e, nil
	}
	e := candidate
	if e == nil {
		// The entry was removed since build looked for it.
		var err error
		if e, err = newEntry(name, s.snapshot()); err != nil {
			return nil, err
		}
	}
	e.client = client
	if err := s.usage.admit(e); err != nil {
		s.metrics.limited.Inc()
		return nil, err
	}
	s.entries[name] = e
	if s.byList[e.canonical] == nil {
		s.byList[e.canonical] = map[*entry]struct{}{}
	}
	s.byList[e.canonical][e] = struct{}{}
	if e.tuned {
		s.tuned[e] = struct{}{}
	}
	s.metrics.lists.Inc()
	if !e.listed {
		e.patience = time.AfterFunc(s.opts.Patience, func() { s.giveUp(e) })
	}
	return e, nil
}

// giveUp sends an empty list to streams without endpoints, unless the name has become known.
func (s *Server) giveUp(e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.resource != nil || s.entries[e.name] != e {
		return
	}
	r, err := newResource(e.name, nil, e.tuning)
	if err != nil {
		s.opts.Log.Info("Cannot serve endpoints", "xds-cluster", e.list, "error", err)
		return
	}
	s.metrics.unknown.Inc()
	s.opts.Log.Debug("No route uses these endpoints", "xds-cluster", e.list)
	e.resource = r
	s.usage.charge(e)
	s.publish(e)
}
