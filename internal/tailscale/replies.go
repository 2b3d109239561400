// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

const (
	// maxReply limits the response about one object, in bytes.
	maxReply = 1 << 20

	// maxList limits a list of all objects of a kind, and the policy file, in bytes. Ten thousand
	// devices with all fields need about thirty megabytes.
	maxList = 64 << 20

	// maxDepth limits the nesting of a response. The policy file has the deepest nesting, about ten
	// levels. Parsers recurse at each level, so a deeply nested response could crash the process.
	maxDepth = 64
)

// lists are the last elements of paths whose responses are lists, or the policy file.
var lists = []string{"devices", "vip-services", "keys", "webhooks", "integrations", "tailnets", "users", "acl"}

// replyLimit returns the maximum length of the response to a request, in bytes.
func replyLimit(req *http.Request) int64 {
	path := strings.TrimSuffix(req.URL.Path, "/")
	if slices.Contains(lists, path[strings.LastIndexByte(path, '/')+1:]) {
		return maxList
	}
	return maxReply
}

// readReply reads a response and returns an error if it is longer than limit or nested too deeply.
func readReply(body io.Reader, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(body, limit+1))
	switch {
	case err != nil:
		return nil, err
	case int64(len(b)) > limit:
		return nil, &Error{Class: ClassUnavailable, Message: fmt.Sprintf("the answer has more than %d bytes", limit)}
	case deeper(b, maxDepth):
		return nil, &Error{Class: ClassUnavailable, Message: fmt.Sprintf("the answer nests deeper than %d levels", maxDepth)}
	}
	return b, nil
}

// deeper reports whether JSON or HuJSON nests deeper than limit. For other input the result is
// undefined.
func deeper(b []byte, limit int) bool {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{', '[':
			if depth++; depth > limit {
				return true
			}
		case '}', ']':
			depth--
		case '"':
			i = endOfString(b, i)
		case '/':
			i = endOfComment(b, i)
		}
	}
	return false
}

// endOfString returns the index of the quote that ends a string, or the last index of b.
func endOfString(b []byte, start int) int {
	for i := start + 1; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return len(b)
}

// endOfComment returns the index of the last byte of the HuJSON comment at start, or start if
// there is no comment.
func endOfComment(b []byte, start int) int {
	var end string
	switch rest := b[start:]; {
	case bytes.HasPrefix(rest, []byte("//")):
		end = "\n"
	case bytes.HasPrefix(rest, []byte("/*")):
		end = "*/"
	default:
		return start
	}
	i := bytes.Index(b[start+2:], []byte(end))
	if i < 0 {
		return len(b)
	}
	return start + 2 + i + len(end) - 1
}
