// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"tailscale.com/tailcfg"
	"tailscale.com/tka"
	"tailscale.com/types/key"
	"tailscale.com/types/logger"
	"tailscale.com/types/tkatype"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// EnableLock enables tailnet lock, as tailscale lock init on a node does (tailscale.com v1.102.5,
// ipn/ipnlocal/tailnet-lock.go: TailnetLockInit). The lock trusts the signer's key, which signs all
// devices. It is for tests without a node.
func (s *Server) EnableLock(signer key.NLPrivate) error {
	_, genesis, err := tka.Create(tka.ChonkMem(), tka.State{
		Keys: []tka.Key{{Kind: tka.Key25519, Votes: 1, Public: signer.Public().Verifier()}},
		// A chain must have a value, and nobody has its secret.
		DisablementValues: [][]byte{tka.DisablementKDF([]byte(randomHex(16)))},
	}, signer)
	if err != nil {
		return errors.Wrap(err, "cannot create a genesis")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	res, err := s.beginLockLocked(&tailcfg.TKAInitBeginRequest{GenesisAUM: genesis.Serialize()})
	if err != nil {
		return err
	}
	sigs := map[tailcfg.NodeID]tkatype.MarshaledSignature{}
	for _, n := range res.NeedSignatures {
		if sigs[n.NodeID], err = signNode(signer, n); err != nil {
			return err
		}
	}
	_, err = s.finishLockLocked(&tailcfg.TKAInitFinishRequest{Signatures: sigs})
	return err
}

// SignDevice signs a device's node key, as tailscale lock sign does.
func (s *Server) SignDevice(nodeID string, signer key.NLPrivate) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.st.device(nodeID)
	if d == nil {
		return errors.Errorf("cannot find device %q", nodeID)
	}
	sig, err := signNode(signer, d.signInfo())
	if err != nil {
		return err
	}
	_, err = s.signLockLocked(&tailcfg.TKASubmitSignatureRequest{Signature: sig})
	return err
}

// signNode signs a node key (tailscale.com v1.102.5, ipn/ipnlocal/tailnet-lock.go: signNodeKey).
func signNode(signer key.NLPrivate, n tailcfg.TKASignInfo) (tkatype.MarshaledSignature, error) {
	node, err := n.NodePublic.MarshalBinary()
	if err != nil {
		return nil, errors.Wrap(err, "cannot encode the node key")
	}
	sig := tka.NodeKeySignature{SigKind: tka.SigDirect, KeyID: signer.KeyID(), Pubkey: node, WrappingPubkey: n.RotationPubkey}
	sig.Signature, err = signer.SignNKS(sig.SigHash())
	return sig.Serialize(), errors.Wrap(err, "cannot sign the node key")
}

// unwrapAuthKey returns an auth key as control gets it, and a signature of the node key if the key is
// wrapped (tailscale.com v1.102.5, control/controlclient/direct.go: doLogin).
func unwrapAuthKey(authKey string, node key.NodePublic) (string, tkatype.MarshaledSignature, error) {
	plain, wrapped, credential, private := tka.DecodeWrappedAuthkey(authKey, logger.Discard)
	if !wrapped {
		return plain, nil, nil
	}
	sig, err := tka.SignByCredential(private, credential, node)
	return plain, sig, errors.Wrap(err, "cannot sign the node key with the auth key")
}
