// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Carrier does what the agent does for egress in userspace, and nothing else: it listens on a port
// of the loopback and dials one target through tailscaled. Its cost can be measured because it is a
// separate process.
package main

import (
	"net/netip"

	"github.com/alecthomas/kong"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/egress"
	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
)

type cli struct {
	Socket string         `help:"Tailscaled's LocalAPI." required:""`
	Listen uint16         `help:"Port to listen on." required:""`
	Target netip.AddrPort `help:"Address in the tailnet." required:""`
}

func main() {
	c := &cli{}
	k := kong.Parse(c, kong.Name("carrier"), kong.Description("Carries connections into a tailnet."))
	ctx := ctrl.SetupSignalHandler()
	s := egress.NewServer(localapi.NewDialer(c.Socket).Dial, egress.NewMetrics(), logging.NewNopLogger(), func() {},
		egress.WithListen(egress.ListenAt("127.0.0.1")))
	for _, err := range s.Set(ctx, map[uint16]egress.Route{c.Listen: {Target: "target", Addr: c.Target}}) {
		k.FatalIfErrorf(err)
	}
	<-ctx.Done()
	s.Close()
}
