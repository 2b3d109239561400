// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package network

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// A Report is the result of the check that runs in a pod with Kernel networking before tailscaled,
// with the rights of tailscaled's container. Its zero value means that nothing is wrong, or that
// nothing is known.
type Report struct {
	// Tun is why the container cannot open a TUN device. Empty if it can.
	Tun string `json:"tun,omitempty"`

	// TunAbsent reports that the node's kernel has no TUN driver.
	TunAbsent bool `json:"tunAbsent,omitempty"`

	// Dropped is the address of a Service to which the pod's connections succeed, and
	// packets that the pod forwards do not arrive. Empty if there is none.
	Dropped string `json:"dropped,omitempty"`
}

// Messages of problems of Kernel networking.
const (
	messageTunDenied = "The tailscale container cannot open /dev/net/tun (%s): the container runtime denies it, as runc 1.2.0 to 1.2.3 and Talos do. Set spec.proxy.kernel.privileged to true, request the resource of a device plugin in spec.proxy.resources, or use networking Userspace"
	messageTunAbsent = "The node's kernel has no TUN driver (%s). Load the module tun on the nodes, or use networking Userspace"
	messageDropped   = "The cluster's network drops packets that the pod forwards to addresses of Services such as %s, and not those of connections that it opens, as Cilium does whose socket load balancer replaces kube-proxy. Set Cilium's socketLB.hostNamespaceOnly to true. Until then tailscaled carries the connections of services with port numbers, and services with all ports are not reached"
	messageForward   = "The kernel forwards no packets of the pod. See the init container network, or whether kubelet allows the sysctl net.ipv4.ip_forward"
)

// Problem returns the first problem for the user, or nil. forwards reports whether the kernel
// forwards packets of any family. joined reports whether tailscaled runs, so that it has a TUN
// device whatever the check found.
func (r Report) Problem(forwards, joined bool) *v1alpha1.NetworkProblem {
	switch {
	case r.TunAbsent && !joined:
		return &v1alpha1.NetworkProblem{Reason: string(meta.ReasonNoTunDevice), Message: fmt.Sprintf(messageTunAbsent, r.Tun)}
	case r.Tun != "" && !joined:
		return &v1alpha1.NetworkProblem{Reason: string(meta.ReasonNoTunDevice), Message: fmt.Sprintf(messageTunDenied, r.Tun)}
	case !forwards:
		return &v1alpha1.NetworkProblem{Reason: string(meta.ReasonNotForwarding), Message: messageForward}
	case r.Dropped != "":
		return &v1alpha1.NetworkProblem{Reason: string(meta.ReasonForwardedPacketsDropped), Message: fmt.Sprintf(messageDropped, r.Dropped)}
	}
	return nil
}

// Write writes the report to a file.
func (r Report) Write(path string) error {
	b, err := json.Marshal(r)
	if err != nil {
		return errors.Wrap(err, "cannot encode report")
	}
	return errors.Wrap(os.WriteFile(path, b, 0o644), "cannot write report") // Other containers read it.
}

// ReadReport reads the report of a file. Without a file nothing is known.
func ReadReport(path string) (Report, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Report{}, nil
	}
	if err != nil {
		return Report{}, errors.Wrap(err, "cannot read report")
	}
	r := Report{}
	err = json.Unmarshal(b, &r)
	return r, errors.Wrap(err, "cannot decode report")
}
