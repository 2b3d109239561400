// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"maps"
	"net/http"
	"slices"
	"time"

	"tailscale.com/tailcfg"
	"tailscale.com/types/key"
)

// Users of the tailnet: tagged nodes belong to none, which is a user as well. Each tagged node sees itself
// as a separate user, from userSelf.
const (
	userOwner  tailcfg.UserID = 1
	userTagged tailcfg.UserID = 2
	userSelf   tailcfg.UserID = 1 << 32
)

// nodeKeyLife is how long an untagged node stays logged in.
const nodeKeyLife = 180 * 24 * time.Hour

// serveRegister logs nodes in and out.
func (s *Server) serveRegister(w http.ResponseWriter, r *http.Request) {
	req := &tailcfg.RegisterRequest{}
	if !readRequest(w, r, req) {
		return
	}
	if req.NodeKey.IsZero() {
		http.Error(w, "node key missing", http.StatusBadRequest)
		return
	}
	if req.Followup != "" {
		// The node waits here for a person to log in, and none will.
		select {
		case <-r.Context().Done():
		case <-s.ctx.Done():
		}
		return
	}
	s.mu.Lock()
	res := s.registerLocked(machineOf(r), req)
	s.mu.Unlock()
	s.log.Info("Registered", "hostname", hostname(req), "logout", isLogout(req), "authorized", res.MachineAuthorized,
		"expired", res.NodeKeyExpired, "interactive", res.AuthURL != "", "refused", res.Error)
	writeJSON(w, http.StatusOK, res)
}

func hostname(req *tailcfg.RegisterRequest) string {
	if req.Hostinfo == nil {
		return ""
	}
	return req.Hostinfo.Hostname
}

func isLogout(req *tailcfg.RegisterRequest) bool {
	return !req.Expiry.IsZero() && req.Expiry.Before(time.Now())
}

func (s *Server) registerLocked(m key.MachinePublic, req *tailcfg.RegisterRequest) *tailcfg.RegisterResponse {
	at := s.now()
	d := s.st.deviceByNodeKey(req.NodeKey)
	if d != nil && d.Machine != m {
		return &tailcfg.RegisterResponse{Error: "node key belongs to another machine"}
	}
	if isLogout(req) {
		if d != nil {
			s.logoutLocked(d)
		}
		return &tailcfg.RegisterResponse{NodeKeyExpired: true}
	}
	if d != nil {
		// A logged-out node must have a new node key, which it creates on request.
		if d.expired(at) {
			return &tailcfg.RegisterResponse{NodeKeyExpired: true}
		}
		d.setKeys(req)
		s.noteHostinfo(d, req.Hostinfo)
		s.deviceChangedLocked(d)
		return s.registered(d)
	}

	// A new node key. Without an auth key only rotation of a valid one is left.
	if req.Auth == nil || req.Auth.AuthKey == "" {
		old := s.st.deviceByNodeKey(req.OldNodeKey)
		if old == nil || old.Machine != m || old.expired(at) {
			return &tailcfg.RegisterResponse{AuthURL: s.loginURLLocked()}
		}
		if sig := s.needsSignatureLocked(req); sig != nil {
			return &tailcfg.RegisterResponse{NodeKeySignature: sig}
		}
		old.setKeys(req)
		s.noteHostinfo(old, req.Hostinfo)
		s.deviceChangedLocked(old)
		return s.registered(old)
	}

	k := s.st.keyBySecret(req.Auth.AuthKey)
	switch {
	case k == nil:
		return &tailcfg.RegisterResponse{Error: "invalid key: API key does not exist"}
	case k.Used && !k.Capabilities.Devices.Create.Reusable:
		return &tailcfg.RegisterResponse{Error: "invalid key: API key " + k.ID + " not valid: already used"}
	case k.invalid(at):
		return &tailcfg.RegisterResponse{Error: "invalid key: API key " + k.ID + " not valid: expired"}
	}
	c := k.Capabilities.Devices.Create
	d = s.st.deviceByMachine(m)
	if len(c.Tags) > 0 && (d == nil || len(d.Tags) == 0) && s.taggedFullLocked() {
		return &tailcfg.RegisterResponse{Error: "the tailnet has the maximum number of tagged resources of its plan"}
	}
	if sig := s.needsSignatureLocked(req); sig != nil {
		return &tailcfg.RegisterResponse{NodeKeySignature: sig}
	}
	k.Used = true
	if d == nil {
		d = s.st.addDevice(at)
		d.Machine = m
	}
	d.setKeys(req)
	delete(s.st.Graves, req.NodeKey.String())
	d.Tags = slices.Clone(c.Tags)
	slices.Sort(d.Tags)
	d.Ephemeral = c.Ephemeral || req.Ephemeral
	d.Authorized = d.Authorized || c.Preauthorized || s.st.Settings["devicesApprovalOn"] != true
	// Tagged nodes belong to no user: their keys do not expire.
	d.KeyExpiryDisabled = len(d.Tags) > 0
	d.Expires = at.UTC().Add(nodeKeyLife).Truncate(time.Second)
	s.noteHostinfo(d, req.Hostinfo)
	s.deviceChangedLocked(d)
	return s.registered(d)
}

