// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"

	"tailscale.com/tailcfg"
	"tailscale.com/util/zstdframe"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
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
		res := s.mapResponseLocked(d)
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
	s.changedLocked()
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
	s.changedLocked()
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
	time.AfterFunc(s.opts.OfflineGrace, func() { s.offline(d) })
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
	s.changedLocked()
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

var errStream = errors.New("stream ended")

// stream sends the map whenever it differs from the last one.
func (s *Server) stream(r *http.Request, w http.ResponseWriter, compress bool, d *device, ss *session) error {
	ka := time.NewTicker(keepAlive)
	defer ka.Stop()
	var last []byte
	peers := map[tailcfg.NodeID]bool{}
	for {
		s.mu.Lock()
		res := s.mapResponseLocked(d)
		pings := ss.pings
		ss.pings = nil
		s.mu.Unlock()

		for _, p := range pings {
			// A response with nothing but a ping is no map: it changes nothing.
			if last == nil {
				break
			}
			if err := writeMap(w, compress, &tailcfg.MapResponse{PingRequest: p}); err != nil {
				return err
			}
		}
		b, err := json.Marshal(res)
		if err != nil {
			return errors.Wrap(err, "cannot encode a map")
		}
		if !bytes.Equal(b, last) {
			first := last == nil
			last = b
			res.PeersRemoved = removed(peers, res.Peers)
			now := s.now().UTC()
			res.ControlTime = &now
			if err := writeMap(w, compress, res); err != nil {
				return err
			}
			// The first response of a stream must be a map, so pings wait for it.
			if first && len(pings) > 0 {
				for _, p := range pings {
					if err := writeMap(w, compress, &tailcfg.MapResponse{PingRequest: p}); err != nil {
						return err
					}
				}
			}
		}

		select {
		case <-r.Context().Done():
			return r.Context().Err()
		case <-s.ctx.Done():
			return s.ctx.Err()
		case <-ss.done:
			return errors.Wrap(errStream, "replaced by a newer one")
		case <-d.gone:
			return s.farewell(r, w, compress, d)
		case <-ka.C:
			if err := writeMap(w, compress, &tailcfg.MapResponse{KeepAlive: true}); err != nil {
				return err
			}
		case <-ss.wakeup:
			select {
			case <-r.Context().Done():
			case <-time.After(settle):
			}
		}
	}
}

// removed returns the peers in sent that are not in now, if now is empty, and records the sent
// peers. A list of peers replaces the previous one, but the JSON omits an empty list, which
// means no change.
func removed(sent map[tailcfg.NodeID]bool, now []*tailcfg.Node) []tailcfg.NodeID {
	var out []tailcfg.NodeID
	if len(now) == 0 {
		out = slices.Sorted(maps.Keys(sent))
	}
	clear(sent)
	for _, n := range now {
		sent[n.ID] = true
	}
	return out
}

// farewell notifies a deleted node that its key is invalid: it stops, and needs a new login.
// The stream stays open until the node disconnects, because the node would open another at once
// otherwise.
func (s *Server) farewell(r *http.Request, w http.ResponseWriter, compress bool, d *device) error {
	s.mu.Lock()
	n := s.nodeLocked(d)
	dm := s.derpMap
	s.mu.Unlock()
	n.KeyExpiry = s.now().UTC().Add(-time.Minute)
	n.Expired = true
	if err := writeMap(w, compress, &tailcfg.MapResponse{Node: n, DERPMap: dm, Domain: s.opts.Tailnet}); err != nil {
		return err
	}
	ka := time.NewTicker(keepAlive)
	defer ka.Stop()
	for {
		select {
		case <-r.Context().Done():
			return errors.Wrap(errStream, "device was deleted")
		case <-s.ctx.Done():
			return s.ctx.Err()
		case <-ka.C:
			if err := writeMap(w, compress, &tailcfg.MapResponse{KeepAlive: true}); err != nil {
				return err
			}
		}
	}
}

// writeMap frames a response: four bytes of length, then JSON.
func writeMap(w http.ResponseWriter, compress bool, res *tailcfg.MapResponse) error {
	b, err := json.Marshal(res)
	if err != nil {
		return errors.Wrap(err, "cannot encode a map")
	}
	if compress {
		b = zstdframe.AppendEncode(nil, b, zstdframe.FastestCompression)
	}
	msg := binary.LittleEndian.AppendUint32(make([]byte, 0, 4+len(b)), uint32(len(b)))
	if _, err := w.Write(append(msg, b...)); err != nil {
		return errors.Wrap(err, "cannot send a map")
	}
	return errors.Wrap(http.NewResponseController(w).Flush(), "cannot send a map")
}
