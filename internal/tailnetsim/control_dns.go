// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"context"
	"encoding/binary"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	"tailscale.com/tailcfg"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// challengePrefix starts the names by which an ACME server is shown that one has a
// domain (RFC 8555, 8.4).
const challengePrefix = "_acme-challenge."

const (
	// maxTXT is how many values a name has at most, which a packet holds: those of
	// challenges that are over are of no use to anyone.
	maxTXT = 4

	// dnsTTL is that of all answers, in seconds.
	dnsTTL = 1

	// dnsTimeout bounds how long a client of DNS may take to ask.
	dnsTimeout = 10 * time.Second
)

// certDomainsLocked returns the names for which a device may have certificates: its name, and
// those of the services that it serves and is approved for. Whether it must also advertise them
// is Switches.CertDomains: see CertAdvertised and CertServed.
//
// Evidence: tailscale/tailscale#20716 saw `tailscale cert` refused on a host that serves and
// does not advertise, and granted after it advertised (AlverezYari/phillips-homelab#396);
// #18257 adds that the host must be approved. No source shows a grant without approval, nor
// whether the advertisement of one host also grants the domain to another, so each host needs
// its own here.
func (s *Server) certDomainsLocked(d *device) []string {
	if s.st.Settings["httpsEnabled"] != true || !s.st.DNS.MagicDNS || !d.Authorized {
		return nil
	}
	out := []string{d.Label + "." + s.opts.Domain}
	for _, name := range slices.Sorted(maps.Keys(d.offers)) {
		v, o := s.st.Services[name], d.offers[name]
		if v == nil || o == nil || len(d.Tags) == 0 || !s.approvedLocked(v, d) {
			continue
		}
		if o.Active || s.switches.CertDomains == CertServed {
			out = append(out, name[len("svc:"):]+"."+s.opts.Domain)
		}
	}
	return out
}

// serveSetDNS keeps a TXT record by which a node shows that it has a domain.
func (s *Server) serveSetDNS(w http.ResponseWriter, r *http.Request) {
	req := &tailcfg.SetDNSRequest{}
	if !readRequest(w, r, req) {
		return
	}
	s.mu.Lock()
	delay := s.switches.TXTDelay.Duration
	s.mu.Unlock()
	select {
	case <-r.Context().Done():
		return
	case <-time.After(delay):
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.st.deviceByNodeKey(req.NodeKey)
	if d == nil || d.Machine != machineOf(r) {
		http.Error(w, "node not found", http.StatusNotFound)
		return
	}
	domain, ok := strings.CutPrefix(req.Name, challengePrefix)
	if !ok || req.Type != "TXT" || req.Value == "" {
		http.Error(w, "invalid record: only TXT records of "+challengePrefix+"<domain> can be set", http.StatusBadRequest)
		return
	}
	if !slices.Contains(s.certDomainsLocked(d), domain) {
		http.Error(w, "the node may not set records of this domain", http.StatusForbidden)
		return
	}
	values := s.st.TXT[req.Name]
	if !slices.Contains(values, req.Value) {
		values = append(values, req.Value)
		s.st.TXT[req.Name] = values[max(0, len(values)-maxTXT):]
		s.dirty()
	}
	s.log.Info("Node set a TXT record", "node", d.StableID, "name", req.Name)
	writeJSON(w, http.StatusOK, tailcfg.SetDNSResponse{})
}

// StartDNS answers questions for the TXT records that nodes have set, over UDP and
// TCP, as the public DNS does of the real tailnet. Port 0 picks a free one.
func (s *Server) StartDNS(listen string) (net.Addr, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(s.ctx, "tcp", listen)
	if err != nil {
		return nil, errors.Wrap(err, "cannot listen for DNS over TCP")
	}
	pc, err := lc.ListenPacket(s.ctx, "udp", ln.Addr().String())
	if err != nil {
		return nil, errors.Join(errors.Wrap(err, "cannot listen for DNS over UDP"), ln.Close())
	}
	s.mu.Lock()
	s.closers = append(s.closers, ln.Close, pc.Close)
	s.mu.Unlock()
	s.wg.Go(func() { s.serveDNSPackets(pc) })
	s.wg.Go(func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			s.wg.Go(func() { s.serveDNS(conn) })
		}
	})
	return ln.Addr(), nil
}

// serveDNSPackets answers over UDP until pc is closed.
func (s *Server) serveDNSPackets(pc net.PacketConn) {
	buf := make([]byte, 1500)
	for {
		n, sender, err := pc.ReadFrom(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue
		}
		answer, err := s.answerDNS(buf[:n])
		if err == nil {
			_, err = pc.WriteTo(answer, sender)
		}
		if err != nil {
			s.log.Debug("Cannot answer a question of DNS", "error", err)
		}
	}
}

// serveDNS answers on one connection until it ends.
func (s *Server) serveDNS(conn net.Conn) {
	stop := context.AfterFunc(s.ctx, func() { _ = conn.Close() })
	defer stop()
	defer func() { _ = conn.Close() }() // Closing twice is no harm.
	for {
		if err := conn.SetDeadline(time.Now().Add(dnsTimeout)); err != nil {
			return
		}
		var size [2]byte
		if _, err := io.ReadFull(conn, size[:]); err != nil {
			return
		}
		msg := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(conn, msg); err != nil {
			return
		}
		answer, err := s.answerDNS(msg)
		if err != nil {
			s.log.Debug("Cannot answer a question of DNS", "error", err)
			return
		}
		if _, err := conn.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(answer))), answer...)); err != nil {
			return
		}
	}
}

func (s *Server) answerDNS(msg []byte) ([]byte, error) {
	var p dnsmessage.Parser
	h, err := p.Start(msg)
	if err != nil {
		return nil, errors.Wrap(err, "cannot parse header")
	}
	q, err := p.Question()
	if err != nil {
		return nil, errors.Wrap(err, "cannot parse question")
	}
	out := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: h.ID, Response: true, Authoritative: true, OpCode: h.OpCode, RecursionDesired: h.RecursionDesired},
		Questions: []dnsmessage.Question{q},
	}
	name := strings.ToLower(strings.TrimSuffix(q.Name.String(), "."))
	s.mu.Lock()
	values, found := s.st.TXT[name]
	s.mu.Unlock()
	if !found {
		out.RCode = dnsmessage.RCodeNameError
	}
	if q.Type == dnsmessage.TypeTXT {
		for _, v := range values {
			out.Answers = append(out.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class, TTL: dnsTTL},
				Body:   &dnsmessage.TXTResource{TXT: []string{v}},
			})
		}
	}
	b, err := out.Pack()
	return b, errors.Wrap(err, "cannot encode answer")
}
