// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"bytes"
	"maps"
	"net/http"
	"slices"

	"tailscale.com/tailcfg"
	"tailscale.com/tka"
	"tailscale.com/types/key"
	"tailscale.com/types/tkatype"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// Tailnet lock: nodes keep a chain of signed updates that says which keys may sign node keys, and
// drop peers without a valid signature themselves. Control keeps a copy of the chain, passes updates
// and signatures on, and can forge neither (tailscale.com v1.102.5, ipn/ipnlocal/tailnet-lock.go, and
// its tests for what control answers; tailcfg/tka.go for the messages;
// https://tailscale.com/kb/1226/tailnet-lock). A node that has no signature still registers: its peers
// drop it (tkaFilterNetmapLocked), and it warns that it is locked out until it is signed
// (health/healthmsg/healthmsg.go: LockedOut).

// lockState is the part of the lock that outlives a restart of the simulator.
type lockState struct {
	// Updates is the chain, parents first. It begins with the genesis.
	Updates []tkatype.MarshaledAUM `json:"updates"`
	// DisablementSecret proves to nodes that the lock is disabled. Empty while it is enabled.
	DisablementSecret []byte `json:"disablementSecret,omitempty"`
}

// A chain is the lock's chain as an authority reads it.
type chain struct {
	*tka.Authority

	storage *tka.Mem
}

// newChain verifies updates, and returns their chain.
func newChain(updates []tkatype.MarshaledAUM) (*chain, error) {
	aums, err := unserialize(updates)
	if err != nil {
		return nil, err
	}
	if len(aums) == 0 {
		return nil, errors.New("the chain is empty")
	}
	storage := tka.ChonkMem()
	a, err := tka.Bootstrap(storage, aums[0])
	if err != nil {
		return nil, errors.Wrap(err, "cannot use the genesis")
	}
	c := &chain{Authority: a, storage: storage}
	if len(aums) > 1 {
		err = c.Inform(storage, aums[1:])
	}
	return c, errors.Wrap(err, "cannot verify updates")
}

func unserialize(updates []tkatype.MarshaledAUM) ([]tka.AUM, error) {
	out := make([]tka.AUM, len(updates))
	for i, u := range updates {
		if err := out[i].Unserialize(u); err != nil {
			return nil, errors.Wrapf(err, "cannot decode update %d", i)
		}
	}
	return out, nil
}

// info returns what network maps say of the lock: nil if there never was one.
func (l *lockState) info(c *chain) *tailcfg.TKAInfo {
	switch {
	case c != nil:
		return &tailcfg.TKAInfo{Head: c.Head().String()}
	case l != nil:
		return &tailcfg.TKAInfo{Disabled: true}
	}
	return nil
}

// lockChangedLocked publishes the lock's state.
func (s *Server) lockChangedLocked() {
	s.lockInfo = s.st.Lock.info(s.chain)
	s.changedLocked()
}

// loadLock verifies the chain of the state file.
func (s *Server) loadLock() error {
	l := s.st.Lock
	if l != nil && len(l.DisablementSecret) == 0 {
		c, err := newChain(l.Updates)
		if err != nil {
			return errors.Wrap(err, "cannot use the state file's tailnet lock")
		}
		s.chain = c
	}
	s.lockInfo = l.info(s.chain)
	return nil
}

// lockErrorLocked returns why the lock does not trust a device, or "". The text is the library's:
// the API's own is unknown.
func (s *Server) lockErrorLocked(d *device) string {
	if s.chain == nil {
		return ""
	}
	if len(d.KeySignature) == 0 {
		return "the node key has no signature"
	}
	if err := s.chain.NodeKeyAuthorized(d.NodeKey, d.KeySignature); err != nil {
		return err.Error()
	}
	return ""
}

// needsSignatureLocked returns the signature that a node must sign again for its new node key, or
// nil. It registers again with the result (RegisterResponse.NodeKeySignature).
func (s *Server) needsSignatureLocked(req *tailcfg.RegisterRequest) tkatype.MarshaledSignature {
	old := s.st.deviceByNodeKey(req.OldNodeKey)
	if s.chain == nil || old == nil || len(req.NodeKeySignature) > 0 {
		return nil
	}
	return old.KeySignature
}

