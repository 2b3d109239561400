// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"

	"tailscale.com/tstime"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A Feature is a part of Tailscale that a billing plan may lack.
type Feature string

// Features whose refusal was measured on a real tailnet (abn/ansible-tailscale-admin,
// docs/troubleshooting.md, "403 whose message names the billing plan"). It is an assumption
// that PostureIntegrations are refused in the same way.
const (
	LogStreaming        Feature = "log-streaming"
	NetworkFlowLogs     Feature = "network-flow-logs"
	PostureAttributes   Feature = "posture-attributes"
	PostureIntegrations Feature = "posture-integrations"
)

// A CertCondition is the condition on which control grants the certificate domain of a service
// to a host. Both conditions also require approval and a serve configuration of the service.
type CertCondition string

const (
	// CertAdvertised grants the domain once the host advertises the service. It is
	// the reading of tailscale/tailscale#20716, where an approved host that serves
	// but does not advertise waits for its domain for ever, and of
	// AlverezYari/phillips-homelab#396, where advertising ended the wait.
	CertAdvertised CertCondition = "advertised"
	// CertServed grants the domain to a host that serves, advertised or not. Tailscale's
	// operator relies on it since tailscale/tailscale#15427: it advertises a service of port
	// 443 only after the certificate exists.
	CertServed CertCondition = "served"
)

