// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"tailscale.com/derp/derpserver"
	"tailscale.com/tailcfg"
	"tailscale.com/types/key"
	"tailscale.com/types/tkatype"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A Server is a simulated Tailscale. It is an http.Handler for every face of
// it; Start also opens the listeners that nodes need.
type Server struct {
	opts   Options
	log    *slog.Logger
	api    *http.ServeMux
	noise  *http.ServeMux
	derp   *derpserver.Server
	derpH  http.Handler
	calls  callLog
	faults faultSet
	saver  *saver
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	// mu guards all below. It is never held during network I/O.
	mu       sync.Mutex
	st       *state
	policy   *policy
	accepted map[string]map[int64]bool
	// elections are who has the addresses of each service, and of each subnet.
	elections map[string]*election
	// lost is when a host of addresses was lost, while they wait for another one.
	lost map[string]map[int64]time.Time
	// stranded are the hosts that Switches.NoPrimary concerns, by service.
	stranded map[string]map[int64]*stranding
	// chain is the chain of tailnet lock, nil while that is disabled. lockInfo is what network maps
	// say of it, and genesis that of a lock that a node begins.
	chain    *chain
	lockInfo *tailcfg.TKAInfo
	genesis  tkatype.MarshaledAUM
	// gen is what streams send, without the changes that stale names.
	gen      *generation
	stale    staleness
	work     work
	switches Switches
	// clockOffset is that of the switches, in nanoseconds, for readers without mu.
	clockOffset atomic.Int64
	foreign     foreignFields
	c2n         map[string]*c2nCall
	// replies are those that Lag.API repeats, by path and query.
	replies map[string]*oldReply
	derpMap *tailcfg.DERPMap
	addr    netip.AddrPort
	stun    netip.AddrPort
	closers []func() error
}

// New makes a Server and reads its state file, if there is one.
func New(o Options) (*Server, error) {
	o.setDefaults()
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{
		opts: o, log: o.Logger, ctx: ctx, cancel: cancel,
		accepted: map[string]map[int64]bool{}, elections: map[string]*election{},
		lost: map[string]map[int64]time.Time{}, stranded: map[string]map[int64]*stranding{}, switches: o.Switches.clone(),
		stale:   staleness{all: true},
		replies: map[string]*oldReply{}, foreign: foreignFields{},
		c2n:     map[string]*c2nCall{},
		derpMap: &tailcfg.DERPMap{Regions: map[int]*tailcfg.DERPRegion{}, OmitDefaultRegions: true},
	}
	s.clockOffset.Store(int64(o.Switches.ClockOffset.Duration))
	s.st = newState()
	s.st.Policy = o.Policy
	s.st.DNS.MagicDNS = true
	if o.StateFile != "" {
		if err := s.load(); err != nil {
			cancel()
			return nil, err
		}
		s.saver = newSaver(s)
	}
	if err := s.switches.validate(); err != nil {
		cancel()
		return nil, errors.Wrap(err, "invalid switches")
	}
	p, err := parsePolicy(s.st.Policy, s.switches.UnsyncedGroups)
	if err != nil {
		cancel()
		return nil, errors.Wrap(err, "cannot parse the policy file")
	}
	s.policy = p
	s.derp = derpserver.New(key.NewNode(), func(string, ...any) {})
	s.derpH = derpserver.Handler(s.derp)
	s.api = s.apiMux()
	s.noise = s.noiseMux()
	s.sweepAfterLoad()
	return s, nil
}

