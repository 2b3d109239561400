// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package component describes a process of the lab. Package daemon supervises
// processes, and package cluster defines those of a cluster.
package component

// A Component is one process that the lab's daemon keeps running.
type Component struct {
	// Name is unique in the lab, and names the log file.
	Name string
	// Cluster that it belongs to; empty if all clusters share it.
	Cluster string
	// Program is the name of its binary, for people.
	Program string
	// Namespace is the network namespace that it runs in.
	Namespace string
	// Command and Env start it. Env is added to the daemon's PATH and HOME.
	Command []string
	Env     []string
	// Niceness is added to that of the daemon, as nice(1) does. Default 0.
	Niceness int
	// Ready is its health check.
	Ready Check
}

// A Check is a health check. Exactly one field is set.
type Check struct {
	// URL that must respond with status 200 inside the component's namespace. Its
	// host is a literal address. Certificates are not verified.
	URL string
	// Socket is the path of a unix socket that must accept a connection.
	Socket string
}
