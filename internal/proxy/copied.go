// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// A copied is a variable of the tailscale container that the agent has under another name, because it
// is not for the agent's own connections.
type copied struct{ name, tailscaled string }

// controlEnv are the user's variables that decide how tailscaled reaches the control server. An
// upper-case name takes precedence, as in golang.org/x/net/http/httpproxy.
var controlEnv = []copied{
	{EnvControlHTTPProxy, "HTTP_PROXY"}, {EnvControlHTTPProxy, "http_proxy"},
	{EnvControlHTTPSProxy, "HTTPS_PROXY"}, {EnvControlHTTPSProxy, "https_proxy"},
	{EnvControlNoProxy, "NO_PROXY"}, {EnvControlNoProxy, "no_proxy"},
	{EnvControlCertFile, "SSL_CERT_FILE"}, {EnvControlCertDir, "SSL_CERT_DIR"},
}

// prefixReferred begins the agent's names of variables that copied ones refer to.
const prefixReferred = "TAILSCALED_"

// reference matches a reference in the value of a variable, or an escaped dollar sign (k8s.io/kubernetes
// third_party/forked/golang/expansion).
var reference = regexp.MustCompile(`\$\$|\$\([^)]*\)`)

// withCopies appends copies of variables of tailscaled, and of those that they refer to, such as the
// password of a proxy. A variable without a value counts as absent, as in httpproxy.
func withCopies(env, tailscaled []corev1.EnvVar, copies ...copied) []corev1.EnvVar {
	for _, c := range copies {
		i := slices.IndexFunc(tailscaled, func(e corev1.EnvVar) bool { return e.Name == c.tailscaled })
		if i >= 0 && (tailscaled[i].Value != "" || tailscaled[i].ValueFrom != nil) {
			env = withCopy(env, tailscaled, i, c.name)
		}
	}
	return env
}

// withCopy appends a copy of a variable after those that it refers to. Kubelet resolves references to
// earlier variables, and to those of Services, which all containers have.
func withCopy(env, tailscaled []corev1.EnvVar, i int, name string) []corev1.EnvVar {
	if slices.ContainsFunc(env, func(existing corev1.EnvVar) bool { return existing.Name == name }) {
		return env
	}
	out := tailscaled[i]
	out.Name = name
	out.Value = reference.ReplaceAllStringFunc(out.Value, func(s string) string {
		if s == "$$" {
			return s
		}
		variable := s[len("$(") : len(s)-len(")")]
		j := slices.IndexFunc(tailscaled[:i], func(e corev1.EnvVar) bool { return e.Name == variable })
		if j < 0 {
			return s
		}
		env = withCopy(env, tailscaled, j, prefixReferred+variable)
		return "$(" + prefixReferred + variable + ")"
	})
	return append(env, out)
}
