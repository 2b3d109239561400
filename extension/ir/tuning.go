// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package ir

import (
	"slices"
	"strconv"
	"strings"
)

// A Tuning holds the settings of a BackendTrafficPolicy for endpoint lists and for HTTP/2, and what
// a list needs of its cluster. Hooks do not see these settings in clusters: Envoy Gateway applies
// most of them to its endpoint lists, which hooks neither see nor use. The zero value changes
// nothing.
type Tuning struct {
	// Transport identifies the TLS of the list's cluster, as Shape.Transport does. A list has
	// endpoints only while their target wants the same: endpoints reach Envoys before changes of
	// clusters do.
	Transport string

	// HealthPort is the port of Envoy's health checks. Zero is the port of the endpoint.
	HealthPort uint32

	// PreferLocal groups endpoints by zone alone, so that Envoy finds its own zone among the
	// localities.
	PreferLocal bool

	// Zones are the weights of zones, by name. A zone that is not listed has weight 1. An
	// empty list keeps the weights of the backends.
	Zones []ZoneWeight

	// HTTP2 is a setting of clusters, and not part of a list's name.
	HTTP2 HTTP2
}

// A ZoneWeight is the weight of a zone.
type ZoneWeight struct {
	Zone   string
	Weight uint32
}

// Parts of the name of a tuned list: LIST[+tls=HASH][+health=PORT][+local][+zone=ZONE:WEIGHT]...
const (
	tuningSeparator = "+"
	tuningTransport = "tls="
	tuningHealth    = "health="
	tuningLocal     = "local"
	tuningZone      = "zone="
)

// Equal reports whether two Tunings have the same settings.
func (t Tuning) Equal(o Tuning) bool {
	return t.Transport == o.Transport && t.HealthPort == o.HealthPort && t.PreferLocal == o.PreferLocal && slices.Equal(t.Zones, o.Zones) && t.HTTP2 == o.HTTP2
}

// listed returns the part of a Tuning that policies set and names of lists have: the preference of
// near zones comes from clusters.
func (t Tuning) listed() string { return Tuning{HealthPort: t.HealthPort, Zones: t.Zones}.Name("") }

// FromPolicy reports whether HasTuning depends on policies for this Tuning: it has a setting that only a
// policy sets.
func (t Tuning) FromPolicy() bool { return t.listed() != "" }

// Name returns the name of the endpoint list with this Tuning. The Tuning is part of the
// name, so that routes with different Tunings of one target have different lists.
func (t Tuning) Name(list string) string {
	parts := []string{list}
	if t.Transport != "" {
		parts = append(parts, tuningTransport+t.Transport)
	}
	if t.HealthPort != 0 {
		parts = append(parts, tuningHealth+strconv.FormatUint(uint64(t.HealthPort), 10))
	}
	if t.PreferLocal {
		parts = append(parts, tuningLocal)
	}
	for _, z := range t.Zones {
		parts = append(parts, tuningZone+z.Zone+":"+strconv.FormatUint(uint64(z.Weight), 10))
	}
	return strings.Join(parts, tuningSeparator)
}

// ParseTuning is the inverse of Name. It returns false for any other name.
func ParseTuning(name string) (list string, t Tuning, ok bool) {
	list, rest, tuned := strings.Cut(name, tuningSeparator)
	if !tuned {
		return list, Tuning{}, true
	}
	for p := range strings.SplitSeq(rest, tuningSeparator) {
		if transport, found := strings.CutPrefix(p, tuningTransport); found && transport != "" {
			t.Transport = transport
			continue
		}
		if port, found := strings.CutPrefix(p, tuningHealth); found {
			n, err := strconv.ParseUint(port, 10, 16)
			if err != nil {
				return "", Tuning{}, false
			}
			t.HealthPort = uint32(n)
			continue
		}
		if zone, found := strings.CutPrefix(p, tuningZone); found {
			zone, weight, _ := strings.Cut(zone, ":")
			n, err := strconv.ParseUint(weight, 10, 32)
			if err != nil {
				return "", Tuning{}, false
			}
			t.Zones = append(t.Zones, ZoneWeight{Zone: zone, Weight: uint32(n)})
			continue
		}
		if p != tuningLocal {
			return "", Tuning{}, false
		}
		t.PreferLocal = true
	}
	return list, t, true
}
