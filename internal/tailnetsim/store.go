// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"tailscale.com/net/tsaddr"
	"tailscale.com/tailcfg"
	"tailscale.com/types/key"
	"tailscale.com/types/tkatype"
	"tailscale.com/util/dnsname"
)

// state is everything that outlives a restart of the simulator. Server.mu
// guards it and all that it points to.
type state struct {
	NoiseKey   key.MachinePrivate        `json:"noiseKey"`
	LegacyKey  key.MachinePrivate        `json:"legacyKey"`
	LastNodeID int64                     `json:"lastNodeID"`
	LastSvcIP  uint32                    `json:"lastServiceIP"`
	Devices    map[int64]*device         `json:"devices"`
	Keys       map[string]*authKey       `json:"keys"`
	Services   map[string]*service       `json:"services"`
	Approvals  map[string]map[int64]bool `json:"approvals"`
	// FormerAddrs are the IPv4 addresses of deleted services.
	FormerAddrs map[string]bool   `json:"formerAddrs,omitempty"`
	Tokens      map[string]*token `json:"tokens"`
	// Graves are deleted devices by node key: a node that was away when it was
	// deleted learns of it when it comes back.
	Graves map[string]*grave `json:"graves"`
	Policy string            `json:"policy"`
	// TXT are the records that nodes have set, by name.
	TXT map[string][]string `json:"txt"`
	DNS dnsSettings         `json:"dns"`
	// Lock is nil if the tailnet never had one.
	Lock     *lockState          `json:"lock,omitempty"`
	Settings map[string]any      `json:"settings"`
	Contacts map[string]*contact `json:"contacts"`

	Webhooks    map[string]*webhook            `json:"webhooks"`
	Credentials map[string]*trustCredential    `json:"credentials"`
	Logstreams  map[string]*keptLogstream      `json:"logstreams"`
	Postures    map[string]*postureIntegration `json:"postures"`
	Tailnets    []apiTailnet                   `json:"tailnets,omitempty"`
	ExternalIDs map[string]*externalAWSID      `json:"externalIDs,omitempty"`
}

// graveLife is how long a deleted device is remembered.
const graveLife = 24 * time.Hour

type grave struct {
	Device *device   `json:"device"`
	At     time.Time `json:"at"`
}

// A device is a node of the tailnet.
type device struct {
	ID       int64                `json:"id"`
	StableID tailcfg.StableNodeID `json:"stableID"`
	Machine  key.MachinePublic    `json:"machine"`
	NodeKey  key.NodePublic       `json:"nodeKey"`
	// LockKey signs the node's next node key. KeySignature is the signature of its node key.
	LockKey           key.NLPublic               `json:"lockKey,omitzero"`
	KeySignature      tkatype.MarshaledSignature `json:"keySignature,omitempty"`
	DiscoKey          key.DiscoPublic            `json:"discoKey"`
	Endpoints         []netip.AddrPort           `json:"endpoints"`
	HomeDERP          int                        `json:"homeDERP"`
	Cap               tailcfg.CapabilityVersion  `json:"cap"`
	Hostinfo          *tailcfg.Hostinfo          `json:"hostinfo"`
	Label             string                     `json:"label"`
	LabelPinned       bool                       `json:"labelPinned"`
	Tags              []string                   `json:"tags"`
	Ephemeral         bool                       `json:"ephemeral"`
	Authorized        bool                       `json:"authorized"`
	KeyExpiryDisabled bool                       `json:"keyExpiryDisabled"`
	Expires           time.Time                  `json:"expires"`
	Created           time.Time                  `json:"created"`
	LastSeen          time.Time                  `json:"lastSeen"`
	IPv4              netip.Addr                 `json:"ipv4"`
	IPv6              netip.Addr                 `json:"ipv6"`
	EnabledRoutes     []string                   `json:"enabledRoutes"`
	// Attributes are custom posture attributes by key.
	Attributes map[string]attribute `json:"attributes"`
	Facts      DeviceFacts          `json:"facts"`

	// online is whether a map stream is open or ended just now.
	online bool
	// session is the open map stream, or nil.
	session *session
	// offers are the services that the node last reported.
	offers map[string]*tailcfg.VIPService
	// heard is the hash of the services that the node last reported.
	heard string
	// unheard are services of whose approval the node has not been notified.
	unheard map[string]bool
	// unnoticed are services that were defined after the node advertised them.
	unnoticed map[string]bool
	// asking is whether a goroutine is asking the node for its offers.
	asking bool
	// deleted is closed when the device is deleted.
	deleted chan struct{}
}

func newState() *state {
	st := &state{NoiseKey: key.NewMachine(), LegacyKey: key.NewMachine()}
	st.fill()
	return st
}

