// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package causes

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
)

// refusedTag matches the answer of Tailscale's API to a tag that the credential does not own, or that the policy
// file does not define.
var refusedTag = regexp.MustCompile(`requested tags \[([^\]]*)\] are invalid or not permitted`)

// Tag returns the tags in a message that says that the credential does not own them, or "".
func Tag(message string) string {
	if m := refusedTag.FindStringSubmatch(message); m != nil {
		return m[1]
	}
	return ""
}

// steps have what to do for reasons whose message does not have all of it.
var steps = map[string]string{
	string(meta.ReasonScopeMissing):        "add the scope to the credential in Tailscale's admin console, Settings, Trust credentials; docs/credentials.md lists the scopes",
	string(meta.ReasonCredentialRejected):  "create another OAuth client in Tailscale's admin console, and put its ID and secret into the Secret that the TailscaleTailnet names",
	string(meta.ReasonTailnetNotFound):     "correct the name of the tailnet, or let a TailscaleTailnet of that name exist: kubectl get tailscaletailnets",
	string(meta.ReasonAPIUnavailable):      "let the provider reach Tailscale's API: NetworkPolicies, DNS, and HTTPS_PROXY in provider.env of the chart",
	string(meta.ReasonNamespaceNotAllowed): "add the namespace to spec.allowedNamespaces of the TailscaleTailnet",
	string(meta.ReasonNotGranted):          "add to spec.grants of the TailscaleTailnet what the message names",
	string(meta.ReasonApprovalPending):     "approve the hosts in Tailscale's admin console, Services, or let autoApprovers of the policy file do so",
	string(meta.ReasonNoEndpointsMatch):    "create a TailscaleEndpoints with the labels of the selector, or omit the selector",
	string(meta.ReasonNoHealthyBackend):    "make the backend answer its probe: see the readiness of its pods and their NetworkPolicies",
}

// NextStep returns what to do about a cause. kubectl is the command that reads the cluster, such as kubectl
// --context=test.
func (c Cause) NextStep(kubectl string) string {
	if tags := Tag(c.Message); tags != "" {
		var lines []string
		for tag := range strings.FieldsFuncSeq(tags, func(r rune) bool { return r == ' ' || r == ',' }) {
			lines = append(lines, fmt.Sprintf("%q: [\"TAG-OF-THE-CREDENTIAL\"]", tag))
		}
		return "in tagOwners of the tailnet's policy file, let a tag of the credential own it: " + strings.Join(lines, ", ")
	}
	if step, ok := steps[c.Reason]; ok {
		return step
	}
	if len(c.Objects) == 0 {
		return ""
	}
	return Describe(kubectl, c.Objects[0])
}

// Describe returns the command that shows all of an object.
func Describe(kubectl string, o Object) string {
	out := kubectl + " describe " + strings.ToLower(o.Kind)
	if o.Group != "" {
		out += "." + o.Group
	}
	if o.Namespace != "" {
		out += " --namespace=" + o.Namespace
	}
	return out + " " + o.Name
}
