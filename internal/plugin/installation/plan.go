// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package installation

import (
	"fmt"
	"strings"

	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/check"
	"github.com/tailscale-gateway/tailscale-gateway/internal/text"
)

// A State says what a step needs.
type State string

// States of steps.
const (
	// OK needs nothing: it is so already.
	OK State = "OK"

	// Action is what the command does.
	Action State = "Do"

	// Yours is what the caller does. It does not block the others.
	Yours State = "Yours"

	// Unknown could not be found out. It does not block the others.
	Unknown State = "Unknown"

	// Skipped was not asked for.
	Skipped State = "Skipped"

	// Blocked keeps the command from changing anything.
	Blocked State = "Blocked"
)

// Names of steps that change something.
const (
	StepCrossplane = "crossplane"
	StepNamespace  = "namespace"
	StepSecret     = "secret"
	StepPolicy     = "policy"
	StepRelease    = "release"
	StepWait       = "wait"
)

// A Step is one part of a plan. Its fields are stable.
type Step struct {
	Name  string `json:"name"`
	State State  `json:"state"`

	// Summary says what is so, what is done, or what is wrong.
	Summary string `json:"summary"`

	// Command is what is run, and Content what is written, without secrets.
	Command string `json:"command,omitempty"`
	Content string `json:"content,omitempty"`

	// Next says how to go on, if the step is blocked, or the caller's.
	Next string `json:"next,omitempty"`

	// Result says what happened. It is empty if the step was not run.
	Result string `json:"result,omitempty"`

	// Helm are the arguments of Helm, and Policy the new text of the policy file.
	Helm   []string `json:"-"`
	Policy string   `json:"-"`
}

// A Plan is what an installation does, in order.
type Plan struct {
	Steps []Step `json:"steps"`
}

// Count returns the number of steps with a state.
func (p Plan) Count(s State) int {
	n := 0
	for i := range p.Steps {
		if p.Steps[i].State == s {
			n++
		}
	}
	return n
}

// Make plans an installation.
func Make(f Facts, o Options) Plan {
	p := Plan{}
	p.Steps = append(p.Steps, helm(f))
	p.Steps = append(p.Steps, requirements(f, o)...)
	p.Steps = append(p.Steps, rights(f))
	p.Steps = append(p.Steps, namespace(f, o)...)
	p.Steps = append(p.Steps, credential(f, o))
	p.Steps = append(p.Steps, tailnet(f, o)...)
	p.Steps = append(p.Steps, release(f, o))
	p.Steps = append(p.Steps, Step{Name: StepWait, State: Action, Summary: wait(f, o)})
	return p
}

func wait(f Facts, o Options) string {
	out := "wait until the packages are healthy and the kinds are established"
	if name := o.tailnetOf(f); name != "" {
		out += ", and TailscaleTailnet " + name + " is ready"
	}
	return out + "; then check the installation"
}

// tailnetOf returns the name of the first tailnet after the installation.
func (o Options) tailnetOf(f Facts) string {
	if r := f.Release.Value; o.Tailnet == "" && r != nil {
		return r.Tailnet
	}
	return o.Tailnet
}

// requirements checks Kubernetes and Crossplane, and installs Crossplane on request.
func requirements(f Facts, o Options) []Step {
	var out []Step
	for _, finding := range check.Requirements(f.Cluster, o.Check).Findings {
		s := Step{Name: strings.ToLower(finding.Check), State: OK, Summary: finding.Summary}
		switch {
		case finding.Status == check.Unknown:
			s.State, s.Next = Blocked, "use a kubeconfig that may read it"
		case finding.Status == check.Wrong && finding.Check == check.Crossplane && !check.HasCrossplane(f.Cluster, o.Check):
			s.Name, s.Helm = StepCrossplane, o.crossplane()
			s.Command = o.printed(s.Helm)
			if o.Crossplane {
				s.State, s.Summary = Action, "install Crossplane into namespace "+o.Check.CrossplaneNamespace
			} else {
				s.State, s.Next = Blocked, "add --crossplane, which runs the command, or run it yourself; --crossplane-namespace names where Crossplane is"
			}
		case finding.Status == check.Wrong:
			s.State, s.Next = Blocked, finding.Fix
		}
		out = append(out, s)
	}
	return out
}

func rights(f Facts) Step {
	s := Step{Name: "permissions", State: OK, Summary: "you may create what the chart has"}
	switch {
	case f.Denied.Unknown != "":
		s.State, s.Summary = Unknown, "whether you may create what the chart has: "+f.Denied.Unknown
	case len(f.Denied.Value) > 0:
		s.State, s.Summary = Blocked, "you may not "+strings.Join(f.Denied.Value, ", ")
		s.Next = "use a kubeconfig with the role cluster-admin, or have somebody with it run this command"
	}
	return s
}

// namespace creates the namespace of the release, unless Crossplane's installation does.
func namespace(f Facts, o Options) []Step {
	s := Step{Name: StepNamespace, State: OK, Summary: "namespace " + o.Namespace + " exists"}
	switch {
	case f.Namespace.Unknown != "":
		s.State, s.Summary = Unknown, "whether namespace "+o.Namespace+" exists: "+f.Namespace.Unknown
	case f.Namespace.Value:
	case o.Crossplane && o.Namespace == o.Check.CrossplaneNamespace && !check.HasCrossplane(f.Cluster, o.Check):
		return nil
	default:
		s.State, s.Summary = Action, "create namespace "+o.Namespace
		s.Command = o.Check.Kubectl() + " create namespace " + check.Quote(o.Namespace)
	}
	return []Step{s}
}

// Text returns a plan for people.
func (p Plan) Text() string {
	out := &strings.Builder{}
	for i := range p.Steps {
		out.WriteString(p.Steps[i].Text())
	}
	return out.String()
}

// Text returns a step for people: a line, and below it what is run or written, and how to go on.
func (s Step) Text() string {
	const indent = "         "
	out := &strings.Builder{}
	fmt.Fprintf(out, "%-9s%s\n", s.State, text.Visible(s.Summary))
	if s.Command != "" {
		fmt.Fprintf(out, "%s$ %s\n", indent, text.Visible(s.Command))
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(s.Content, "\n"), "\n") {
		if s.Content != "" {
			fmt.Fprintf(out, "%s%s%s\n", indent, line[:len(line)-len(strings.TrimLeft(line, " "))], text.Visible(strings.TrimLeft(line, " ")))
		}
	}
	if s.Next != "" {
		fmt.Fprintf(out, "%sNext: %s\n", indent, text.Visible(s.Next))
	}
	return out.String()
}
