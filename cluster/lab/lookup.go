// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

type lookupCmd struct {
	Name string `arg:"" help:"Name to resolve."`
	Type string `default:"address" enum:"address,SRV" help:"Records to look up: addresses of either family (address), or ports with their hosts (SRV)."`
}

// Run prints a record a line: an address, or a port and a host.
func (c *lookupCmd) Run(r runtime) error {
	p, err := planned(r)
	if err != nil {
		return err
	}
	// The final dot keeps search domains away.
	name := strings.TrimSuffix(c.Name, ".") + "."
	if c.Type == "SRV" {
		_, records, err := resolver(p).LookupSRV(r, "", "", name)
		if err != nil {
			return errors.Wrapf(err, "cannot look up SRV records of %q", c.Name)
		}
		for _, s := range records {
			fmt.Println(s.Port, strings.TrimSuffix(s.Target, "."))
		}
		return nil
	}
	addresses, err := resolver(p).LookupHost(r, name)
	if err != nil {
		return errors.Wrapf(err, "cannot look up addresses of %q", c.Name)
	}
	for _, a := range addresses {
		fmt.Println(a)
	}
	return nil
}
