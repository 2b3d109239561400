// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"maps"
	"slices"

	"tailscale.com/types/key"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A PrimaryRemedy is what makes control choose a primary host again.
type PrimaryRemedy string

const (
	// RemedyNone never lets a host become primary.
	RemedyNone PrimaryRemedy = ""
	// RemedyAdvertisement lets a host become primary once it has withdrawn the service and
	// advertises it again. A restart of the host does so, too.
	RemedyAdvertisement PrimaryRemedy = "advertisement"
	// RemedyRestart lets a host become primary once its tailscaled was restarted. It is the only
	// remedy with a source: the reporter of tailscale/tailscale#19666 creates the container again.
	RemedyRestart PrimaryRemedy = "restart"
)

// NoPrimary leaves services without a primary host, as tailscale/tailscale#19666 describes it
// (open, seen with 1.102.3): the hosts are approved, online, and have the service-host capability
// and the addresses in AllowedIPs, but PrimaryRoutes is null, and no client has a route.
type NoPrimary struct {
	// Services are the names of the services. They need not exist yet.
	Services []string `json:"services,omitempty"`
	// Remedy is what ends the state, for each host on its own. Default RemedyNone.
	Remedy PrimaryRemedy `json:"remedy,omitempty"`
}

func (n NoPrimary) validate() error {
	if !slices.Contains([]PrimaryRemedy{RemedyNone, RemedyAdvertisement, RemedyRestart}, n.Remedy) {
		return errors.Errorf("noPrimary: unknown remedy %q", n.Remedy)
	}
	return nil
}

// A stranding is a host that control does not choose as primary for a service.
type stranding struct {
	// disco is the key of the tailscaled process that control has not chosen: each process has
	// another one (tailscale.com wgengine/magicsock, NewConn).
	disco key.DiscoPublic
	// remedied reports whether the host has since done what the remedy requires.
	remedied bool
}

// followStrandedLocked notes what the hosts have done since control passed over them, and forgets
// the services that the switch does not name any more.
func (s *Server) followStrandedLocked() {
	w := s.switches.NoPrimary
	maps.DeleteFunc(s.stranded, func(name string, _ map[int64]*stranding) bool {
		return s.st.Services[name] == nil || !slices.Contains(w.Services, name)
	})
	for name, hosts := range s.stranded {
		v := s.st.Services[name]
		for id, x := range hosts {
			d := s.st.Devices[id]
			if d == nil {
				delete(hosts, id)
				continue
			}
			restarted := !d.online || d.DiscoKey != x.disco
			switch w.Remedy {
			case RemedyRestart:
				x.remedied = x.remedied || restarted
			case RemedyAdvertisement:
				x.remedied = x.remedied || restarted || !offering(v, d)
			case RemedyNone:
			}
		}
	}
}

// strandedLocked reports whether the election of a service's primary passes over a host that
// offers it.
func (s *Server) strandedLocked(name string, d *device) bool {
	if !slices.Contains(s.switches.NoPrimary.Services, name) {
		return false
	}
	if s.stranded[name] == nil {
		s.stranded[name] = map[int64]*stranding{}
	}
	x := s.stranded[name][d.ID]
	if x == nil {
		x = &stranding{disco: d.DiscoKey}
		s.stranded[name][d.ID] = x
	}
	return !x.remedied
}