// lockRoutes adds the routes of the lock. Their requests are GETs with a body.
func (s *Server) lockRoutes(m *http.ServeMux) {
	m.HandleFunc("GET /machine/tka/init/begin", lockHandler(s, s.beginLockLocked))
	m.HandleFunc("GET /machine/tka/init/finish", lockHandler(s, s.finishLockLocked))
	m.HandleFunc("GET /machine/tka/bootstrap", lockHandler(s, s.bootstrapLockLocked))
	m.HandleFunc("GET /machine/tka/sync/offer", lockHandler(s, s.offerLockLocked))
	m.HandleFunc("GET /machine/tka/sync/send", lockHandler(s, s.sendLockLocked))
	m.HandleFunc("GET /machine/tka/sign", lockHandler(s, s.signLockLocked))
	m.HandleFunc("GET /machine/tka/affected-sigs", lockHandler(s, s.affectedSignaturesLocked))
	m.HandleFunc("GET /machine/tka/disable", lockHandler(s, s.disableLockLocked))
}

var errNoLock = errors.New("the tailnet has no lock")

// lockHandler serves a request of a node with answer, which runs under the server's lock.
func lockHandler[Req, Res any](s *Server, answer func(*Req) (*Res, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		// All requests name the node that sends them.
		sender := &struct{ NodeKey key.NodePublic }{}
		req := new(Req)
		if !readRequest(w, r, sender, req) {
			return
		}
		s.mu.Lock()
		d := s.st.deviceByNodeKey(sender.NodeKey)
		if d == nil || d.Machine != machineOf(r) {
			s.mu.Unlock()
			http.Error(w, "node not found", http.StatusNotFound)
			return
		}
		res, err := answer(req)
		s.mu.Unlock()
		s.log.Info("Got a request about tailnet lock", "path", r.URL.Path, "node", d.StableID, "refused", err)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		writeJSON(w, http.StatusOK, res)
	}
}

// beginLockLocked keeps the genesis of a lock, and asks for signatures of all nodes.
func (s *Server) beginLockLocked(req *tailcfg.TKAInitBeginRequest) (*tailcfg.TKAInitBeginResponse, error) {
	if s.chain != nil {
		return nil, errors.New("the tailnet has a lock")
	}
	if _, err := newChain([]tkatype.MarshaledAUM{req.GenesisAUM}); err != nil {
		return nil, err
	}
	s.genesis = req.GenesisAUM
	res := &tailcfg.TKAInitBeginResponse{}
	for _, d := range s.st.Devices {
		res.NeedSignatures = append(res.NeedSignatures, d.signInfo())
	}
	return res, nil
}

// signInfo returns what a signature of the device's node key has.
func (d *device) signInfo() tailcfg.TKASignInfo {
	i := tailcfg.TKASignInfo{NodeID: tailcfg.NodeID(d.ID), NodePublic: d.NodeKey}
	if !d.LockKey.IsZero() {
		i.RotationPubkey = d.LockKey.Verifier()
	}
	return i
}

// finishLockLocked enables the lock, if all nodes are signed.
func (s *Server) finishLockLocked(req *tailcfg.TKAInitFinishRequest) (*tailcfg.TKAInitFinishResponse, error) {
	if len(s.genesis) == 0 {
		return nil, errors.New("the lock was not begun")
	}
	l := &lockState{Updates: []tkatype.MarshaledAUM{s.genesis}}
	c, err := newChain(l.Updates)
	if err != nil {
		return nil, err
	}
	for id, d := range s.st.Devices {
		if err := c.NodeKeyAuthorized(d.NodeKey, req.Signatures[tailcfg.NodeID(id)]); err != nil {
			return nil, errors.Wrapf(err, "cannot use the signature of node %d", id)
		}
	}
	for id, d := range s.st.Devices {
		d.KeySignature = req.Signatures[tailcfg.NodeID(id)]
	}
	s.st.Lock, s.chain, s.genesis = l, c, nil
	s.lockChangedLocked()
	return &tailcfg.TKAInitFinishResponse{}, nil
}

// bootstrapLockLocked returns what a node needs to enable the lock, or to disable it.
func (s *Server) bootstrapLockLocked(req *tailcfg.TKABootstrapRequest) (*tailcfg.TKABootstrapResponse, error) {
	l := s.st.Lock
	switch {
	case l == nil:
		return nil, errNoLock
	case s.chain == nil:
		return &tailcfg.TKABootstrapResponse{DisablementSecret: l.DisablementSecret}, nil
	case req.Head != "":
		return &tailcfg.TKABootstrapResponse{}, nil
	}
	return &tailcfg.TKABootstrapResponse{GenesisAUM: l.Updates[0]}, nil
}

