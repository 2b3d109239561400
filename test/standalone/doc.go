// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package standalone runs a real Envoy Gateway and a real Envoy without a cluster, within seconds,
// for tests of the extension: manifests come from a folder, and hooks go to a unix socket.
//
//	g, err := standalone.Start(ctx, standalone.Options{Extension: socket, Backends: kinds})
//	defer g.Stop()
//	err = g.Write("routes", manifests)
//	err = g.Answers(ctx, "http://127.0.0.1:8888/", "www.example.com")
//
// All processes run in a separate network namespace with only a loopback: no packet leaves it, and
// several do not disturb each other. Tests connect to it, and serve backends in it, with Dial and
// Listen. This needs root.
//
// Envoy Gateway reads no Services and EndpointSlices from files: a backend is one of the Backends
// of Envoy Gateway, or of the extension's kinds. Tests that need Services, status or the
// extension's informers use an API server instead, from package apiserver. Gateways have the class
// Class, and are not Programmed, because they get no address; their ports are those of the
// listeners. Envoy Gateway uses ports 8080, 8081, 9443 and 18000 to 19001 of all addresses.
//
// Tests of lost packets, or of the replica of a connection, run programs in Pods: network
// namespaces beside the Gateway's, behind Services. With OwnEnvoy, Envoy is not a child of Envoy
// Gateway and outlives it.
//
// The programs are the lab's, from `lab build envoy-gateway envoy`. TEST_ASSET_ENVOY_GATEWAY and
// TEST_ASSET_ENVOY select others.
package standalone
