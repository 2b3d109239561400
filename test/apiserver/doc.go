// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package apiserver starts a real etcd and kube-apiserver on loopback, with the
// provider's CRDs installed, for tests and benchmarks that need no cluster: one
// for a test binary, a namespace for a case.
//
// Start one in TestMain:
//
//	s, err := apiserver.Start(ctx, apiserver.Options{Controllers: apiserver.DeletionControllers()})
//	defer s.Stop()
//	c, err := client.New(s.Config, client.Options{Scheme: scheme})
//
// The programs are the lab's. TEST_ASSET_ETCD, TEST_ASSET_KUBE_APISERVER and
// TEST_ASSET_KUBE_CONTROLLER_MANAGER select others; the first two are envtest's own variables.
// There are no nodes and no scheduler: pods never run.
package apiserver
