// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package component says what a process of the lab is. How processes are
// supervised lives in package daemon, what they are in package cluster.
package component

// A Component is one process that the lab's daemon keeps running.
type Component struct {
	// Name is unique in the lab, and names the log file.
	Name string
	// Cluster that it belongs to; empty for what all clusters share.
	Cluster string
	// Program is the name of its binary, for people.
	Program string
	// Namespace is the network namespace that it runs in.
	Namespace string
	// Command and Env start it. Env is added to the daemon's PATH and HOME.
	Command []string
	Env     []string
	// Ready says how to find out that it does its work.
	Ready Check
}

// A Check looks at one place. Exactly one field is set.
type Check struct {
	// URL that must answer 200 from inside the component's namespace. Its host
	// is a literal address. Certificates are not verified.
	URL string
	// Socket is the path of a unix socket that must accept a connection.
	Socket string
}