// Start listens for HTTP (and TLS on the same port, for DERP) on listen, and
// for STUN on the UDP address stun. Port 0 picks free ones.
func (s *Server) Start(listen, stun string) error {
	var lc net.ListenConfig
	ln, err := lc.Listen(s.ctx, "tcp", listen)
	if err != nil {
		return errors.Wrap(err, "cannot listen for HTTP")
	}
	pc, err := lc.ListenPacket(s.ctx, "udp", stun)
	if err != nil {
		return errors.Join(errors.Wrap(err, "cannot listen for STUN"), ln.Close())
	}
	cert, err := selfSigned()
	if err != nil {
		return errors.Join(err, ln.Close(), pc.Close())
	}

	addr, err := netip.ParseAddrPort(ln.Addr().String())
	if err != nil {
		return errors.Join(errors.Wrap(err, "cannot parse the listener's address"), ln.Close(), pc.Close())
	}
	stunAddr, err := netip.ParseAddrPort(pc.LocalAddr().String())
	if err != nil {
		return errors.Join(errors.Wrap(err, "cannot parse the STUN address"), ln.Close(), pc.Close())
	}
	adv := s.opts.AdvertiseAddr
	if !adv.IsValid() {
		adv = addr.Addr().Unmap()
	}
	hs := &http.Server{Handler: s, ReadHeaderTimeout: 30 * time.Second, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug)}

	s.mu.Lock()
	s.addr, s.stun = addr, stunAddr
	s.derpMap = derpMap(adv, addr.Port(), stunAddr.Port())
	s.closers = append(s.closers, hs.Close, pc.Close)
	s.mu.Unlock()

	s.wg.Go(func() { serveSTUN(pc) })
	s.wg.Go(func() {
		err := hs.Serve(&sniffListener{Listener: ln, config: &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}})
		if err != nil && !errors.Is(err, http.ErrServerClosed) {
			s.log.Error("Stopped serving", "error", err)
		}
	})
	return nil
}

// URL is the base URL of API and coordination server. Empty before Start.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.addr.IsValid() {
		return ""
	}
	return "http://" + s.addr.String()
}

// STUNAddr is the UDP address of STUN. Invalid before Start.
func (s *Server) STUNAddr() netip.AddrPort {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stun
}

// Domain is the tailnet's DNS name.
func (s *Server) Domain() string { return s.opts.Domain }

// Close ends all streams and listeners and writes the state file.
func (s *Server) Close() error {
	s.mu.Lock()
	// Under the lock, so that no goroutine starts after that.
	s.cancel()
	cs := s.closers
	s.closers = nil
	s.mu.Unlock()
	var errs []error
	for _, c := range cs {
		errs = append(errs, c())
	}
	errs = append(errs, s.derp.Close())
	s.wg.Wait()
	if s.saver != nil {
		errs = append(errs, s.saver.close())
	}
	return errors.Join(errs...)
}

// ServeHTTP routes to the faces. A panic below becomes a 500.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer s.recover(w, r)
	if s.clockOffset.Load() != 0 {
		w.Header().Set("Date", s.now().UTC().Format(http.TimeFormat))
	}
	s.withFaults(http.HandlerFunc(s.route)).ServeHTTP(w, r)
}

func (s *Server) route(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/ts2021":
		s.serveNoiseUpgrade(w, r)
	case "/key":
		s.serveKey(w)
	case "/generate_204":
		w.WriteHeader(http.StatusNoContent)
	case "/derp", "/derp/probe", "/derp/latency-check":
		s.derpH.ServeHTTP(w, r)
	default:
		s.api.ServeHTTP(w, r)
	}
}

func (s *Server) recover(w http.ResponseWriter, r *http.Request) {
	v := recover()
	if v == nil {
		return
	}
	if v == http.ErrAbortHandler { //nolint:errorlint // A sentinel panic value.
		panic(v)
	}
	s.log.Error("Recovered from a panic", "method", r.Method, "path", r.URL.Path, "panic", v, "stack", string(debug.Stack()))
	writeError(w, http.StatusInternalServerError, "internal error")
}

// changedLocked notes that anything may have changed, and wakes every stream and the state
// file's writer. mu must be held, as for the narrower ones below, which cost less.
func (s *Server) changedLocked() {
	s.stale.all = true
	s.hostsChangedLocked()
}

// deviceChangedLocked notes a change of one device.
func (s *Server) deviceChangedLocked(d *device) {
	s.stale.device(d.ID)
	s.hostsChangedLocked()
}

// servicesChangedLocked notes a change of services.
func (s *Server) servicesChangedLocked() {
	s.stale.services = true
	s.hostsChangedLocked()
}

// hostsChangedLocked notes a change of who hosts what.
func (s *Server) hostsChangedLocked() {
	if lag := s.switches.Lag.Control.Duration; lag > 0 {
		time.AfterFunc(lag, s.decide)
	} else {
		s.recomputeLocked()
	}
	s.wakeLocked()
	s.dirty()
}

// decide decides who hosts what, after Lag.Control.
func (s *Server) decide() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return
	}
	s.recomputeLocked()
	s.wakeLocked()
}

func (s *Server) wakeLocked() {
	for _, d := range s.st.Devices {
		if d.session != nil {
			d.session.wake()
		}
	}
}

func (s *Server) dirty() {
	if s.saver != nil {
		s.saver.kick()
	}
}
