// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Command agnhost is the part of Kubernetes' test image of the same name that
// the lab's examples and tests call: servers that say who answered, and pause.
package main

import (
	"os"

	"github.com/spf13/cobra"
	"k8s.io/kubernetes/test/images/agnhost/connect"
	grpchealthchecking "k8s.io/kubernetes/test/images/agnhost/grpc-health-checking"
	"k8s.io/kubernetes/test/images/agnhost/netexec"
	"k8s.io/kubernetes/test/images/agnhost/pause"
	servehostname "k8s.io/kubernetes/test/images/agnhost/serve-hostname"
)

func main() {
	root := &cobra.Command{Use: "agnhost", SilenceUsage: true}
	root.AddCommand(connect.CmdConnect, grpchealthchecking.CmdGrpcHealthChecking, netexec.CmdNetexec, pause.CmdPause, servehostname.CmdServeHostname)
	if err := root.Execute(); err != nil {
		os.Exit(1)
	}
}
