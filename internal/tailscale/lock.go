// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"crypto/ed25519"
	"encoding/base64"
	"strings"

	"tailscale.com/tka"
	"tailscale.com/types/key"
	"tailscale.com/types/tkatype"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A LockSigner signs auth keys with a trusted key of a tailnet's lock, so that nodes which log in
// with them are trusted without a person's signature.
type LockSigner struct{ private key.NLPrivate }

// ParseLockSigner parses a private key of tailnet lock, nlpriv: followed by hexadecimal digits. The
// error does not contain the text.
func ParseLockSigner(text string) (*LockSigner, error) {
	s := &LockSigner{}
	if err := s.private.UnmarshalText([]byte(strings.TrimSpace(text))); err != nil || s.private.IsZero() {
		return nil, errors.New("want nlpriv: followed by the 128 hexadecimal digits of an Ed25519 private key")
	}
	// Signatures of a key whose halves do not match lock nodes out, and several give the private half
	// away. The last half of the text is the public key (golang.org/x/crypto/ed25519).
	hash := tkatype.NKSSigHash{}
	sig, err := s.private.SignNKS(hash)
	if err != nil || !ed25519.Verify(s.private.Public().Verifier(), hash[:], sig) {
		return nil, errors.New("want nlpriv: followed by the private and the public half of one Ed25519 key; its halves do not match")
	}
	return s, nil
}

// String returns the public key, as tailscale lock status shows it. It keeps the private key out of
// logs.
func (s *LockSigner) String() string { return s.private.Public().CLIString() }

// GoString returns the result of String.
func (s *LockSigner) GoString() string { return s.String() }

// WrapAuthKey returns an auth key with a signature for the node that logs in with it: the key, --TL,
// the signature of a new key pair, and that pair's private key, with which the node signs its own
// node key. It does what TailnetLockWrapPreauthKey of tailscaled does, which needs a node that is
// locked itself (tailscale.com v1.102.5, ipn/ipnlocal/tailnet-lock.go; tka.DecodeWrappedAuthkey).
func (s *LockSigner) WrapAuthKey(authKey string) (string, error) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return "", errors.Wrap(err, "cannot generate a key pair")
	}
	sig := tka.NodeKeySignature{SigKind: tka.SigCredential, KeyID: s.private.KeyID(), WrappingPubkey: public}
	if sig.Signature, err = s.private.SignNKS(sig.SigHash()); err != nil {
		return "", errors.Wrap(err, "cannot sign")
	}
	encode := base64.RawStdEncoding.EncodeToString
	return authKey + "--TL" + encode(sig.Serialize()) + "-" + encode(private), nil
}

// Signing returns a client that shares everything with this one and wraps the auth keys that it
// creates. A nil signer wraps none.
func (c *Client) Signing(s *LockSigner) *Client {
	if s == nil {
		return c
	}
	out := *c.core
	out.signer = s
	return &Client{&out}
}

// sign wraps the secret of a new key, if the client has a signer.
func (c KeysResource) sign(k *Key) error {
	if c.signer == nil {
		return nil
	}
	wrapped, err := c.signer.WrapAuthKey(k.Key)
	if err != nil {
		return errors.Wrap(err, "cannot wrap an auth key for tailnet lock")
	}
	k.Key = wrapped
	return nil
}
