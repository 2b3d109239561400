// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package standalone runs a real Envoy Gateway and a real Envoy without a cluster,
// within seconds, for tests of the extension: manifests come from a folder, hooks
// go to a unix socket.
//
//	g, err := standalone.Start(ctx, standalone.Options{Extension: socket, Backends: kinds})
//	defer g.Stop()
//	err = g.Write("routes", manifests)
//	err = g.Answers(ctx, "http://127.0.0.1:8888/", "www.example.com")
//
// All of it is in a network namespace of its own, which has nothing but a
// loopback: nothing leaves it, and no two of them disturb each other. Tests reach
// into it, and serve backends in it, by Dial and Listen. That needs root.
//
// Envoy Gateway reads no Services and EndpointSlices from files: a backend is one
// of its own Backends, or of the extension's kinds. Where Services, status or the
// extension's own informers matter, objects come from an API server instead, as
// package apiserver starts it. Gateways name the class Class, and are not
// Programmed, for nobody gives them an address; their ports are the listeners' own.
// Ports 8080, 8081, 9443 and 18000 to 19001 of all addresses are Envoy Gateway's.
//
// Where it matters that packets get lost, or which replica a connection was led to,
// programs run in Pods, network namespaces beside it, behind Services. Where Envoy must
// outlive Envoy Gateway, OwnEnvoy makes it nobody's child.
//
// The programs are the lab's, by `lab build envoy-gateway envoy`.
// TEST_ASSET_ENVOY_GATEWAY and TEST_ASSET_ENVOY name others. What a test does with
// them lives with the test; a real cluster is what the lab is for.
package standalone
