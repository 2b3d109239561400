// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package integration runs every controller of the provider against a real API server and a
// simulated Tailscale. The test binary has one API server and one manager, and each case a separate
// namespace and tailnet, so that cases run in parallel and objects in a tailnet can be counted.
//
//	make test-integration
//	go test -tags=integration -parallel=32 ./test/integration/ -run 'TestLifecycle/VIPService'
//
// Each kind has a file, kind_KIND_test.go, which adds a kindCase. Kinds that are safe in any tailnet take
// the functions of their case from test/lifecycle, where cluster/acceptance runs them against a real
// tailnet, too. The package runs for each kind
//   - TestLifecycle: create, rest, pause, drift, update, delete; orphan; refuse and
//     adopt; observe-only; a management policy without Update; a connection Secret
//     that was lost; credentials that are missing or wrong and fixed later; a
//     namespace that is deleted,
//   - TestFaults: the life of an object while each API call that it makes fails in
//     each way,
//   - TestSchema: input that the API server must refuse,
//   - an audit: no secret in any version of any object, event or line of the log.
//
// TestExamples applies examples/managed.
//
// # How to add a kind
//
// kindCase (case_test.go) documents each field, and kind_vipservice_test.go with
// test/lifecycle/vipservice.go is a short model. In short:
//   - New returns the smallest object that becomes Ready. Name, namespace, provider
//     config, management policies and connection Secret are set by the harness.
//   - Check returns an error unless the tailnet matches the object. Drift,
//     update, pause and adoption depend on it, so it must compare every
//     field that Drift and Update touch.
//   - A step that does not apply is in Skip with the reason.
//   - env.tailnet is the official client for the test: it gets no
//     faults and is not counted. env.sim.Join creates a device without a node.
//   - Each secret of a case must contain the word notasecret: that is
//     what the audit searches for, besides Tailscale's own keys.
//
// The decisions of a controller are tested beside the controller; pods and traffic are tested in
// test/e2e.
package integration