// offerLockLocked returns the updates that a node lacks.
func (s *Server) offerLockLocked(req *tailcfg.TKASyncOfferRequest) (*tailcfg.TKASyncOfferResponse, error) {
	if s.chain == nil {
		return nil, errNoLock
	}
	theirs, err := tka.ToSyncOffer(req.Head, req.Ancestors)
	if err != nil {
		return nil, errors.Wrap(err, "cannot decode the offer")
	}
	missing, err := s.chain.MissingAUMs(s.chain.storage, theirs)
	if err != nil {
		return nil, errors.Wrap(err, "cannot find missing updates")
	}
	ours, err := s.chain.SyncOffer(s.chain.storage)
	if err != nil {
		return nil, errors.Wrap(err, "cannot make an offer")
	}
	res := &tailcfg.TKASyncOfferResponse{}
	if res.Head, res.Ancestors, err = tka.FromSyncOffer(ours); err != nil {
		return nil, errors.Wrap(err, "cannot encode the offer")
	}
	for _, a := range missing {
		res.MissingAUMs = append(res.MissingAUMs, a.Serialize())
	}
	return res, nil
}

// sendLockLocked takes updates of a node.
func (s *Server) sendLockLocked(req *tailcfg.TKASyncSendRequest) (*tailcfg.TKASyncSendResponse, error) {
	if s.chain == nil {
		return nil, errNoLock
	}
	aums, err := unserialize(req.MissingAUMs)
	if err != nil {
		return nil, err
	}
	head := s.chain.Head()
	for i, a := range aums {
		if _, err := s.chain.storage.AUM(a.Hash()); err == nil {
			continue
		}
		if err := s.chain.Inform(s.chain.storage, []tka.AUM{a}); err != nil {
			return nil, errors.Wrapf(err, "cannot use update %d", i)
		}
		s.st.Lock.Updates = append(s.st.Lock.Updates, req.MissingAUMs[i])
	}
	if s.chain.Head() != head {
		s.lockChangedLocked()
	}
	return &tailcfg.TKASyncSendResponse{Head: s.chain.Head().String()}, nil
}

// signLockLocked takes the signature of a node key.
func (s *Server) signLockLocked(req *tailcfg.TKASubmitSignatureRequest) (*tailcfg.TKASubmitSignatureResponse, error) {
	if s.chain == nil {
		return nil, errNoLock
	}
	sig := &tka.NodeKeySignature{}
	if err := sig.Unserialize(req.Signature); err != nil {
		return nil, errors.Wrap(err, "cannot decode the signature")
	}
	var node key.NodePublic
	if err := node.UnmarshalBinary(sig.Pubkey); err != nil {
		return nil, errors.Wrap(err, "cannot decode the signed node key")
	}
	d := s.st.deviceByNodeKey(node)
	if d == nil {
		return nil, errors.New("no node has the signed key")
	}
	if err := s.chain.NodeKeyAuthorized(node, req.Signature); err != nil {
		return nil, errors.Wrap(err, "cannot use the signature")
	}
	d.KeySignature = req.Signature
	s.deviceChangedLocked(d)
	return &tailcfg.TKASubmitSignatureResponse{}, nil
}

// affectedSignaturesLocked returns the valid signatures that a trusted key has made, or an auth key
// that it has wrapped: tailscale lock remove signs these nodes again first, and refuses an answer with
// any other signature (tailscale.com v1.102.5, ipn/ipnlocal/tailnet-lock.go: TailnetLockAffectedSigs;
// cmd/tailscale/cli/tailnet-lock.go: runTailnetLockRemove).
func (s *Server) affectedSignaturesLocked(req *tailcfg.TKASignaturesUsingKeyRequest) (*tailcfg.TKASignaturesUsingKeyResponse, error) {
	if s.chain == nil {
		return nil, errNoLock
	}
	res := &tailcfg.TKASignaturesUsingKeyResponse{}
	for _, id := range slices.Sorted(maps.Keys(s.st.Devices)) {
		d, sig := s.st.Devices[id], &tka.NodeKeySignature{}
		if s.lockErrorLocked(d) != "" || sig.Unserialize(d.KeySignature) != nil {
			continue
		}
		if signer, err := sig.UnverifiedAuthorizingKeyID(); err == nil && bytes.Equal(signer, req.KeyID) {
			res.Signatures = append(res.Signatures, d.KeySignature)
		}
	}
	return res, nil
}

// disableLockLocked disables the lock, if the secret is right.
func (s *Server) disableLockLocked(req *tailcfg.TKADisableRequest) (*tailcfg.TKADisableResponse, error) {
	if s.chain == nil {
		return nil, errNoLock
	}
	if !s.chain.ValidDisablement(req.DisablementSecret) {
		return nil, errors.New("the disablement secret is wrong")
	}
	s.st.Lock.DisablementSecret, s.chain = req.DisablementSecret, nil
	s.lockChangedLocked()
	return &tailcfg.TKADisableResponse{}, nil
}
