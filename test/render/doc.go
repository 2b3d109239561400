// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package render renders every example with Crossplane's own command line, our
// Compositions and our functions, until nothing changes any more, and compares
// what comes out with files. No cluster runs.
//
//	make test-integration
//	make render-goldens
//
// An example is a file of examples/, or a folder of it but examples/managed,
// which package integration applies, gateway.yaml, which package e2e applies, and
// route-policy*.yaml, which the tests of the extension do: they have no composite. Each is rendered in each flavour, a folder
// package/configuration*: its definitions tell how the objects of an example
// become composites, directly or as claims. Nothing is listed by hand.
//
// What other objects there are is in
//   - testdata/required.yaml, for all examples, and
//   - testdata/EXAMPLE/required.yaml, if it is there.
//
// What controllers would report is made up by kind (controllers_test.go).
// testdata/EXAMPLE/observed.yaml may say something else: its objects, of which
// only kind, name and namespace must be given, are laid over those that are
// observed.
//
// Goldens of the namespaced flavour, package/configuration, are
// testdata/EXAMPLE/FLAVOUR/KIND-NAME.yaml: the composite and all that it composes, at
// rest. Roles, Services and the like are digests there, except in a few examples. A golden of
// another flavour is KIND-NAME.diff: how its objects differ from those of the namespaced
// flavour, beyond what Crossplane itself does for a claim. There is none for a composite that
// does not differ. An example without goldens fails the test, and so does a file that no
// example makes.
//
// Beside that the test fails
//   - when an example does not come to rest: it would never do so in a cluster,
//   - when the same input, or the same in another order, gives other bytes,
//   - when "crossplane resource validate" finds fault with any object of any
//     round, or with the example itself, or knows no schema for it.
//
// What a function does from given facts is tested beside the function.
package render
