// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// githubIssuer issues the identities of GitHub's workflows.
const githubIssuer = "https://token.actions.githubusercontent.com"

// A signature is what cosign signs, and with what: all paths are of files that the release wrote.
type signature struct {
	// reference of the artifact with its digest, or empty for a file.
	reference string
	// recursive signs the images of an index as well.
	recursive bool
	// predicate is the file of an attestation, whose type cosign names, or empty.
	predicate, predicateType string
	// file is a file to sign, with its bundle beside it.
	file string
}

// command returns the arguments of cosign. Signatures have no keys: cosign receives the identity
// of the workflow, a certificate for it, and an entry in the transparency log.
// https://docs.sigstore.dev/cosign/signing/overview/
func (s signature) command() []string {
	switch {
	case s.file != "":
		return []string{"sign-blob", "--yes", "--bundle=" + s.file + ".sigstore.json", s.file}
	case s.predicate != "":
		return []string{"attest", "--yes", "--type=" + s.predicateType, "--predicate=" + s.predicate, s.reference}
	case s.recursive:
		return []string{"sign", "--yes", "--recursive", s.reference}
	}
	return []string{"sign", "--yes", s.reference}
}

// verification returns the arguments of cosign that verify the signature.
func (s signature) verification(identity string) []string {
	signer := []string{"--certificate-identity=" + identity, "--certificate-oidc-issuer=" + githubIssuer}
	switch {
	case s.file != "":
		return append(append([]string{"verify-blob", "--bundle=" + s.file + ".sigstore.json"}, signer...), s.file)
	case s.predicate != "":
		return append(append([]string{"verify-attestation", "--type=" + s.predicateType}, signer...), s.reference)
	}
	return append(append([]string{"verify"}, signer...), s.reference)
}

// sign signs everything, and verifies each signature.
func sign(ctx context.Context, cosign, identity string, all []signature) error {
	for _, s := range all {
		for _, args := range [][]string{s.command(), s.verification(identity)} {
			cmd := exec.CommandContext(ctx, cosign, args...)
			cmd.Stderr = os.Stderr
			if err := cmd.Run(); err != nil {
				return errors.Wrapf(err, "cosign %s failed", strings.Join(args, " "))
			}
		}
		fmt.Printf("signed %s%s\n", s.reference, s.file)
	}
	return nil
}