// setKeys stores the keys of a request, and the signature of the node key if there is one: a node
// that registers again with the same key sends none. A wrong signature keeps no node out, just as a
// missing one: peers verify it (tailscale.com v1.102.5, ipn/ipnlocal/tailnet-lock.go:
// tkaFilterNetmapLocked), and the API says why they drop the node. That control itself refuses no
// login is an assumption.
func (d *device) setKeys(req *tailcfg.RegisterRequest) {
	if d.NodeKey != req.NodeKey || len(req.NodeKeySignature) > 0 {
		d.KeySignature = req.NodeKeySignature
	}
	d.NodeKey, d.LockKey = req.NodeKey, req.NLKey
}

// taggedFullLocked reports whether the plan includes no further tagged device.
func (s *Server) taggedFullLocked() bool {
	tagged := 0
	for _, d := range s.st.Devices {
		if len(d.Tags) > 0 {
			tagged++
		}
	}
	return s.switches.TaggedResources > 0 && tagged >= s.switches.TaggedResources
}

// noteHostinfo stores the host information of a node, and names the node by its hostname unless
// the API has named it.
func (s *Server) noteHostinfo(d *device, hi *tailcfg.Hostinfo) {
	if hi == nil {
		hi = &tailcfg.Hostinfo{}
	}
	previous := ""
	if d.Hostinfo != nil {
		previous = d.Hostinfo.Hostname
	}
	if d.Label == "" || (!d.LabelPinned && previous != hi.Hostname) {
		d.Label = s.st.freeLabel(hi.Hostname, d)
	}
	d.Hostinfo = hi
}

func (s *Server) registered(d *device) *tailcfg.RegisterResponse {
	p := s.selfProfile(d)
	return &tailcfg.RegisterResponse{
		MachineAuthorized: d.Authorized,
		User:              tailcfg.User{ID: p.ID, DisplayName: p.DisplayName},
		Login:             tailcfg.Login{ID: tailcfg.LoginID(p.ID), LoginName: p.LoginName, DisplayName: p.DisplayName, Provider: "sim"},
	}
}

func (d *device) user() tailcfg.UserID {
	if len(d.Tags) > 0 {
		return userTagged
	}
	return userOwner
}

// selfProfile returns the user that a node sees itself as. The login name of a tagged one is its DNS name,
// which Tailscale's operator relies on (prefs in cmd/k8s-operator/tsrecorder.go of tailscale.com v1.102.1).
func (s *Server) selfProfile(d *device) tailcfg.UserProfile {
	if d.user() != userTagged {
		return s.profile(d.user())
	}
	return tailcfg.UserProfile{ID: userSelf + tailcfg.UserID(d.ID), LoginName: d.Label + "." + s.opts.Domain, DisplayName: d.Label}
}

// usersLocked returns the users that a node knows.
func (s *Server) usersLocked(d *device) []tailcfg.UserProfile {
	out := []tailcfg.UserProfile{s.profile(userOwner), s.profile(userTagged)}
	if self := s.selfProfile(d); self.ID > userSelf {
		out = append(out, self)
	}
	return out
}

func (s *Server) profile(id tailcfg.UserID) tailcfg.UserProfile {
	if id == userTagged {
		return tailcfg.UserProfile{ID: id, LoginName: "tagged-devices", DisplayName: "Tagged Devices"}
	}
	return tailcfg.UserProfile{ID: userOwner, LoginName: "owner@" + s.opts.Tailnet, DisplayName: "Owner"}
}

// loginURLLocked is where a person would log in. It is not served.
func (s *Server) loginURLLocked() string {
	return "http://" + s.addr.String() + "/a/" + randomHex(8)
}

// logoutLocked ends a node's login at its own wish. Ephemeral ones vanish.
func (s *Server) logoutLocked(d *device) {
	if d.Ephemeral {
		s.removeLocked(d)
		return
	}
	d.KeyExpiryDisabled = false
	d.Expires = s.now().UTC().Add(-time.Second)
	s.takeOffersLocked(d, nil)
	s.deviceChangedLocked(d)
}

// removeLocked deletes a device with all that hangs on it.
func (s *Server) removeLocked(d *device) {
	delete(s.st.Devices, d.ID)
	for _, a := range s.st.Approvals {
		delete(a, d.ID)
	}
	close(d.deleted)
	at := s.now().UTC()
	maps.DeleteFunc(s.st.Graves, func(_ string, g *grave) bool { return at.Sub(g.At) > graveLife })
	s.st.Graves[d.NodeKey.String()] = &grave{Device: d, At: at}
	s.log.Info("Removed a device", "node", d.StableID, "name", d.Label, "ephemeral", d.Ephemeral)
	s.deviceChangedLocked(d)
}
