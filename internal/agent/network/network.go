// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package network prepares a pod's network namespace for Kernel networking, before tailscaled
// runs: it enables packet forwarding in the kernel, and guards packets on their way into the
// tailnet. Containerboot sets up the rules that forward packets.
package network

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// ProcSys is the directory of the kernel's settings.
const ProcSys = "/proc/sys"

// Settings that enable packet forwarding.
const (
	settingIPv4 = "net/ipv4/ip_forward"
	settingIPv6 = "net/ipv6/conf/all/forwarding"
)

// ErrIPv6 reports that only IPv4 packets are forwarded.
var ErrIPv6 = errors.New("cannot have the kernel forward IPv6")

// EnableForwarding enables packet forwarding in the kernel. root is ProcSys except in tests.
// Settings that are already on are not written, so that they need no privilege. The error is
// ErrIPv6 when IPv4 is forwarded and IPv6 is not; a kernel without IPv6 is no error.
func EnableForwarding(root string) error {
	if err := enable(filepath.Join(root, settingIPv4)); err != nil {
		return errors.Wrap(err, "cannot have the kernel forward IPv4; the container must be privileged, or the pod have the sysctl net.ipv4.ip_forward=1")
	}
	if err := enable(filepath.Join(root, settingIPv6)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(ErrIPv6, err)
	}
	return nil
}

func enable(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return errors.Wrap(err, "cannot read setting")
	}
	if string(bytes.TrimSpace(b)) == "1" {
		return nil
	}
	// The file already exists; its mode does not matter.
	return errors.Wrap(os.WriteFile(path, []byte("1"), 0o600), "cannot write setting")
}

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
