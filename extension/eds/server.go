// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package eds

import (
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

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/extension/ir"
	"github.com/tailscale-gateway/tailscale-gateway/extension/xds"
)

const (
	// defaultDebounce is how long further changes are waited for after one. A
	// rollout changes many endpoints at once.
	defaultDebounce = 3 * time.Millisecond

	// defaultPatience is how long a name may be unknown before it is answered
	// with nothing. Envoy Gateway may have asked a replica that is ahead of us.
	// Envoy itself waits two seconds before it goes on without.
	defaultPatience = 500 * time.Millisecond
)

// Options of a Server.
type Options struct {
	// Debounce is how long further changes are waited for after one. Zero means
	// 3 milliseconds.
	Debounce time.Duration

	// Patience is how long a name may be unknown before it is answered with an
	// empty list. Zero means half a second.
	Patience time.Duration

	// Log may be nil.
	Log logging.Logger

	// Limits of what clients may take. Zero ones have defaults.
	Limits Limits

	// Tracer makes a span of each push of endpoints. May be nil.
	Tracer trace.Tracer
}

// A Server answers Envoys that ask for endpoints. Register it, have Run running,
// and call Changed when there is a new snapshot. It must not be asked before the
// snapshot is complete: what is missing from it counts as unknown.
type Server struct {
	endpointservice.UnimplementedEndpointDiscoveryServiceServer

	snapshot func() *ir.Snapshot
	opts     Options
	metrics  *Metrics

	// changed holds one token while a new snapshot waits to be looked at.
	changed chan struct{}

	mu      sync.Mutex
	entries map[string]*entry
	usage   *usage
}

// NewServer returns one that answers from the newest snapshot.
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
	}
}

// Register the server for both ways to ask: for endpoints alone, and for all that an
// authority of xdstp names has.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	endpointservice.RegisterEndpointDiscoveryServiceServer(r, s)
	discovery.RegisterAggregatedDiscoveryServiceServer(r, aggregated{server: s})
}

// Metrics of the server, to be registered.
func (s *Server) Metrics() *Metrics { return s.metrics }

// Changed reports that there is a new snapshot. It never blocks.
func (s *Server) Changed() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Run sends what changed until ctx ends.
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
		// What comes from here on is in the snapshot, or has a token of its own.
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

// refresh looks at all that is subscribed: comparing costs little, as snapshots share
// what did not change. It returns how many lists changed, and to how many streams they
// were handed.
func (s *Server) refresh() (lists, streams int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	snap := s.snapshot()
	for _, e := range s.entries {
		changed, err := e.refresh(snap)
		if err != nil {
			s.opts.Log.Info("Cannot serve endpoints", "xds-cluster", e.list, "error", err)
			continue
		}
		s.usage.charge(e)
		if changed {
			lists++
			streams += len(e.streams)
			s.publish(e)
		}
	}
	return lists, streams
}

// publish sends the entry to all streams that do not have it. The lock is held.
func (s *Server) publish(e *entry) {
	for _, st := range e.streams {
		st.mark(e)
		s.start(st)
	}
}

// start has somebody send what is due on the stream. The lock is held.
func (s *Server) start(st *stream) {
	if st.sending || st.closed || len(st.due) == 0 {
		return
	}
	st.sending = true
	st.senders.Add(1)
	go s.deliver(st)
}

// deliver sends what is due, and ends when nothing is.
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
			// The stream is broken, and its receiver will hear so too. It stays
			// marked as sending, so that nobody tries again.
			s.opts.Log.Debug("Cannot send endpoints", "error", err)
			return
		}
		s.metrics.sent.Add(float64(len(r.GetResources())))
	}
}

// open returns a stream of a client at an address that sends so. It is an error if there are too many.
func (s *Server) open(address string, send func(*discovery.DeltaDiscoveryResponse) error) (*stream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.usage.open(address)
	if err != nil {
		s.metrics.limited.Inc()
		return nil, err
	}
	s.metrics.streams.Inc()
	return &stream{taker: t, send: send, subscriptions: map[*entry]subscription{}}, nil
}

// close drops what the stream asked for, and waits for its sender.
func (s *Server) close(st *stream) {
	s.mu.Lock()
	st.closed = true
	for e := range st.subscriptions {
		s.drop(st, e)
	}
	s.usage.close(st.taker)
	s.mu.Unlock()
	st.senders.Wait()
	s.metrics.streams.Dec()
}

// subscribe the stream to the names. Versions are those that the client has from
// before, by name.
func (s *Server) subscribe(st *stream, names []string, versions map[string]string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		e, err := s.entry(st.taker, name)
		if err != nil {
			return err
		}
		old, ok := st.subscriptions[e]
		if !ok {
			if err := s.usage.subscribe(st); err != nil {
				s.forget(e)
				s.metrics.limited.Inc()
				return err
			}
			e.streams = append(e.streams, st)
			s.metrics.subscriptions.Inc()
		}
		// A client that subscribes again wants it sent again. No version of ours is longer.
		if old.version = versions[name]; len(old.version) > versionLength {
			old.version = ""
		}
		st.subscriptions[e] = old
		st.mark(e)
	}
	s.start(st)
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

// drop the stream's subscription, and the entry with its last one. The lock is held.
func (s *Server) drop(st *stream, e *entry) {
	if _, ok := st.subscriptions[e]; !ok {
		return
	}
	delete(st.subscriptions, e)
	s.usage.unsubscribe(st)
	s.metrics.subscriptions.Dec()
	if i := slices.Index(e.streams, st); i >= 0 {
		e.streams = slices.Delete(e.streams, i, i+1)
	}
	s.forget(e)
}

// forget an entry that no stream asks for. The lock is held.
func (s *Server) forget(e *entry) {
	if len(e.streams) > 0 {
		return
	}
	if e.patience != nil {
		e.patience.Stop()
	}
	s.usage.release(e)
	delete(s.entries, e.name)
	s.metrics.lists.Dec()
}

// entry of the name, which is made when it is asked for first, by a client. The lock is
// held.
func (s *Server) entry(by *taker, name string) (*entry, error) {
	if e := s.entries[name]; e != nil {
		return e, nil
	}
	if len(name) > maxName {
		return nil, errors.Errorf("a name has %d bytes, and none that is served has more than %d", len(name), maxName)
	}
	list, tuning, err := listName(name)
	if err != nil {
		return nil, err
	}
	e := &entry{name: name, list: list, tuning: tuning, own: name == list || name == xds.XDSTPName(list), by: by}
	if _, err := e.refresh(s.snapshot()); err != nil {
		return nil, err
	}
	if err := s.usage.admit(e); err != nil {
		s.metrics.limited.Inc()
		return nil, err
	}
	s.entries[name] = e
	s.metrics.lists.Inc()
	if !e.known {
		e.patience = time.AfterFunc(s.opts.Patience, func() { s.giveUp(e) })
	}
	return e, nil
}

// giveUp answers those that have nothing with an empty list, unless the name has
// become known.
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
	s.opts.Log.Debug("No route asks for these endpoints", "xds-cluster", e.list)
	e.resource = r
	s.usage.charge(e)
	s.publish(e)
}
