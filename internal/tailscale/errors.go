// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailscale

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"syscall"

	tsclient "tailscale.com/client/tailscale/v2"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/redact"
	"github.com/tailscale-gateway/tailscale-gateway/internal/text"
)

// A Class is the kind of an API error. It determines how a caller can react.
type Class string

// Classes of API errors.
const (
	// ClassUnauthorized means that the API rejected the credential.
	ClassUnauthorized Class = "Unauthorized"

	// ClassForbidden means that the credential lacks a scope or a tag.
	ClassForbidden Class = "Forbidden"

	// ClassTailnetNotFound means that the tailnet does not exist for the credential.
	ClassTailnetNotFound Class = "TailnetNotFound"

	// ClassNotFound means that the object does not exist.
	ClassNotFound Class = "NotFound"

	// ClassRateLimited means that the API limits the rate of calls.
	ClassRateLimited Class = "RateLimited"

	// ClassInvalid means that the API rejected the content of the request.
	ClassInvalid Class = "Invalid"

	// ClassConflict means that the request conflicts with an existing object, such as a name that
	// is in use (409).
	ClassConflict Class = "Conflict"

	// ClassNameTaken means that a machine of the tailnet has the requested name of a service. The
	// API answers a GET with 400 "name exists but is not a service" (tailscale/tailscale#19922),
	// and a PUT with 409 "name is in use but is not a service" (tailscale/tailscale#17693).
	ClassNameTaken Class = "NameTaken"

	// ClassPlanRequired means that the tailnet's plan does not include the feature. The API answers
	// 403, like for a missing scope, and sometimes 400 or 402.
	ClassPlanRequired Class = "PlanRequired"

	// ClassQuotaExceeded means that the tailnet has reached its limit of objects of a kind.
	ClassQuotaExceeded Class = "QuotaExceeded"

	// ClassPreconditionFailed means that the object changed since it was read
	// (412).
	ClassPreconditionFailed Class = "PreconditionFailed"

	// ClassUnavailable means that the API did not answer, or that its response was not valid.
	ClassUnavailable Class = "Unavailable"
)

// maxMessage limits the part of a server's message that an Error keeps, in bytes.
const maxMessage = 300

// An Error describes a call that Tailscale's API refused or did not answer. Its text depends only
// on the cause, and contains no secret.
type Error struct {
	Class   Class
	Status  int    // Zero without a response.
	Scope   string // OAuth scope that the call needs.
	Message string

	// Credential names the credential, and Hint is the advice if the API rejects it. Both may be
	// empty.
	Credential, Hint string
}

// Error returns the failure and, where known, how to fix it.
func (e *Error) Error() string {
	switch e.Class {
	case ClassUnauthorized:
		if e.Status == 0 {
			// The request did not reach the API.
			return "cannot log in with " + e.credential() + ": " + e.Message
		}
		m := "Tailscale's API rejected " + e.credential() + ": " + e.Message
		if e.Hint != "" {
			m += "; " + e.Hint
		}
		return m
	case ClassPlanRequired:
		return "the tailnet's plan does not include what the scope " + e.Scope + " is for: " + e.Message + "; change the plan in Tailscale's admin console, or remove what needs the feature"
	case ClassQuotaExceeded:
		return "the tailnet has reached a limit: " + e.Message + "; delete what is not needed, or ask Tailscale for a higher limit"
	case ClassNameTaken:
		return "a machine of the tailnet has this name: " + e.Message + "; rename the machine, or choose another name for the service"
	case ClassForbidden:
		return fmt.Sprintf("%s is not allowed to do this, it needs the OAuth scope %q and must own the tags in use: %s", e.credential(), e.Scope, e.Message)
	case ClassTailnetNotFound:
		return "the credential knows no such tailnet: " + e.Message
	case ClassUnavailable:
		return "Tailscale's API is not available: " + e.Message
	case ClassRateLimited:
		if e.Status == 0 {
			return e.Message
		}
	case ClassNotFound, ClassInvalid, ClassConflict, ClassPreconditionFailed:
	}
	return fmt.Sprintf("Tailscale's API answered %d: %s", e.Status, e.Message) + tagsHint(e.Message)
}

// refusedTags matches the API's message about tags that the credential may not assign, or that the policy
// file lacks, and its list of tags. tagName matches one of them.
var (
	refusedTags = regexp.MustCompile(`requested tags \[([^\]]*)\] are invalid or not permitted`)
	tagName     = regexp.MustCompile(`\btag:[a-zA-Z][a-zA-Z0-9-]*`)
)

// maxTags is the maximum number of tags that an advice names.
const maxTags = 3

// tagsHint returns the advice about a message, or "" for a message about anything else.
func tagsHint(message string) string {
	m := refusedTags.FindStringSubmatch(message)
	if m == nil {
		return ""
	}
	tags := tagName.FindAllString(m[1], -1)
	if len(tags) == 0 {
		return ""
	}
	slices.Sort(tags)
	tags = slices.Compact(tags)
	var owned []string
	for _, t := range tags[:min(len(tags), maxTags)] {
		owned = append(owned, fmt.Sprintf(`%q: ["tag:k8s-operator"]`, t))
	}
	return `; a tag of the credential must own each of these: for a credential with tag:k8s-operator, the policy file needs "tagOwners": {` + strings.Join(owned, ", ") + "}"
}

