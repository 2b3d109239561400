// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/check"
)

// Scopes of a credential that TailscaleServices and TailscaleEndpoints need, and of the policy file.
const (
	scopePolicy = "policy_file"
	console     = "Tailscale's admin console, Settings, Trust credentials"
)

// requiredScopes returns the scopes that each credential of a TailscaleTailnet needs.
func requiredScopes() []string { return []string{"devices:core", "auth_keys", "services"} }

// credential plans the Secret with the credential.
func credential(f Facts, o Options) Step {
	s := Step{Name: StepSecret, State: OK}
	name := "Secret " + o.Namespace + "/" + o.Secret
	block := func(summary, next string) Step {
		return Step{Name: StepSecret, State: Blocked, Summary: summary, Next: next}
	}
	manual := fmt.Sprintf("%s create secret generic %s --namespace=%s --from-literal=%s=ID --from-literal=%s=SECRET",
		o.Check.Kubectl(), check.Quote(o.Secret), check.Quote(o.Namespace), meta.SecretKeyClientID, meta.SecretKeyClientSecret)
	switch secret := f.Secret.Value; {
	case o.Secret == "" && o.CredentialElsewhere(f):
		s.State, s.Summary = Skipped, "Secret with an OAuth client: the values of the release name the credential"
	case o.Secret == "" && o.Tailnet != "":
		return block("the tailnet "+o.Tailnet+" has no credential", "name a Secret by --oauth-secret, or an OAuth client by --client-id and --client-secret-file")
	case o.Secret == "":
		s.State, s.Summary = Skipped, "Secret with an OAuth client: no --oauth-secret and no --client-id"
	case f.Secret.Unknown != "" && !o.Client:
		s.State, s.Summary = Unknown, "whether "+name+" has a credential: "+f.Secret.Unknown
	case secret == nil && !o.Client:
		return block(name+" does not exist", manual+", or name the OAuth client by --client-id and --client-secret-file")
	case secret == nil:
		s.State, s.Summary = Action, "create "+name+" with the OAuth client"
		s.Content = strings.Join([]string{
			"apiVersion: v1", "kind: Secret", "metadata:", "  name: " + o.Secret, "  namespace: " + o.Namespace,
			"stringData:", "  " + meta.SecretKeyClientID + ": (that of --client-id)", "  " + meta.SecretKeyClientSecret + ": (not shown)", "",
		}, "\n")
	case o.Client && !secret.Same:
		return block(name+" exists with another OAuth client, and stays", "omit --client-id to use it, or name another Secret by --oauth-secret")
	case len(secret.Missing) > 0:
		return block(name+" lacks "+strings.Join(secret.Missing, " and "), "add what it lacks, or name another Secret by --oauth-secret")
	default:
		s.Summary = name + " has an OAuth client"
	}
	return s
}

// CredentialElsewhere reports whether the credential of the tailnet is in values: those of the release, or the
// caller's, which are not read.
func (o Options) CredentialElsewhere(f Facts) bool {
	r := f.Release.Value
	return len(o.Values) > 0 || slices.ContainsFunc(o.Set, func(v string) bool { return strings.HasPrefix(v, "tailnet.") }) ||
		r != nil && r.Credential && (o.Tailnet == "" || o.Tailnet == r.Tailnet)
}

// tailnet plans what concerns the tailnet: the scopes of the credential and the policy file.
func tailnet(f Facts, o Options) []Step {
	s := Step{Name: "scopes", State: OK}
	t := f.Tailnet
	switch {
	case o.SkipTailnet:
		s.State, s.Summary = Skipped, "scopes of the credential and policy file: --skip-tailnet-check"
		return []Step{s}
	case t == nil:
		s.State, s.Summary = Skipped, "scopes of the credential and policy file: there is no credential to ask with"
		if o.Secret != "" {
			s.State = Unknown
		}
		return []Step{s}
	case t.Failure != "":
		s.State, s.Summary = Blocked, "the tailnet did not answer: "+t.Failure
		s.Next = "correct the credential, or, if only the provider can reach Tailscale's API, add --skip-tailnet-check"
		return []Step{s}
	}
	if missing := t.missing(requiredScopes()); len(missing) > 0 {
		s.State, s.Summary = Blocked, "the credential lacks the OAuth scopes "+strings.Join(missing, ", ")
		s.Next = "add them to the credential in " + console
		return []Step{s, policy(f, o)}
	}
	s.Summary = "the credential has the OAuth scopes " + strings.Join(requiredScopes(), ", ")
	if t.Scopes == nil {
		s.Summary = "the credential may read what needs the OAuth scopes " + strings.Join(requiredScopes(), ", ")
	}
	return []Step{s, policy(f, o)}
}

// missing returns the scopes that the credential does not have.
func (t *Tailnet) missing(required []string) []string {
	return slices.DeleteFunc(slices.Clone(required), func(scope string) bool {
		if t.Scopes == nil {
			return !slices.Contains(t.Refused, scope)
		}
		return Allows(t.Scopes, scope)
	})
}

// Allows reports whether scopes include another one: "all" has each of them, a scope its own part for reading,
// and the older name "devices" all scopes of devices (https://tailscale.com/kb/1623/trust-credentials#scopes).
func Allows(scopes []string, scope string) bool {
	base, read := strings.CutSuffix(scope, ":read")
	group, _, _ := strings.Cut(base, ":")
	names := []string{"all", base, group}
	if read {
		names = append(names, "all:read", scope, group+":read")
	}
	return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(scopes, n) })
}
