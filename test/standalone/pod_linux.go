// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// drop drops the packets that arrive by a link.
func drop(link string) error {
	c, err := nftables.New()
	if err != nil {
		return errors.Wrap(err, "cannot connect to nftables")
	}
	name := make([]byte, unix.IFNAMSIZ)
	copy(name, link)
	t := c.AddTable(dropTable(link))
	chain := c.AddChain(&nftables.Chain{Name: "input", Table: t, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookInput, Priority: nftables.ChainPriorityFilter})
	c.AddRule(&nftables.Rule{Table: t, Chain: chain, Exprs: []expr.Any{
		&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: name},
		&expr.Verdict{Kind: expr.VerdictDrop},
	}})
	return errors.Wrap(c.Flush(), "cannot drop packets")
}

func dropTable(link string) *nftables.Table {
	return &nftables.Table{Name: "drop-" + link, Family: nftables.TableFamilyINet}
}

func pass(link string) error {
	c, err := nftables.New()
	if err != nil {
		return errors.Wrap(err, "cannot connect to nftables")
	}
	c.DelTable(dropTable(link))
	return errors.Wrap(c.Flush(), "cannot let packets pass")
}
