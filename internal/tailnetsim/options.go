// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"log/slog"
	"net/netip"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// DefaultPolicy is the policy file of a tailnet that was given none, and the one that
// an empty policy file resets to: everyone reaches everyone, and every host of a
// service needs an approval.
const DefaultPolicy = `{
	// The credential's own tag, and the tag that it may give away.
	"tagOwners": {
		"tag:k8s-operator": [],
		"tag:k8s":          ["tag:k8s-operator"],
	},
	"grants": [{"src": ["*"], "dst": ["*"], "ip": ["*"]}],
}
`

// PolicyWithAutoApprover is DefaultPolicy for tailnets where hosts tagged tag:k8s
// need no approval for services of that tag.
const PolicyWithAutoApprover = `{
	// The credential's own tag, and the tag that it may give away.
	"tagOwners": {
		"tag:k8s-operator": [],
		"tag:k8s":          ["tag:k8s-operator"],
	},
	"grants": [{"src": ["*"], "dst": ["*"], "ip": ["*"]}],
	"autoApprovers": {"services": {"tag:k8s": ["tag:k8s"]}},
}
`

// An OAuthClient is a credential of the API.
type OAuthClient struct {
	ID     string
	Secret string
	// Scopes are OAuth scopes as in the API's documentation; "all" is every one.
	Scopes []string
	// Tags own the tags that the client may give to keys and services.
	Tags []string
}

// A WorkloadIdentity is a credential of the API without a secret: a client with a token of the
// issuer for the subject may exchange it for one of the API.
type WorkloadIdentity struct {
	ClientID string
	// Issuer, Audience and Subject must be those of the token, to the letter.
	Issuer, Audience, Subject string
	// Keys are the issuer's signing keys. The real API requests them from the issuer.
	Keys jose.JSONWebKeySet
	// Scopes and Tags are as an OAuthClient's.
	Scopes, Tags []string
}

// Options configure a Server. The zero value is usable: a tailnet
// tail1234.ts.net without any credential.
type Options struct {
	// Domain is the tailnet's DNS name. Default tail1234.ts.net.
	Domain string
	// Tailnet is the organisation's name, valid in API paths beside "-" and
	// Domain. Default example.com.
	Tailnet string
	// TailnetID is the tailnet's ID. Default TSimTest11CNTRL.
	TailnetID string
	// Clients are the OAuth clients that may ask for tokens.
	Clients []OAuthClient
	// WorkloadIdentities may exchange tokens of other issuers.
	WorkloadIdentities []WorkloadIdentity
	// APIKeys are API access tokens with every scope and every tag.
	APIKeys []string
	// Policy is the initial policy file in HuJSON. Default DefaultPolicy.
	Policy string
	// TokenLifetime of an OAuth token. Default one hour.
	TokenLifetime time.Duration
	// EphemeralGrace is how long an ephemeral node may be away before it is
	// removed. Default ten seconds; the real one takes up to an hour.
	EphemeralGrace time.Duration
	// OfflineGrace is how long a node whose map stream has ended still counts as online,
	// because nodes often restart streams. Default 400 ms.
	OfflineGrace time.Duration
	// AdvertiseAddr is the address of DERP and STUN that nodes receive. The default is the
	// address that the server listens on.
	AdvertiseAddr netip.Addr
	// StateFile keeps the store over restarts as JSON; empty keeps nothing.
	// Credentials are in it as hashes only, but the server's own private key
	// is in it too, so it is written for its owner alone.
	StateFile string
	// Switches are behaviours that can be changed while the simulator runs.
	Switches Switches
	// Admin serves /sim/state, /sim/faults, /sim/switches, /sim/devices and
	// /sim/services, without authentication.
	Admin bool
	// Logger gets one line a request at debug level. Default: discard.
	Logger *slog.Logger
}

func (o *Options) setDefaults() {
	if o.Domain == "" {
		o.Domain = "tail1234.ts.net"
	}
	if o.Tailnet == "" {
		o.Tailnet = "example.com"
	}
	if o.TailnetID == "" {
		o.TailnetID = defaultTailnetID
	}
	if o.Policy == "" {
		o.Policy = DefaultPolicy
	}
	o.Switches.setDefaults()
	if o.TokenLifetime == 0 {
		o.TokenLifetime = time.Hour
	}
	if o.EphemeralGrace == 0 {
		o.EphemeralGrace = 10 * time.Second
	}
	if o.OfflineGrace == 0 {
		o.OfflineGrace = 400 * time.Millisecond
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
}
