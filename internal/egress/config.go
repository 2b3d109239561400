// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package egress assigns ports of the egress pods to targets in the tailnet: the allocation of
// ports, and the format of their ConfigMap. The endpoints' function writes the ConfigMap, and
// the agents read it. The package is pure; the proxy itself is in internal/agent/egress.
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

	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

// ConfigMapKey is the key of the config in its ConfigMap, which has the name of
// the egress StatefulSet.
const ConfigMapKey = "egress.json"

// Ports that targets may have. Containerboot and the agent use ports below (9002, 9093), and
// Linux uses ports from 32768 for outgoing connections (net.ipv4.ip_local_port_range).
const (
	FirstPort int32 = 10000
	LastPort  int32 = 31999
)

// A HealthCheck configures how an agent probes a target through the tailnet. An empty Path
// means a TCP connection.
type HealthCheck struct {
	Path               string          `json:"path,omitempty"`
	Interval           metav1.Duration `json:"interval"`
	Timeout            metav1.Duration `json:"timeout"`
	HealthyThreshold   int32           `json:"healthyThreshold"`
	UnhealthyThreshold int32           `json:"unhealthyThreshold"`
}

// A Target is the destination of a port of the egress pods.
type Target struct {
	// Key of the target, such as endpoint/db/5432. It is unique among targets.
	Key string `json:"key"`

	// Host is an address, or a DNS name in the tailnet.
	Host string `json:"host"`

	// Alternatives are other addresses of the host, for pods that cannot use the family of Host.
	Alternatives []string `json:"alternatives,omitempty"`

	// SingleStack reports that the target's Service has an address of only one family.
	SingleStack bool `json:"singleStack,omitempty"`

	// Name is the expected DNS name in the tailnet of the host, if it is an address. Empty if
	// it does not matter.
	Name string `json:"name,omitempty"`

	// Service is the Tailscale Service that has the host, such as svc:web. Empty if the host need
	// not be one.
	Service string `json:"service,omitempty"`

	// Port of the host.
	Port int32 `json:"port"`

	// Protocol is TCP or UDP.
	Protocol corev1.Protocol `json:"protocol"`

	// ProxyPort is the port of the egress pods.
	ProxyPort int32 `json:"proxyPort"`

	// Tags that the device with the host's address must have.
	Tags []string `json:"tags,omitempty"`

	// HealthCheck of the target. Nil means none.
	HealthCheck *HealthCheck `json:"healthCheck,omitempty"`
}

// Address returns the target as HOST:PORT.
func (t Target) Address() string {
	return net.JoinHostPort(t.Host, strconv.Itoa(int(t.Port)))
}

// A Config is the configuration of the egress pods of one endpoints object.
type Config struct {
	// Targets by key.
	Targets []Target `json:"targets"`

	// Released are ports without a target, oldest first. A port is not assigned to another
	// target while a pod reports it.
	Released []ReleasedPort `json:"released,omitempty"`
}

// A ReleasedPort is a port that a target had.
type ReleasedPort struct {
	ProxyPort int32           `json:"proxyPort"`
	Protocol  corev1.Protocol `json:"protocol"`

	// Key of the former target. It gets the port back if it is added again.
	Key string `json:"key"`
}

// Encode returns the config as text. It sorts the entries, so that equal configs have equal
// texts.
func (c Config) Encode() (string, error) {
	c.Targets = slices.Clone(c.Targets)
	slices.SortFunc(c.Targets, func(a, b Target) int { return cmp.Compare(a.Key, b.Key) })
	b, err := json.Marshal(c)
	return string(b), errors.Wrap(err, "cannot encode egress config")
}

// Revision returns the revision of an encoded config, which pods report once they have applied
// it. An absent config has one, too.
func Revision(encoded string) string {
	sum := sha256.Sum256([]byte(encoded))
	return hex.EncodeToString(sum[:])[:16]
}

// Decode returns the config of a text. An absent config is empty.
func Decode(s string) (Config, error) {
	c := Config{}
	if s == "" {
		return c, nil
	}
	return c, errors.Wrap(json.Unmarshal([]byte(s), &c), "cannot decode egress config")
}