// Switches are behaviours of the real Tailscale that depend on the tailnet, on its
// plan or on timing. The zero value is a tailnet with every feature, without
// limits and without delays. Options set them at first, SetSwitches and the HTTP
// route /sim/switches later.
type Switches struct {
	// Plan maps each feature that the plan lacks to the status that calls of it
	// get, 402 or 403, with the message "feature not available on current billing
	// plan". Zero is 403.
	Plan map[Feature]int `json:"plan,omitempty"`
	// UnsyncedGroups are groups of a SCIM directory that is not synced. A policy
	// file may name them, and the API warns of each.
	UnsyncedGroups []string `json:"unsyncedGroups,omitempty"`
	// CertDomains is the condition of a service's certificate domain. Default
	// CertAdvertised, the stricter one.
	CertDomains CertCondition `json:"certDomains,omitempty"`
	// TXTDelay is how long control takes to answer a node that sets a TXT record, and to serve the
	// record. tailscale/tailscale#20823 and #10220 saw it fail for hours; no source says how long
	// it usually takes, nor that the record is served when the answer arrives. Default 0.
	TXTDelay tstime.GoDuration `json:"txtDelay,omitzero"`
	// ACME are the limits of the ACME server behind StartACME.
	ACME ACMELimits `json:"acme,omitzero"`
	// NoHTTPSCapability keeps the capability https from nodes. Their certificate domains in the DNS
	// config then are the only sign that HTTPS is on. Tailscale's own programs use either: Funnel the
	// capability (tailscale.com v1.102.5 ipn/serve.go, CheckFunnelAccess), certificates the domains.
	// No source says that control sends one without the other, nor that it never does.
	NoHTTPSCapability bool `json:"noHTTPSCapability,omitempty"`
	// HostStates are the words of a host's configured field.
	HostStates HostStates `json:"hostStates,omitzero"`
	// AutoApproverWins makes autoApprovers of the policy file approve a host that was refused by hand. No
	// document says what happens then (open).
	AutoApproverWins bool `json:"autoApproverWins,omitempty"`

	// ApprovalNeedsAdvertise makes an approval by hand reach a host only after the
	// host has withdrawn the service and advertised it again
	// (tailscale/tailscale#18821).
	ApprovalNeedsAdvertise bool `json:"approvalNeedsAdvertise,omitempty"`
	// LateDefinitions keeps control from noticing that a device advertises a service
	// which is defined only after that, until the device changes what it offers. It is an
	// assumption from reports of such hosts (tailscale/tailscale#17769, #17794).
	LateDefinitions bool `json:"lateDefinitions,omitempty"`
	// FailoverDelay is how long the addresses of a service stay with a host that
	// went away or withdrew, before control moves them to another. Tailscale's own
	// operator reckons with 15 s (tailscale.com/kube/services, services.go);
	// tailscale/tailscale#20661 reports minutes. Default 0.
	FailoverDelay tstime.GoDuration `json:"failoverDelay,omitzero"`
	// OfflineDelay is how long a device that disconnects without a word stays online, if that is longer than
	// Options.OfflineGrace: tailscale/tailscale#20661 reports about ten minutes after a power cut. Default 0.
	OfflineDelay tstime.GoDuration `json:"offlineDelay,omitzero"`
	// ClockOffset is how far the clock of Tailscale's servers is ahead of this machine's, or behind it
	// if negative: in replies, in their Date header, and for what expires. Default 0.
	ClockOffset tstime.GoDuration `json:"clockOffset,omitzero"`
	// NoPrimary are services without a primary host.
	NoPrimary NoPrimary `json:"noPrimary,omitzero"`
	// Annotations limits the annotations of services. No source publishes limits.
	Annotations AnnotationLimits `json:"annotations,omitzero"`
	// ServiceQuota is how many services the tailnet may have; 0 is any number. No
	// source publishes a limit nor the API's reply: 403 is an assumption.
	ServiceQuota int `json:"serviceQuota,omitempty"`
	// TaggedResources is how many tagged devices the plan includes; 0 is any number. Plans count them
	// (https://tailscale.com/pricing, "Up to 50 tagged resources to start"). That control refuses the
	// login of another one, with which words, and that the auth key is not used up by it, are
	// assumptions.
	TaggedResources int `json:"taggedResources,omitempty"`
	// HoldFormerIPv4 refuses the IPv4 address of a deleted service to a new one
	// with 400. It is an assumption: Tailscale promises no address to a service
	// that is created again.
	HoldFormerIPv4 bool `json:"holdFormerIPv4,omitempty"`
	// NameHold is how long the name of a deleted device is refused to a device that is
	// renamed, at most a day. A name is held for a while
	// (abn/ansible-tailscale-admin, docs/troubleshooting.md); no source says how long.
	NameHold tstime.GoDuration `json:"nameHold,omitzero"`
	// FreshClient is how calls with a new OAuth client's token fail at first.
	FreshClient FreshClient `json:"freshClient,omitzero"`
	// WholeMaps sends a whole map to each node at each change. By default control sends what
	// changed since the last response, as the real one does
	// (tailcfg.MapResponse: PeersChanged, PeersRemoved, PeersChangedPatch).
	WholeMaps bool `json:"wholeMaps,omitempty"`
	// NoServiceDetails leaves the services that a node may reach out of its capabilities, as a
	// control server that does not know the capability (tailcfg.NodeAttrPrefixServices).
	NoServiceDetails bool `json:"noServiceDetails,omitempty"`
	// Regions are the home regions of devices by their name in DNS, instead of those that they
	// report.
	Regions map[string]int `json:"regions,omitempty"`
	// Lag is how long changes take from one face of Tailscale to the other.
	Lag Lag `json:"lag,omitzero"`
	// RefuseForeignFields answers a write with 400 if it has fields that SetForeign
	// gave the object. No source says whether the API refuses fields that it returns.
	RefuseForeignFields bool `json:"refuseForeignFields,omitempty"`
	// Replies changes the bodies of replies to writes.
	Replies Replies `json:"replies,omitzero"`
	// KeepResolverSettings makes a write of addresses alone keep what a nameserver has
	// beside its address, such as useWithExitNode. No source says whether the API does
	// for an address that stays, only that the calls do not support the setting
	// (tailscale/tailscale#18981). The default, which loses more, drops it.
	KeepResolverSettings bool `json:"keepResolverSettings,omitempty"`
	// SplitDNSRemoval is what removes a domain in a PATCH: RemovalNull (OpenAPI), or
	// RemovalEmpty, an empty list alone, which is an assumption. By default both do.
	SplitDNSRemoval Removal `json:"splitDNSRemoval,omitempty"`
	// RevokedKeyStatus answers DELETE of a key that was revoked already, 404 or
	// 410. Default 404.
	RevokedKeyStatus int `json:"revokedKeyStatus,omitempty"`
}

