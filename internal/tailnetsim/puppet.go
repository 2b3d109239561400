// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"net/http"
	"net/netip"
	"slices"

	"tailscale.com/tailcfg"
	"tailscale.com/types/key"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A Puppet is a device without a process: it is in the API and carries no traffic.
// It costs nothing, so there may be thousands.
type Puppet struct {
	// NodeID is the stable node id. Default a random one.
	NodeID string `json:"nodeId,omitempty"`
	// Hostname that the device requests.
	Hostname string `json:"hostname"`
	// AuthKey logs the device in, as a node does, with a signature of tailnet lock if it is wrapped.
	// Without one, the device joins with Tags, regardless of their owners.
	AuthKey string   `json:"authKey,omitempty"`
	Tags    []string `json:"tags,omitempty"`
	// Offline devices were connected in the past. Others stay online until changed.
	Offline bool `json:"offline,omitempty"`
	// Unauthorized devices wait for an admin. It is for devices without a key.
	Unauthorized bool `json:"unauthorized,omitempty"`
	// OS of the device. Default linux.
	OS string `json:"os,omitempty"`
	// Routes that the device advertises, as CIDRs.
	Routes []string `json:"routes,omitempty"`
	// Region is the device's home region of DERP.
	Region int `json:"region,omitempty"`
	// NodeKey of the device. Default that of a random private key.
	NodeKey key.NodePublic `json:"nodeKey,omitzero"`
}

// Join enters a puppet and returns its stable node id.
func (s *Server) Join(p Puppet) (string, error) {
	hi := &tailcfg.Hostinfo{Hostname: p.Hostname, OS: p.OS, IPNVersion: "1.102.5"}
	if hi.OS == "" {
		hi.OS = "linux"
	}
	for _, r := range p.Routes {
		prefix, err := netip.ParsePrefix(r)
		if err != nil {
			return "", errors.Wrapf(err, "cannot parse route %q", r)
		}
		hi.RoutableIPs = append(hi.RoutableIPs, prefix)
	}
	machine, node := key.NewMachine().Public(), p.NodeKey
	if node.IsZero() {
		node = key.NewNode().Public()
	}
	authKey, sig, err := unwrapAuthKey(p.AuthKey, node)
	if err != nil {
		return "", err
	}
	// Each device has a key, with or without tailnet lock (OpenAPI: Device.tailnetLockKey).
	lockKey := key.NewNLPrivate().Public()

	s.mu.Lock()
	defer s.mu.Unlock()
	var d *device
	if p.AuthKey != "" {
		r := s.registerLocked(machine, &tailcfg.RegisterRequest{
			NodeKey: node, NLKey: lockKey, NodeKeySignature: sig, Hostinfo: hi, Auth: &tailcfg.RegisterResponseAuth{AuthKey: authKey},
		})
		if r.Error != "" {
			return "", errors.New(r.Error)
		}
		d = s.st.deviceByNodeKey(node)
	} else {
		d = s.st.addDevice(s.now())
		d.Machine, d.NodeKey, d.LockKey = machine, node, lockKey
		d.Tags = slices.Sorted(slices.Values(p.Tags))
		d.Authorized = !p.Unauthorized
		d.KeyExpiryDisabled = len(d.Tags) > 0
		d.Expires = s.now().UTC().Add(nodeKeyLife)
		s.noteHostinfo(d, hi)
	}
	if p.NodeID != "" {
		d.StableID = tailcfg.StableNodeID(p.NodeID)
	}
	d.online = !p.Offline
	d.HomeDERP = p.Region
	s.deviceChangedLocked(d)
	return string(d.StableID), nil
}

// SetOnline connects or disconnects a puppet. It reports whether there is such a
// device.
func (s *Server) SetOnline(nodeID string, online bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.st.device(nodeID)
	if d == nil {
		return false
	}
	if d.online && !online {
		d.LastSeen = s.now().UTC()
	}
	d.online = online
	s.deviceChangedLocked(d)
	return true
}

// A Definition is a service that Define creates.
type Definition struct {
	// Name is svc: followed by a DNS label.
	Name        string
	Ports, Tags []string
	Annotations map[string]string
}

// Define creates services at once, or none of them. Through the API, hosts would be decided again for each, and
// thousands of services would take minutes.
func (s *Server) Define(definitions ...Definition) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	created := make([]*service, 0, len(definitions))
	for _, d := range definitions {
		v := &service{Name: d.Name, Ports: d.Ports, Tags: d.Tags, Annotations: d.Annotations}
		if err := v.validate(); err != nil {
			return errors.Wrapf(err, "cannot create service %q", d.Name)
		}
		if s.st.Services[d.Name] != nil || s.st.machineHas(d.Name) {
			return errors.Errorf("cannot create service %q: the name is in use", d.Name)
		}
		created = append(created, v)
	}
	for _, v := range created {
		if err := s.allocateLocked(v); err != nil {
			return errors.Wrapf(err, "cannot create service %q", v.Name)
		}
		v.canonical()
		s.st.Services[v.Name] = v
		s.defineLocked(v.Name)
	}
	s.servicesChangedLocked()
	return nil
}

// puppetRoutes adds routes with which other processes manage puppets.
func (s *Server) puppetRoutes(m *http.ServeMux) {
	m.HandleFunc("POST /sim/devices", func(w http.ResponseWriter, r *http.Request) {
		var p Puppet
		if !decodeAdmin(w, r, &p) {
			return
		}
		id, err := s.Join(p)
		if err != nil {
			writeError(w, http.StatusBadRequest, err.Error())
			return
		}
		writeJSON(w, http.StatusOK, map[string]string{"nodeId": id})
	})
	m.HandleFunc("POST /sim/devices/{device}/online", func(w http.ResponseWriter, r *http.Request) {
		var b struct {
			Online bool `json:"online"`
		}
		if !decodeAdmin(w, r, &b) {
			return
		}
		if !s.SetOnline(r.PathValue("device"), b.Online) {
			writeError(w, http.StatusNotFound, "no device with that id was found")
			return
		}
		writeJSON(w, http.StatusOK, b)
	})
}
