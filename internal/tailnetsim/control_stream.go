// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"encoding/binary"
	"encoding/json"
	"net/http"
	"time"

	"tailscale.com/tailcfg"
	"tailscale.com/util/zstdframe"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

var errStream = errors.New("stream ended")

// stream sends the whole map, and then what changes.
func (s *Server) stream(r *http.Request, w http.ResponseWriter, compress bool, d *device, ss *session) error {
	ka := time.NewTicker(keepAlive)
	defer ka.Stop()
	var last *netMap
	// due is when the next map is made, at the time at. Pings do not wait for it.
	at := time.Now()
	due := time.After(0)
	// woken is when the first change came that is not in a map yet.
	var woken time.Time
	for {
		select {
		case <-r.Context().Done():
			return r.Context().Err()
		case <-s.ctx.Done():
			return s.ctx.Err()
		case <-ss.done:
			return errors.Wrap(errStream, "replaced by a newer one")
		case <-d.deleted:
			return s.farewell(r, w, compress, d)
		case <-ka.C:
			if err := writeMap(w, compress, &tailcfg.MapResponse{KeepAlive: true}); err != nil {
				return err
			}
		case <-ss.wakeup:
			if due == nil {
				woken = time.Now()
			}
			wait := max(settle, s.netMapLag())
			if next := time.Now().Add(wait); due == nil || next.Before(at) {
				at, due = next, time.After(wait)
			}
			// The first response of a stream must be a map.
			if last == nil {
				continue
			}
			if err := s.writePings(w, compress, ss); err != nil {
				return err
			}
		case <-due:
			due = nil
			// The lag may be longer than it was then, and the map would have later changes, too.
			if wait := s.netMapLag() - time.Since(woken); last != nil && wait > 0 {
				at, due = time.Now().Add(wait), time.After(wait)
				continue
			}
			m, whole := s.netMap(d)
			for _, res := range m.responses(s, last, whole) {
				controlTime := s.now().UTC()
				res.ControlTime = &controlTime
				if err := writeMap(w, compress, res); err != nil {
					return err
				}
			}
			last = m
			if err := s.writePings(w, compress, ss); err != nil {
				return err
			}
		}
	}
}

// netMap returns the map of a device as it is now, and whether changes are sent as whole maps.
func (s *Server) netMap(d *device) (m *netMap, whole bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.netMapLocked(d), s.switches.WholeMaps
}

func (s *Server) netMapLag() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.switches.Lag.NetMap.Duration
}

// writePings sends the pings that wait. A response with nothing but a ping is no map: it changes
// nothing.
func (s *Server) writePings(w http.ResponseWriter, compress bool, ss *session) error {
	s.mu.Lock()
	pings := ss.pings
	ss.pings = nil
	s.mu.Unlock()
	for _, p := range pings {
		if err := writeMap(w, compress, &tailcfg.MapResponse{PingRequest: p}); err != nil {
			return err
		}
	}
	return nil
}

// farewell notifies a deleted node that its key is invalid: it stops, and needs a new login.
// The stream stays open until the node disconnects, because the node would open another at once
// otherwise.
func (s *Server) farewell(r *http.Request, w http.ResponseWriter, compress bool, d *device) error {
	s.mu.Lock()
	n := s.nodeLocked(d)
	n.LastSeen = nil
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
