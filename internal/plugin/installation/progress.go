// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"fmt"

	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/causes"
	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/check"
	"github.com/tailscale-gateway/tailscale-gateway/internal/products"
)

// Progress is what is read while an installation starts.
type Progress struct {
	// Packages and Definitions are as in the facts of checks.
	Packages    check.Answer[map[string]check.Package]
	Definitions check.Answer[map[string]check.Definition]

	// Tailnet is the name of the TailscaleTailnet that the chart requests, or empty. Created reports that it was
	// created once: the user may have deleted it since. Conditions are those that it has, and nil if there is none.
	Tailnet    string
	Created    bool
	Conditions []causes.Condition

	// Failure says why some of this could not be read, although the caller may read it. It may be read the next
	// time: kinds appear while an installation starts.
	Failure string
}

// Pending returns what an installation waits for, or an empty text if there is nothing left.
func Pending(p Progress) string {
	if p.Failure != "" {
		return "an answer of the API server: " + p.Failure
	}
	if p.Packages.Unknown != "" || p.Definitions.Unknown != "" {
		// The checks at the end say that these are not known.
		return ""
	}
	configuration := products.Configuration
	if _, ok := p.Packages.Value[products.ConfigurationClaims]; ok {
		configuration = products.ConfigurationClaims
	}
	for _, name := range []string{products.Provider, products.Function, configuration} {
		found, ok := p.Packages.Value[name]
		switch {
		case !ok:
			return "the package " + name
		case found.Current != "" && found.Current != found.Image:
			return name + ", whose version Crossplane has not changed yet"
		case found.Installed.Status != "True":
			return name + ", which is not installed" + said(found.Installed)
		case found.Healthy.Status != "True":
			return name + ", which is not healthy" + said(found.Healthy)
		}
	}
	established := 0
	for _, d := range p.Definitions.Value {
		if d.Established.Status == "True" && (!d.Claims || d.Offered.Status == "True") {
			established++
		}
	}
	if established == 0 || established < len(p.Definitions.Value) {
		return fmt.Sprintf("the kinds, of which %d of %d are established", established, len(p.Definitions.Value))
	}
	return pendingTailnet(p)
}

func pendingTailnet(p Progress) string {
	subject := "TailscaleTailnet " + p.Tailnet
	switch {
	case p.Tailnet == "" || p.Conditions == nil && p.Created:
		return ""
	case p.Conditions == nil:
		return subject + ", which the provider creates"
	}
	reason, ready := "", false
	for _, c := range p.Conditions {
		switch {
		case c.Type == "Ready" && c.Status == "True":
			ready = true
		case c.Status == "False" && (reason == "" || c.Type != "Ready"):
			reason = said(c)
		}
	}
	if ready {
		return ""
	}
	return subject + ", which is not ready" + reason
}

func said(c causes.Condition) string {
	switch {
	case c.Message != "":
		return ": " + c.Message
	case c.Reason != "":
		return ": " + c.Reason
	}
	return ""
}
