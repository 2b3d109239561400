// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"tailscale.com/tailcfg"
	"tailscale.com/types/key"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// c2nTimeout bounds one question to a node.
const c2nTimeout = 5 * time.Second

// c2nCall is a question to a node that waits for its answer.
type c2nCall struct {
	machine key.MachinePublic
	answer  chan []byte
}

// serveC2N takes a node's answer: an HTTP response inside a request.
func (s *Server) serveC2N(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	c := s.c2n[r.PathValue("token")]
	s.mu.Unlock()
	if c == nil || c.machine != machineOf(r) {
		http.Error(w, "unknown token", http.StatusNotFound)
		return
	}
	res, err := http.ReadResponse(bufio.NewReader(io.LimitReader(r.Body, maxBody)), nil)
	if err != nil {
		http.Error(w, "cannot parse response", http.StatusBadRequest)
		return
	}
	b, err := io.ReadAll(res.Body)
	if err := errors.Join(err, res.Body.Close()); err != nil || res.StatusCode != http.StatusOK {
		s.log.Info("Got no answer of a node", "status", res.StatusCode, "error", err)
		b = nil
	}
	select {
	case c.answer <- b:
	default: // It was answered already.
	}
	w.WriteHeader(http.StatusNoContent)
}

// askLocked starts to ask the node which services it offers.
func (s *Server) askLocked(d *device) {
	if d.asking || d.session == nil || s.ctx.Err() != nil {
		return
	}
	if servicesHash(d) == "" && len(d.offers) == 0 {
		return
	}
	d.asking = true
	s.wg.Go(func() { s.ask(d) })
}

// ask repeats its request until an answer matches the state that the node last announced: a
// node may change its state while it answers.
func (s *Server) ask(d *device) {
	for try := range 20 {
		res, err := s.question(d)
		s.mu.Lock()
		if err == nil {
			offers := make(map[string]*tailcfg.VIPService, len(res.VIPServices))
			for _, v := range res.VIPServices {
				if v != nil {
					offers[v.Name.String()] = v
				}
			}
			s.takeOffersLocked(d, offers)
			d.heard = res.ServicesHash
			s.log.Debug("Node offers services", "node", d.StableID, "services", len(offers))
			s.hostsChangedLocked()
			// The announcement can also be late: then the request is repeated.
			if servicesHash(d) == "" || res.ServicesHash == servicesHash(d) {
				d.asking = false
				s.mu.Unlock()
				return
			}
		} else {
			s.log.Debug("Cannot ask a node for its services", "node", d.StableID, "error", err)
		}
		if d.session == nil || s.ctx.Err() != nil || try == 19 {
			d.asking = false
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		select {
		case <-s.ctx.Done():
		case <-d.deleted:
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (s *Server) question(d *device) (*tailcfg.C2NVIPServicesResponse, error) {
	ctx, cancel := context.WithTimeout(s.ctx, c2nTimeout)
	defer cancel()
	c := &c2nCall{machine: d.Machine, answer: make(chan []byte, 1)}
	tok := randomHex(16)
	s.mu.Lock()
	if d.session == nil {
		s.mu.Unlock()
		return nil, errors.New("node is not connected")
	}
	ended := d.session.done
	s.c2n[tok] = c
	d.session.pings = append(d.session.pings, &tailcfg.PingRequest{
		// The host is not used: the answer comes over Noise.
		URL: "https://unused/c2n/" + tok, URLIsNoise: true, Types: "c2n",
		Payload: []byte("GET /vip-services HTTP/1.1\r\nHost: node\r\n\r\n"),
	})
	d.session.wake()
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.c2n, tok)
	}()

	select {
	case <-ctx.Done():
		return nil, errors.Wrap(ctx.Err(), "node did not answer")
	case <-d.deleted:
		return nil, errors.New("node was deleted")
	case <-ended:
		return nil, errors.New("node went away")
	case b := <-c.answer:
		res := &tailcfg.C2NVIPServicesResponse{}
		return res, errors.Wrap(json.Unmarshal(b, res), "cannot decode answer")
	}
}
