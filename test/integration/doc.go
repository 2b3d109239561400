// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package integration runs every controller of the provider against a real API
// server and a simulated Tailscale: one API server and one manager for the test
// binary, a namespace and a tailnet of its own for every case, so that cases run
// side by side and objects in a tailnet can be counted.
//
//	make test-integration
//	go test -tags=integration -parallel=32 ./test/integration/ -run 'TestLifecycle/VIPService'
//
// A kind takes part by one file, kind_KIND_test.go, with a function that returns a
// kindCase, and by one line in kindCases (cases_test.go). From that the package
// makes
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
// kindCase (case_test.go) says what each field is for, and
// kind_vipservice_test.go is a short model. In brief:
//   - New returns the least object that becomes Ready. Name, namespace, provider
//     config, management policies and connection Secret are set by the harness.
//   - Check says why the tailnet is not as the object says; nil when it is. Drift,
//     update, pause and adoption are all judged by it, so let it look at every
//     field that Drift and Update touch.
//   - A step that does not apply is named in Skip with the reason.
//   - env.tailnet is the official client for the test's own use: it meets no
//     faults and is not counted. env.sim.Join makes a device without a node.
//   - Whatever secret a case makes up must contain the word notasecret: that is
//     what the audit looks for, beside Tailscale's own keys.
//
// What a controller decides from given facts is tested beside the controller;
// pods and traffic are tested in test/e2e.
package integration
