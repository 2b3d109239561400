// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"regexp"
	"strings"
	"time"

	"github.com/tailscale-gateway/tailscale-gateway/internal/agent/localapi"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/redact"
)

const (
	// maxLoginError is the limit of the field loginError of a Machine, in bytes.
	maxLoginError = 256

	// loginErrorPause is the minimum time between two reports of different login errors.
	loginErrorPause = time.Minute
)

// localAddress matches the part of error messages that differs from attempt to attempt.
var localAddress = regexp.MustCompile(`[0-9A-Fa-f.:\[\]]+:[0-9]+->`)

// plainText returns an error message as one line of limited length, which is the same for each
// attempt, and has no keys.
func plainText(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "")), " ")
	s = redact.Keys(localAddress.ReplaceAllString(s, ""))
	if len(s) > maxLoginError {
		s = strings.ToValidUTF8(s[:maxLoginError], "")
	}
	return s
}

// A loginReport decides which login error is reported: none that is over within moments, and not
// each of several that alternate. A report costs writes.
type loginReport struct {
	// text is the reported error, and changed is when it was reported.
	text    string
	changed time.Time

	// start is when login errors began. Zero if there is none.
	start time.Time
}

// step updates the report for the current error, which may be empty. It returns when to call it
// again.
func (r *loginReport) step(at time.Time, running bool, current string, patience time.Duration) time.Time {
	switch {
	case running:
		*r = loginReport{}
		return time.Time{}
	case current == "" || current == r.text:
		// An error stays until the node is in its tailnet.
		return time.Time{}
	case r.start.IsZero():
		r.start = at
	}
	due := r.start.Add(patience)
	if r.text != "" {
		due = r.changed.Add(loginErrorPause)
	}
	if at.Before(due) {
		return due
	}
	r.text, r.changed = current, at
	return time.Time{}
}

// A restart is the provider's request to restart the tailscale container of a node that cannot log
// in. Kubelet restarts it, because the agent answers its liveness probe. A request
// of this kind restarts no container that is in the tailnet; a remedy does.
type restart struct {
	// loaded reports whether the agent has read the requests. The first one that it reads is an old
	// one, since it was there before the agent.
	loaded  bool
	request string

	// session is the tailscaled that is to end. Zero if none is.
	session int
}

// read reads the request in the annotations of the config Secret.
func (r *restart) read(annotations map[string]string, t localapi.State) {
	request := annotations[meta.AnnotationRestart]
	if r.loaded && request != r.request && request != "" {
		r.session = t.Session
	}
	r.loaded, r.request = true, request
}

// due reports whether the tailscaled that was there when the request came is still there, and is
// not in its tailnet.
func (r *restart) due(t localapi.State) bool {
	return r.session != 0 && r.session == t.Session && !t.Running
}
