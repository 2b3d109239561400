// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Command kubernetes contains the Kubernetes programs of the lab in one binary.
// The name of the executable, such as that of a link named kubelet, or the first
// argument selects the program. One binary links in a fraction of the time of
// six. The programs are upstream's, unchanged.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	_ "time/tzdata" // For the time zones of CronJobs.

	_ "k8s.io/client-go/plugin/pkg/client/auth" // For kubeconfigs that name a plugin.
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"          // For --logging-format=json.
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // For client-go's metrics.
	_ "k8s.io/component-base/metrics/prometheus/version"  // For the version metric.
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

// A command is made only when it is the one to run: making it registers flags
// and feature gates for the whole process.
var programs = map[string]func() int{
	"kube-apiserver":          func() int { return cli.Run(apiserver.NewAPIServerCommand()) },
	"kube-controller-manager": func() int { return cli.Run(controllermanager.NewControllerManagerCommand()) },
	"kube-scheduler":          func() int { return cli.Run(scheduler.NewSchedulerCommand()) },
	"kube-proxy":              func() int { return cli.Run(proxy.NewProxyCommand()) },
	"kubelet":                 func() int { return cli.Run(kubelet.NewKubeletCommand(context.Background())) },
	"kubectl":                 kubectl,
}

func kubectl() int {
	logs.GlogSetter(cmd.GetLogVerbosity(os.Args)) //nolint:errcheck // A wrong level is reported again when flags are parsed.
	c := cmd.NewDefaultKubectlCommand()
	if err := cli.RunNoErrOutput(c); err != nil {
		util.CheckErr(err) // Exits with the code that belongs to the error.
	}
	return 0
}

func main() {
	if run, ok := programs[filepath.Base(os.Args[0])]; ok {
		os.Exit(run())
	}
	if len(os.Args) > 1 {
		if run, ok := programs[os.Args[1]]; ok {
			os.Args = os.Args[1:]
			os.Exit(run())
		}
	}
	names := make([]string, 0, len(programs))
	for name := range programs {
		names = append(names, name)
	}
	sort.Strings(names)
	fmt.Fprintf(os.Stderr, "usage: %s PROGRAM [ARGS]\nprograms: %s\n", os.Args[0], strings.Join(names, ", "))
	os.Exit(2)
}