func (e *Error) credential() string {
	if e.Credential == "" {
		return "the credential"
	}
	return e.Credential
}

// ClassOf returns the class of an error of this package, or "" for other errors.
func ClassOf(err error) Class {
	var e *Error
	if errors.As(err, &e) {
		return e.Class
	}
	return ""
}

// IsNotFound reports whether err means that an object does not exist.
func IsNotFound(err error) bool { return ClassOf(err) == ClassNotFound }

// IsRefused reports whether err means that the API answered that it did not do what a request asks
// for, or that the request was not sent.
func IsRefused(err error) bool {
	var e *Error
	// A 408 may come from a proxy that has sent a part of the request.
	return errors.As(err, &e) && e.Class != ClassUnavailable && e.Status != http.StatusRequestTimeout
}

// ignoreNotFound returns nil if err means that an object does not exist, and err otherwise.
func ignoreNotFound(err error) error {
	if IsNotFound(err) {
		return nil
	}
	return err
}

// classify converts an error of the client library or the transport to an Error. A 404 of a call on
// a whole tailnet means that the tailnet is unknown.
func classify(err error, scope string, wholeTailnet bool) error {
	if err == nil {
		return nil
	}
	var typedErr *Error
	if errors.As(err, &typedErr) {
		e := *typedErr
		if e.Scope == "" {
			e.Scope = scope
		}
		return &e
	}
	var api tsclient.APIError
	if !errors.As(err, &api) {
		return &Error{Class: ClassUnavailable, Scope: scope, Message: networkMessage(err)}
	}
	e := &Error{Class: classOf(api.Status, api.Message), Status: api.Status, Scope: scope, Message: scrub(api.Message)}
	if e.Class == ClassNotFound && (wholeTailnet || strings.Contains(strings.ToLower(api.Message), "tailnet not found")) {
		e.Class = ClassTailnetNotFound
	}
	return e
}

// planTexts are parts of the API's messages about features that the plan does not include. The
// first is from log streaming, network flow logs and custom posture attributes; the others are
// assumptions.
var planTexts = []string{"billing plan", "current plan", "your plan", "upgrade your", "payment required"}

// quotaTexts are parts of messages about too many objects. They are an assumption, because no
// source shows such a message. Without a match, the status decides the class.
var quotaTexts = []string{"quota", "limit exceeded", "limit reached", "exceeds the limit", "maximum number of", "too many services"}

// classOf returns the class of a response. Where the API uses one status for several causes, the
// message decides.
func classOf(status int, message string) Class {
	says := func(texts ...string) bool {
		m := strings.ToLower(message)
		return slices.ContainsFunc(texts, func(t string) bool { return strings.Contains(m, t) })
	}
	switch status {
	case http.StatusPaymentRequired:
		return ClassPlanRequired
	case http.StatusBadRequest, http.StatusForbidden, http.StatusConflict:
		switch {
		case says("is not a service"):
			return ClassNameTaken
		case says(planTexts...):
			return ClassPlanRequired
		case says(quotaTexts...):
			return ClassQuotaExceeded
		}
	}
	return classOfStatus(status)
}

func classOfStatus(status int) Class {
	switch {
	case status == http.StatusUnauthorized:
		return ClassUnauthorized
	case status == http.StatusForbidden:
		return ClassForbidden
	case status == http.StatusNotFound, status == http.StatusGone:
		// The API answers with either status for a revoked key.
		return ClassNotFound
	case status == http.StatusConflict:
		return ClassConflict
	case status == http.StatusPreconditionFailed:
		return ClassPreconditionFailed
	case status == http.StatusTooManyRequests:
		return ClassRateLimited
	case status >= http.StatusInternalServerError || status < http.StatusBadRequest:
		return ClassUnavailable
	}
	return ClassInvalid
}

// networkMessage describes a failed request without ports and addresses: they differ between
// attempts, and conditions must stay the same.
func networkMessage(err error) string {
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case errors.Is(err, context.Canceled):
		return "the request was cancelled"
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	case errors.As(err, &dns):
		return fmt.Sprintf("cannot resolve host %q", dns.Name)
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.Is(err, syscall.ECONNRESET):
		return "connection reset"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "no answer in time"
	}
	return "the request failed or its answer could not be read"
}

// OneLine returns a message of Tailscale in a form for conditions: one line, limited in length, and
// without keys.
func OneLine(msg string) string { return scrub(msg) }

// NodeReport returns a text that a node reports, in a form that ends the message of a condition. It
// is empty for an empty text. A pod may report any text.
func NodeReport(text string) string {
	if text = OneLine(text); text == "" {
		return ""
	}
	return "; the node reports: " + text
}

// scrub returns a server's message in a form for conditions: one line, limited in length, and
// without keys.
func scrub(msg string) string {
	if len(msg) > maxReply {
		msg = msg[:maxReply]
	}
	msg = redact.Keys(strings.Join(strings.Fields(text.Visible(msg)), " "))
	return strings.TrimRight(text.Cut(msg, maxMessage), ".")
}
