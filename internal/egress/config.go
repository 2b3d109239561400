// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package egress says which port of the egress pods leads to which target in the
// tailnet: how ports are given out, and how the ConfigMap that says so is read
// and written. The endpoints' function writes it, the agents act on it. The
// package is pure; who listens and dials is in internal/agent/egress.
package egress

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// ConfigMapKey is the key of the config in its ConfigMap, which has the name of
// the egress StatefulSet.
const ConfigMapKey = "egress.json"

// Ports that targets may have. Containerboot and the agent listen below
// (9002, 9093), and Linux gives out ports for outgoing connections from 32768
// (net.ipv4.ip_local_port_range).
const (
	FirstPort int32 = 10000
	LastPort  int32 = 31999
)

// A HealthCheck says how an agent probes a target through the tailnet. The zero
// Path is a connection, which only TCP has.
type HealthCheck struct {
	Path               string          `json:"path,omitempty"`
	Interval           metav1.Duration `json:"interval"`
	Timeout            metav1.Duration `json:"timeout"`
	HealthyThreshold   int32           `json:"healthyThreshold"`
	UnhealthyThreshold int32           `json:"unhealthyThreshold"`
}

// A Target is what a port of the egress pods leads to.
type Target struct {
	// Key of the target: what it is for, such as endpoint/db/5432. It is unique
	// among targets.
	Key string `json:"key"`

	// Host is an address, or a DNS name in the tailnet.
	Host string `json:"host"`

	// Name is the DNS name in the tailnet that the host, an address, is to have. Empty if
	// it does not matter.
	Name string `json:"name,omitempty"`

	// Port at the host.
	Port int32 `json:"port"`

	// Protocol is TCP or UDP.
	Protocol corev1.Protocol `json:"protocol"`

	// ProxyPort is the port of the egress pods.
	ProxyPort int32 `json:"proxyPort"`

	// Tags that the device which has the host must carry.
	Tags []string `json:"tags,omitempty"`

	// HealthCheck of the target. Nil is none.
	HealthCheck *HealthCheck `json:"healthCheck,omitempty"`
}

// Address of the target, as host:port.
func (t Target) Address() string {
	return net.JoinHostPort(t.Host, strconv.Itoa(int(t.Port)))
}

// A Config is what the egress pods of one endpoints object do.
type Config struct {
	// Targets by key.
	Targets []Target `json:"targets"`

	// Released are ports that no target has any more, oldest first. Nobody else
	// gets one while a pod reports it.
	Released []ReleasedPort `json:"released,omitempty"`
}

// A ReleasedPort is a port that a target had.
type ReleasedPort struct {
	ProxyPort int32           `json:"proxyPort"`
	Protocol  corev1.Protocol `json:"protocol"`

	// Key of the target that had it. If it comes back it gets the port back.
	Key string `json:"key"`
}

// Encode the config: sorted, so that equal configs are equal bytes.
func (c Config) Encode() (string, error) {
	c.Targets = slices.Clone(c.Targets)
	slices.SortFunc(c.Targets, func(a, b Target) int { return cmp.Compare(a.Key, b.Key) })
	b, err := json.Marshal(c)
	return string(b), errors.Wrap(err, "cannot encode egress config")
}

// Revision of a config as it is encoded: what pods report once they have acted on
// it. An absent config has one, too.
func Revision(encoded string) string {
	sum := sha256.Sum256([]byte(encoded))
	return hex.EncodeToString(sum[:])[:16]
}

// Decode a config. An absent one is empty.
func Decode(s string) (Config, error) {
	c := Config{}
	if s == "" {
		return c, nil
	}
	return c, errors.Wrap(json.Unmarshal([]byte(s), &c), "cannot decode egress config")
}
