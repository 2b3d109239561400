// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package marks holds the marks of keys and credentials in a tailnet, whose descriptions are the
// only field that clients choose. A mark is a hash of the cluster ID and of the object that the key
// was made for, so the mark proves that the key belongs to the object, but does not name it. The
// package is pure.
package marks

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

// prefix begins every mark.
const prefix = "tsgw "

// mark matches the mark at the beginning of a description. The mark of a Machine is longer than
// the others.
var mark = regexp.MustCompile(`^tsgw (?:[0-9a-f]{14}|[0-9a-f]{16})(?: |$)`)

// Machine returns the mark of the keys of a Machine.
func Machine(cluster, namespace, name string) string {
	return hashed(8, cluster+"/"+namespace+"/"+name)
}

// AuthKey returns the mark of the keys of an AuthKey.
func AuthKey(cluster, namespace, name string) string {
	return hashed(7, "authkey/"+cluster+"/"+namespace+"/"+name)
}

// Credential returns the mark of the OAuth clients of an OAuthClient, and of the federated
// identities of a FederatedIdentity.
func Credential(cluster, namespace, name string) string {
	return hashed(7, cluster+"/"+namespace+"/"+name)
}

func hashed(bytes int, content string) string {
	sum := sha256.Sum256([]byte(content))
	return prefix + hex.EncodeToString(sum[:bytes])
}

// Of returns the mark of a description, or "".
func Of(description string) string { return strings.TrimSuffix(mark.FindString(description), " ") }

// Text returns the part of a description after its mark.
func Text(description string) string {
	return strings.TrimPrefix(strings.TrimPrefix(description, Of(description)), " ")
}