// fill initializes absent parts of a decoded snapshot.
func (st *state) fill() {
	if st.Devices == nil {
		st.Devices = map[int64]*device{}
	}
	if st.Keys == nil {
		st.Keys = map[string]*authKey{}
	}
	if st.Services == nil {
		st.Services = map[string]*service{}
	}
	if st.Approvals == nil {
		st.Approvals = map[string]map[int64]bool{}
	}
	if st.FormerAddrs == nil {
		st.FormerAddrs = map[string]bool{}
	}
	if st.Tokens == nil {
		st.Tokens = map[string]*token{}
	}
	if st.Graves == nil {
		st.Graves = map[string]*grave{}
	}
	if st.TXT == nil {
		st.TXT = map[string][]string{}
	}
	settings := defaultSettings()
	maps.Copy(settings, st.Settings)
	st.Settings = settings
	if st.Contacts == nil {
		st.Contacts = defaultContacts()
	}
	if st.Webhooks == nil {
		st.Webhooks = map[string]*webhook{}
	}
	if st.Credentials == nil {
		st.Credentials = map[string]*trustCredential{}
	}
	if st.Logstreams == nil {
		st.Logstreams = map[string]*keptLogstream{}
	}
	if st.Postures == nil {
		st.Postures = map[string]*postureIntegration{}
	}
	if st.ExternalIDs == nil {
		st.ExternalIDs = map[string]*externalAWSID{}
	}
	if st.DNS.SplitDNS == nil {
		st.DNS.SplitDNS = map[string][]dnsResolver{}
	}
	for _, d := range st.Devices {
		d.deleted, d.unheard = make(chan struct{}), map[string]bool{}
	}
}

// expired reports whether the device must log in again.
func (d *device) expired(at time.Time) bool {
	return !d.Expires.IsZero() && !d.KeyExpiryDisabled && d.Expires.Before(at)
}

// addDevice adds a new device with unique addresses.
func (st *state) addDevice(at time.Time) *device {
	st.LastNodeID++
	id := st.LastNodeID
	// 100.64.0.0/12 is for devices and 100.96.0.0/12 for services, so the two
	// never meet. Byte 3 and 4 skip .0 and .255 for readability only.
	a := netip.AddrFrom4([4]byte{100, 64 + byte(id/(254*254)%16), byte(id / 254 % 254), byte(id%254) + 1})
	d := &device{
		ID:       id,
		StableID: tailcfg.StableNodeID("n" + strings.ToUpper(randomHex(6)) + "CNTRL"),
		Created:  at.UTC().Truncate(time.Second),
		LastSeen: at.UTC(),
		IPv4:     a,
		IPv6:     tsaddr.Tailscale4To6(a),
		deleted:  make(chan struct{}),
		unheard:  map[string]bool{},
	}
	st.Devices[id] = d
	return d
}

// device finds a device by its node id or its legacy numeric id.
func (st *state) device(id string) *device {
	if n, err := strconv.ParseInt(id, 10, 64); err == nil {
		return st.Devices[n]
	}
	for _, d := range st.Devices {
		if string(d.StableID) == id {
			return d
		}
	}
	return nil
}

func (st *state) deviceByNodeKey(k key.NodePublic) *device {
	if k.IsZero() {
		return nil
	}
	for _, d := range st.Devices {
		if d.NodeKey == k {
			return d
		}
	}
	return nil
}

func (st *state) deviceByMachine(k key.MachinePublic) *device {
	for _, d := range st.Devices {
		if d.Machine == k {
			return d
		}
	}
	return nil
}

// freeLabel returns the DNS label for a hostname: the second "web" is "web-1".
// Devices and services share the tailnet's domain.
func (st *state) freeLabel(hostname string, self *device) string {
	base := dnsname.SanitizeHostname(hostname)
	if base == "" {
		base = "unnamed"
	}
	for i := 0; ; i++ {
		l := base
		if i > 0 {
			l = base + "-" + strconv.Itoa(i)
		}
		if !st.labelTaken(l, self) {
			return l
		}
	}
}

func (st *state) labelTaken(l string, self *device) bool {
	if st.Services["svc:"+l] != nil {
		return true
	}
	for _, d := range st.Devices {
		if d != self && d.Label == l {
			return true
		}
	}
	return false
}

func randomHex(n int) string {
	b := make([]byte, n)
	// crypto/rand.Read never fails since Go 1.24.
	rand.Read(b)
	return hex.EncodeToString(b)
}

// hashSecret is how the store remembers secrets.
func hashSecret(s string) string {
	h := sha256.Sum256([]byte(s))
	return hex.EncodeToString(h[:])
}
