// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Command sysctler is /bin/sh of the image that Tailscale's operator starts
// proxies from in the lab, which has no shell. It does what the one script does
// that the operator runs with it, the init container sysctler of
// cmd/k8s-operator/deploy/manifests/proxy.yaml: turn IP forwarding on, for IPv6
// where there is IPv6. It refuses any other script.
package main

import (
	"fmt"
	"os"
)

const script = "sysctl -w net.ipv4.ip_forward=1 && if sysctl net.ipv6.conf.all.forwarding; then sysctl -w net.ipv6.conf.all.forwarding=1; fi"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "sysctler: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 || args[0] != "-c" || args[1] != script {
		return fmt.Errorf("cannot run %q: this is no shell, it knows one script", args)
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		return err
	}
	err := os.WriteFile("/proc/sys/net/ipv6/conf/all/forwarding", []byte("1"), 0o644)
	if os.IsNotExist(err) {
		return nil
	}
	return err
}