// Lag is how long parts of Tailscale disagree after a change: no source promises that they are
// consistent, nor how soon.
type Lag struct {
	// API is how old replies of the API about devices and services may be: a reply stays the same
	// for so long after it was first given.
	API tstime.GoDuration `json:"api,omitzero"`
	// Control is how late control decides who hosts what after a change of an approval, of a service
	// or of what a host offers. The API shows the change at once.
	Control tstime.GoDuration `json:"control,omitzero"`
	// NetMap is how late nodes learn of changes, those about themselves included.
	NetMap tstime.GoDuration `json:"netMap,omitzero"`
}

// HostStates are the words of a host's configured field, and which hosts are listed. Only "ready"
// has a source, the OpenAPI document's example; the other words are assumptions, the first after the
// admin console's "Needs configuration". The console has more words, such as "Partially configured:
// has-config, config-valid" (tailscale/tailscale#17769).
type HostStates struct {
	// Ready is of a host that serves every port, advertised or withdrawn. Default ready.
	Ready string `json:"ready,omitempty"`
	// Partial is of a host that does not serve every port. Default needs-configuration.
	Partial string `json:"partial,omitempty"`
	// Approved is of a host that was approved and offers nothing yet. Default
	// needs-configuration.
	Approved string `json:"approved,omitempty"`
	// Unknown is the state of a host that has announced a change and not yet reported its
	// services. Default pending.
	Unknown string `json:"unknown,omitempty"`
	// Inactive lists hosts that do not advertise, too: those that have withdrawn, and those
	// that were approved before. The admin console shows them (tailscale/tailscale#17769,
	// #17692, #17794); that the API does is an assumption.
	Inactive bool `json:"inactive,omitempty"`
	// Documented names hosts by stableNodeID instead of nodeId.
	Documented bool `json:"documented,omitempty"`
}

// AnnotationLimits bound the annotations of a service. Zero is no limit.
type AnnotationLimits struct {
	Count      int `json:"count,omitempty"`
	KeyBytes   int `json:"keyBytes,omitempty"`
	ValueBytes int `json:"valueBytes,omitempty"`
}

// FreshClient is how calls with the token of an OAuth client that the API created
// fail until Tailscale knows it everywhere: 404 was measured
// (abn/ansible-tailscale-admin, docs/troubleshooting.md, "404"), 401 is an
// assumption. They fail while either Calls or Period is not used up.
type FreshClient struct {
	// Status of the failures, 401 or 404. Zero is none.
	Status int `json:"status,omitempty"`
	// Calls is how many calls of each new client fail.
	Calls int `json:"calls,omitempty"`
	// Period is how long after its creation a client's calls fail.
	Period tstime.GoDuration `json:"for,omitzero"`
}

func (w *Switches) setDefaults() {
	if w.CertDomains == "" {
		w.CertDomains = CertAdvertised
	}
	if w.HostStates.Partial == "" {
		w.HostStates.Partial = "needs-configuration"
	}
	if w.HostStates.Ready == "" {
		w.HostStates.Ready = stateReady
	}
	if w.HostStates.Approved == "" {
		w.HostStates.Approved = "needs-configuration"
	}
	if w.HostStates.Unknown == "" {
		w.HostStates.Unknown = "pending"
	}
	if w.RevokedKeyStatus == 0 {
		w.RevokedKeyStatus = http.StatusNotFound
	}
	w.ACME.setDefaults()
}

