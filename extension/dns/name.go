// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"net"
	"slices"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
)

// A name holds the state of a DNS name.
type name struct {
	host string

	// addresses that were set last.
	addresses []string

	// gone reports that the last look-up found no address.
	gone bool

	// failing reports that the last look-up failed. It is logged when that begins and when
	// it ends.
	failing bool
}

// update processes the result of a look-up, and sets the addresses if they changed. It
// returns false if another look-up should follow soon: the known addresses stay in use while
// no server answers, and until two look-ups in a row have found none, because a server that
// has just started may not know its names yet.
func (n *name) update(h Hosts, addresses []string, err error, log logging.Logger) bool {
	var dns *net.DNSError
	missing := err == nil && len(addresses) == 0 || errors.As(err, &dns) && dns.IsNotFound
	switch {
	case missing && (n.gone || len(n.addresses) == 0):
		n.fails(log, errors.New("it has none"))
		n.set(h, nil)
	case missing:
		n.gone = true
		return false
	case err != nil:
		n.fails(log, err)
		return false
	default:
		if n.failing {
			n.failing = false
			log.Info("Found the addresses of a backend's name again", "host", n.host)
		}
		n.set(h, addresses)
	}
	n.gone = missing
	return !missing
}

// set sets the addresses if they changed.
func (n *name) set(h Hosts, addresses []string) {
	if slices.Equal(n.addresses, addresses) {
		return
	}
	n.addresses = addresses
	h.SetHost(n.host, addresses)
}

// fails logs the first failure in a row.
func (n *name) fails(log logging.Logger, err error) {
	if !n.failing {
		log.Info("Cannot find the addresses of a backend's name, and will try again", "host", n.host, "in-use", n.addresses, "error", err)
	}
	n.failing = true
}
