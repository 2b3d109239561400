// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale-gateway/tailscale-gateway/internal/text"
)

// A Status is the outcome of a check.
type Status string

// Outcomes of checks.
const (
	// OK means that a check found nothing.
	OK Status = "OK"

	// Wrong means that something must be fixed.
	Wrong Status = "Wrong"

	// Warning means that something works, and will not or may not for long.
	Warning Status = "Warning"

	// Unknown means that the caller may not read what the check needs.
	Unknown Status = "Unknown"

	// Skipped means that the check is not for this installation, or that nothing shows the outcome.
	Skipped Status = "Skipped"
)

// A Finding is one outcome.
type Finding struct {
	Check  string `json:"check"`
	Status Status `json:"status"`

	// Summary says what is wrong and names the object, or what is right.
	Summary string `json:"summary"`

	// Impact says what does not work because of it, unless that is obvious.
	Impact string `json:"impact,omitempty"`

	// Fix is what to do: a command, if one does it.
	Fix string `json:"fix,omitempty"`

	// Blocked are checks that were not made because of it.
	Blocked []string `json:"blocked,omitempty"`
}

// A Report is the outcome of all checks, with what must be fixed first.
type Report struct {
	Findings []Finding `json:"findings"`
}

// Limits of the text of a report.
const (
	maxLine     = 400
	maxFindings = 20
)

// Count returns the number of findings with a status.
func (r Report) Count(s Status) int {
	n := 0
	for _, f := range r.Findings {
		if f.Status == s {
			n++
		}
	}
	return n
}