func (w *Switches) validate() error {
	for _, f := range slices.Sorted(maps.Keys(w.Plan)) {
		if !slices.Contains([]Feature{LogStreaming, NetworkFlowLogs, PostureAttributes, PostureIntegrations}, f) {
			return errors.Errorf("plan: unknown feature %q", f)
		}
		if st := w.Plan[f]; st != 0 && st != http.StatusForbidden && st != http.StatusPaymentRequired {
			return errors.Errorf("plan: status of %q must be 402 or 403, not %d", f, st)
		}
	}
	if w.CertDomains != CertAdvertised && w.CertDomains != CertServed {
		return errors.Errorf("certDomains: unknown condition %q", w.CertDomains)
	}
	if err := w.NoPrimary.validate(); err != nil {
		return err
	}
	if st := w.FreshClient.Status; st != 0 && st != http.StatusUnauthorized && st != http.StatusNotFound {
		return errors.Errorf("freshClient: status must be 401 or 404, not %d", st)
	}
	if w.Lag.API.Duration < 0 || w.Lag.Control.Duration < 0 || w.Lag.NetMap.Duration < 0 {
		return errors.New("lag: durations must not be negative")
	}
	if r := w.SplitDNSRemoval; r != "" && r != RemovalNull && r != RemovalEmpty {
		return errors.Errorf("splitDNSRemoval: unknown removal %q", r)
	}
	if st := w.RevokedKeyStatus; st != http.StatusNotFound && st != http.StatusGone {
		return errors.Errorf("revokedKeyStatus must be 404 or 410, not %d", st)
	}
	return w.ACME.validate()
}

// clone returns a copy that shares nothing with w.
func (w Switches) clone() Switches {
	w.Plan, w.UnsyncedGroups, w.Regions = maps.Clone(w.Plan), slices.Clone(w.UnsyncedGroups), maps.Clone(w.Regions)
	w.NoPrimary.Services = slices.Clone(w.NoPrimary.Services)
	return w
}

// Switches returns the switches as they are now.
func (s *Server) Switches() Switches {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.switches.clone()
}

// SetSwitches changes the switches. Nothing changes when it returns an error.
func (s *Server) SetSwitches(change func(w *Switches)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := s.switches.clone()
	change(&w)
	w.setDefaults()
	if err := w.validate(); err != nil {
		return err
	}
	p, err := parsePolicy(s.st.Policy, w.UnsyncedGroups)
	if err != nil {
		return errors.Wrap(err, "cannot keep the policy file")
	}
	s.switches, s.policy = w, p
	s.clockOffset.Store(int64(w.ClockOffset.Duration))
	s.changedLocked()
	return nil
}

// ParseSwitches decodes switches from JSON, refuses fields that there are not, and
// fills in the defaults.
func ParseSwitches(b []byte) (Switches, error) {
	var w Switches
	if err := decodeSwitches(b, &w); err != nil {
		return w, errors.Wrap(err, "cannot decode switches")
	}
	w.setDefaults()
	return w, w.validate()
}

func decodeSwitches(b []byte, dst *Switches) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode(dst)
}

// switchRoutes adds routes with which other processes change the switches: PUT replaces all,
// PATCH changes those in the body.
func (s *Server) switchRoutes(m *http.ServeMux) {
	set := func(w http.ResponseWriter, r *http.Request, base func(Switches) Switches) {
		// The body is read before the lock is taken.
		b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
		if err != nil {
			writeError(w, http.StatusBadRequest, "cannot read request body")
			return
		}
		err = s.SetSwitches(func(sw *Switches) {
			next := base(*sw)
			if err := decodeSwitches(b, &next); err == nil {
				*sw = next
			}
		})
		// A body that cannot be decoded changed nothing above.
		if err := errors.Join(decodeSwitches(b, &Switches{}), err); err != nil {
			writeError(w, http.StatusBadRequest, "cannot set switches: "+err.Error())
			return
		}
		writeJSON(w, http.StatusOK, s.Switches())
	}
	m.HandleFunc("GET /sim/switches", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, s.Switches()) })
	m.HandleFunc("PUT /sim/switches", func(w http.ResponseWriter, r *http.Request) {
		set(w, r, func(Switches) Switches { return Switches{} })
	})
	m.HandleFunc("PATCH /sim/switches", func(w http.ResponseWriter, r *http.Request) {
		set(w, r, func(current Switches) Switches { return current })
	})
}
