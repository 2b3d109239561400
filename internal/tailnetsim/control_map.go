// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"net/http"
	"time"

	"tailscale.com/tailcfg"
)

// A session is a node's open map stream.
type session struct {
	wakeup chan struct{}
	// done is closed when the stream ended or was replaced by a newer one.
	done chan struct{}
	// pings wait to be sent. Server.mu guards them.
	pings []*tailcfg.PingRequest
}

func (ss *session) wake() {
	select {
	case ss.wakeup <- struct{}{}:
	default:
	}
}

// keepAlive must come at least every two minutes, or nodes reconnect.
const keepAlive = 30 * time.Second

// settle is how long a stream waits for more changes before it sends.
const settle = 15 * time.Millisecond

// serveMap takes a node's news of itself, or streams the network map to it.
func (s *Server) serveMap(w http.ResponseWriter, r *http.Request) {
	req := &tailcfg.MapRequest{}
	if !readRequest(w, r, req) {
		return
	}
	s.mu.Lock()
	d := s.st.deviceByNodeKey(req.NodeKey)
	if d == nil || d.Machine != machineOf(r) {
		g := s.st.Graves[req.NodeKey.String()]
		s.mu.Unlock()
		if g != nil && g.Device.Machine == machineOf(r) && req.Stream {
			err := s.farewell(r, w, req.Compress != "", g.Device)
			s.log.Debug("Map stream ended", "node", g.Device.StableID, "reason", err)
			return
		}
		http.Error(w, "node not found", http.StatusNotFound)
		return
	}
	d.Cap = req.Version
	// A stream only reads: its other fields are empty.
	if !req.Stream {
		s.noteNodeLocked(d, req)
	}
	if !req.Stream {
		res := &tailcfg.MapResponse{}
		// A node that only reports reads nothing (tailscale.com control/controlclient, direct.go:
		// SendUpdate).
		if !req.OmitPeers {
			res = s.mapResponseLocked(d)
		}
		s.mu.Unlock()
		// The node may be gone, and there is no one else to report to.
		_ = writeMap(w, req.Compress != "", res)
		return
	}
	ss := s.openSessionLocked(d)
	s.mu.Unlock()

	defer s.closeSession(d, ss)
	err := s.stream(r, w, req.Compress != "", d, ss)
	s.log.Debug("Map stream ended", "node", d.StableID, "reason", err)
}

// noteNodeLocked stores the location and version of a node.
func (s *Server) noteNodeLocked(d *device, req *tailcfg.MapRequest) {
	d.Endpoints = nil
	for _, e := range req.Endpoints {
		// Addresses that mean something on one link only help no peer.
		if e.Addr().Zone() == "" && (e.Addr().Is4() || !e.Addr().IsLinkLocalUnicast()) {
			d.Endpoints = append(d.Endpoints, e)
		}
	}
	if !req.DiscoKey.IsZero() {
		d.DiscoKey = req.DiscoKey
	}
	hash := servicesHash(d)
	if req.Hostinfo != nil {
		s.noteHostinfo(d, req.Hostinfo)
		if ni := req.Hostinfo.NetInfo; ni != nil && ni.PreferredDERP != 0 {
			d.HomeDERP = ni.PreferredDERP
		}
	}
	if servicesHash(d) != hash {
		s.askLocked(d)
	}
	s.deviceChangedLocked(d)
}

func servicesHash(d *device) string {
	if d.Hostinfo == nil {
		return ""
	}
	return d.Hostinfo.ServicesHash
}

// openSessionLocked makes the stream the device's only one.
func (s *Server) openSessionLocked(d *device) *session {
	ss := &session{wakeup: make(chan struct{}, 1), done: make(chan struct{})}
	if d.session != nil {
		close(d.session.done)
	}
	d.session = ss
	d.online = true
	d.LastSeen = s.now().UTC()
	s.askLocked(d)
	s.deviceChangedLocked(d)
	return ss
}

// closeSession takes the device offline unless it soon comes back.
func (s *Server) closeSession(d *device, ss *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.session != ss {
		return
	}
	close(ss.done)
	d.session = nil
	d.LastSeen = s.now().UTC()
	s.dirty()
	time.AfterFunc(max(s.opts.OfflineGrace, s.switches.OfflineDelay.Duration), func() { s.offline(d) })
	s.sweepLaterLocked(d)
}

func (s *Server) offline(d *device) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.session != nil || !d.online || s.ctx.Err() != nil {
		return
	}
	d.online = false
	s.takeOffersLocked(d, nil)
	s.log.Info("Node went offline", "node", d.StableID, "name", d.Label)
	s.deviceChangedLocked(d)
}

// sweepLaterLocked removes an ephemeral device if it stays away.
func (s *Server) sweepLaterLocked(d *device) {
	if !d.Ephemeral {
		return
	}
	seen := d.LastSeen
	time.AfterFunc(s.opts.EphemeralGrace, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if d.session == nil && d.LastSeen.Equal(seen) && s.st.Devices[d.ID] == d && s.ctx.Err() == nil {
			s.removeLocked(d)
		}
	})
}

func (s *Server) sweepAfterLoad() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.st.Devices {
		s.sweepLaterLocked(d)
	}
}