// Text returns the report for people: each cause in a few lines, and one line about all that is right.
func (r Report) Text() string {
	out := &strings.Builder{}
	var right, skipped []string
	printed := 0
	for _, f := range r.Findings {
		switch f.Status {
		case OK:
			right = append(right, line(f.Summary))
			continue
		case Skipped:
			skipped = append(skipped, line(f.Summary))
			continue
		case Wrong, Warning, Unknown:
		}
		if printed++; printed > maxFindings {
			continue
		}
		fmt.Fprintf(out, "%-9s%s\n", f.Status, line(f.Summary))
		for _, detail := range []string{f.Impact, prefixed("Fix: ", f.Fix), prefixed("Not checked before this is fixed: ", strings.Join(f.Blocked, ", "))} {
			if detail != "" {
				fmt.Fprintf(out, "         %s\n", line(detail))
			}
		}
	}
	if printed > maxFindings {
		fmt.Fprintf(out, "and %d more; -o json prints all.\n", printed-maxFindings)
	}
	if len(right) > 0 {
		fmt.Fprintf(out, "%-9s%s\n", OK, strings.Join(right, ", "))
	}
	if len(skipped) > 0 {
		fmt.Fprintf(out, "%-9s%s\n", Skipped, strings.Join(skipped, ", "))
	}
	return out.String()
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

// line makes a text safe for one line of a terminal. A command is never cut.
func line(s string) string {
	if strings.HasPrefix(s, "Fix: ") || strings.HasPrefix(s, "Not checked") {
		return text.Visible(s)
	}
	return text.Cut(text.Visible(s), maxLine)
}

// listed returns at most three texts of a list, and the number of the others.
func listed(values []string) string {
	const limit = 3
	if len(values) <= limit {
		return strings.Join(values, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(values[:limit], ", "), len(values)-limit)
}

// A result is what a check found. Without findings, the check is right, as the summary says.
type result struct {
	summary  string
	skipped  string
	findings []Finding
}

func right(summary string) result { return result{summary: summary} }

func skip(reason string) result { return result{skipped: reason} }

func wrong(summary, impact, fix string) result {
	return result{findings: []Finding{{Status: Wrong, Summary: summary, Impact: impact, Fix: fix}}}
}

func warning(summary, impact, fix string) result {
	return result{findings: []Finding{{Status: Warning, Summary: summary, Impact: impact, Fix: fix}}}
}

func unknown(question, reason string) result {
	return result{findings: []Finding{{Status: Unknown, Summary: question + ": " + reason}}}
}

// A step is a check. It is not made if one that it needs fails, or was not made for that reason.
type step struct {
	name  string
	needs []string
	run   func(Facts, Options) result

	// applies reports whether the installation needs the check. It is nil if each does.
	applies func(Facts, Options) bool
}

// Make makes all checks.
func Make(f Facts, o Options) Report { return report(steps(), f, o) }

// Requirements makes the checks of what must be right before an installation.
func Requirements(f Facts, o Options) Report {
	names := []string{checkKubernetes, checkCrossplane, checkCache}
	return report(slices.DeleteFunc(steps(), func(s step) bool { return !slices.Contains(names, s.name) }), f, o)
}

// report makes checks in their order.
func report(steps []step, f Facts, o Options) Report {
	// causeOf has the position of the finding that blocks a check, by the check's name.
	causeOf := map[string]int{}
	findings := []Finding{}
	for _, s := range steps {
		if s.applies != nil && !s.applies(f, o) {
			continue
		}
		if n := slices.IndexFunc(s.needs, func(need string) bool { _, ok := causeOf[need]; return ok }); n >= 0 {
			cause := causeOf[s.needs[n]]
			findings[cause].Blocked = append(findings[cause].Blocked, s.name)
			causeOf[s.name] = cause
			continue
		}
		r := s.run(f, o)
		switch {
		case r.skipped != "":
			findings = append(findings, Finding{Check: s.name, Status: Skipped, Summary: r.skipped})
		case len(r.findings) == 0:
			findings = append(findings, Finding{Check: s.name, Status: OK, Summary: r.summary})
		}
		for _, found := range r.findings {
			found.Check = s.name
			if _, ok := causeOf[s.name]; !ok && found.Status == Wrong {
				causeOf[s.name] = len(findings)
			}
			findings = append(findings, found)
		}
	}
	order := []Status{Wrong, Warning, Unknown, OK, Skipped}
	slices.SortStableFunc(findings, func(a, b Finding) int { return slices.Index(order, a.Status) - slices.Index(order, b.Status) })
	return Report{Findings: findings}
}

// Crossplane is the name of the check of Crossplane itself.
const Crossplane = "Crossplane"

// Names of checks.
const (
	checkKubernetes   = "Kubernetes"
	checkCrossplane   = Crossplane
	checkCache        = "Crossplane's cache"
	checkInstalled    = "packages"
	checkProvider     = "provider"
	checkFunction     = "function"
	checkConfig       = "configuration"
	checkChart        = "chart"
	checkRoles        = "roles"
	checkAdmission    = "admission policies"
	checkDefinitions  = "composite kinds"
	checkCompositions = "Compositions"
	checkKinds        = "kinds"
	checkExtension    = "extension"
	checkRouteKinds   = "kinds of routes"
	checkRouteRoles   = "roles of the extension"
	checkCertificates = "certificates"
	checkValues       = "values of Envoy Gateway"
	checkReady        = "extension's pods"
	checkStart        = "start of Envoy Gateway"
	checkNetwork      = "network policies"
	checkImages       = "images"
	checkObjects      = "objects"
	checkLimits       = "limits"
)

// steps returns all checks, in the order of an installation: each after those that it needs.
func steps() []step {
	return []step{
		{name: checkKubernetes, run: kubernetes},
		{name: checkCrossplane, run: crossplane},
		{name: checkCache, needs: []string{checkCrossplane}, run: cache},
		{name: checkInstalled, needs: []string{checkCrossplane}, run: installed},
		{name: checkProvider, needs: []string{checkInstalled}, run: provider},
		{name: checkFunction, needs: []string{checkInstalled}, run: function},
		{name: checkConfig, needs: []string{checkProvider, checkFunction}, run: configurationPackage, applies: composed},
		{name: checkChart, needs: []string{checkInstalled}, run: chart, applies: composed},
		{name: checkRoles, needs: []string{checkChart}, run: roles, applies: composed},
		{name: checkAdmission, needs: []string{checkChart}, run: admission, applies: func(f Facts, o Options) bool { return o.Admission && composed(f, o) }},
		{name: checkDefinitions, needs: []string{checkConfig}, run: definitions, applies: composed},
		{name: checkCompositions, needs: []string{checkConfig}, run: compositions, applies: composed},
		{name: checkKinds, needs: []string{checkDefinitions, checkProvider}, run: kinds},
		{name: checkExtension, needs: []string{checkCrossplane}, run: extension},
		{name: checkRouteKinds, needs: []string{checkExtension, checkKinds}, run: routeKinds, applies: routed},
		{name: checkRouteRoles, needs: []string{checkExtension}, run: routeRoles, applies: routed},
		{name: checkCertificates, needs: []string{checkExtension}, run: certificates, applies: routed},
		{name: checkValues, needs: []string{checkExtension}, run: values, applies: routed},
		{name: checkStart, needs: []string{checkValues, checkRouteKinds}, run: start, applies: routed},
		{name: checkReady, needs: []string{checkCertificates, checkRouteRoles, checkValues, checkStart}, run: ready, applies: routed},
		{name: checkNetwork, needs: []string{checkInstalled}, run: network},
		{name: checkImages, needs: []string{checkInstalled}, run: images},
		{
			name: checkObjects, needs: []string{checkCrossplane, checkInstalled, checkProvider, checkFunction, checkKinds}, run: objects,
			applies: func(_ Facts, o Options) bool { return o.Objects },
		},
		{name: checkLimits, needs: []string{checkInstalled, checkKinds}, run: limits, applies: func(_ Facts, o Options) bool { return o.Objects }},
	}
}
