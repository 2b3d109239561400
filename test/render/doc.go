// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package render renders every example with Crossplane's own command line and the project's
// Compositions and functions, until the result is stable, and compares the result with files. No
// cluster runs.
//
//	make test-render
//	make render-goldens
//
// An example is a file or a folder of examples/, except for those without a composite:
// examples/managed and examples/publish, which package integration applies, gateway.yaml, which package e2e applies, and
// route-policy*.yaml, which the extension's tests apply; and except for those of examples/design, whose
// objects have statuses, which package apiserver applies. Each is rendered in each flavour,
// package/configuration and package/configuration-claims: its definitions determine whether the objects of
// an example become composites directly or as claims.
//
// Other objects are in
//   - testdata/required.yaml, for all examples, and
//   - testdata/EXAMPLE/required.yaml, if it is there.
//
// controllers_test.go has the status that controllers would write, by kind.
// testdata/EXAMPLE/observed.yaml may override it: its objects, which need only kind, name and
// namespace, are merged into the observed ones.
//
// Goldens of the namespaced flavour, package/configuration, are
// testdata/EXAMPLE/FLAVOUR/KIND-NAME.yaml: the stable composite and all objects that it composes.
// Roles, Services and similar objects are digests there, except in a few examples. A golden of
// another flavour is KIND-NAME.diff: the differences of its objects from those of the namespaced
// flavour, beyond Crossplane's changes for a claim. A composite that does not differ has none. An
// example without goldens fails the test, and so does a golden without an example.
//
// The test also fails
//   - when an example does not come to rest: it would never do so in a cluster,
//   - when the same input, or the same in another order, gives other bytes,
//   - when "crossplane resource validate" finds fault with any object of any
//     round, or with the example itself, or knows no schema for it.
//
// The decisions of a function are tested beside the function.
package render
