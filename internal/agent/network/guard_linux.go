// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package network

import (
	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"

	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

// Names of the guard in nftables.
const (
	guardTable = "tailscale-gateway"
	guardChain = "guard"
)

// interfaceTailscale is the name of tailscaled's interface in containerboot.
const interfaceTailscale = "tailscale0"

// ctStatusDNAT is set for connections whose destination was translated
// (linux/netfilter/nf_conntrack_common.h, IPS_DST_NAT).
const ctStatusDNAT = 1 << 5

// Guard drops packets to a target that would leave through another interface than tailscaled's:
// while tailscaled does not run, or when no device of the tailnet has the target any more, they
// would go out to the pod network. It replaces an existing guard. Answers are not affected.
func Guard() error {
	c, err := nftables.New()
	if err != nil {
		return errors.Wrap(err, "cannot open netlink")
	}
	table, chain, rule := guard()
	// Deleting a table fails if it does not exist, so it is added first.
	c.AddTable(table)
	c.DelTable(table)
	c.AddTable(table)
	c.AddChain(chain)
	c.AddRule(rule)
	return errors.Wrap(c.Flush(), "cannot write guard; the container needs the capability NET_ADMIN")
}

// guard returns the rule: ct direction original, ct status dnat, oifname !=
// tailscale0, drop.
func guard() (*nftables.Table, *nftables.Chain, *nftables.Rule) {
	accept := nftables.ChainPolicyAccept
	t := &nftables.Table{Name: guardTable, Family: nftables.TableFamilyINet}
	c := &nftables.Chain{
		Name:     guardChain,
		Table:    t,
		Type:     nftables.ChainTypeFilter,
		Hooknum:  nftables.ChainHookForward,
		Priority: nftables.ChainPriorityFilter,
		Policy:   &accept,
	}
	status := binaryutil.NativeEndian.PutUint32(ctStatusDNAT)
	zero := binaryutil.NativeEndian.PutUint32(0)
	name := make([]byte, 16)
	copy(name, interfaceTailscale)
	r := &nftables.Rule{Table: t, Chain: c, Exprs: []expr.Any{
		&expr.Ct{Key: expr.CtKeyDIRECTION, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{0}},
		&expr.Ct{Key: expr.CtKeySTATUS, Register: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: status, Xor: zero},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: zero},
		&expr.Meta{Key: expr.MetaKeyOIFNAME, Register: 1},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: name},
		&expr.Counter{},
		&expr.Verdict{Kind: expr.VerdictDrop},
	}}
	return t, c, r
}
