// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"strings"
	"time"
)

// A state of the process.
type state int

const (
	starting state = iota
	serving
	stopping
)

// Serving reports that everything is known and served.
func (o *Observer) Serving() { o.set(serving) }

// Stopping reports that the end is near: nobody new should come.
func (o *Observer) Stopping() { o.set(stopping) }

func (o *Observer) set(s state) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.state = max(o.state, s)
}

// unready says why nobody should be sent here. Empty when they should.
func (o *Observer) unready() string {
	o.mu.Lock()
	st := o.state
	o.mu.Unlock()
	switch st {
	case starting:
		msg := "Not all objects are known yet"
		if o.opts.Waiting == nil {
			return msg
		}
		return strings.Join(append([]string{msg}, o.opts.Waiting()...), "; ")
	case stopping:
		return "Stopping"
	case serving:
	}
	return ""
}

// degraded says what is wrong with a process that serves nevertheless: taking it away
// would not help, for the others know no more, and Envoy Gateway stops without any.
func (o *Observer) degraded() []string {
	o.mu.Lock()
	rate := o.failureRate()
	o.mu.Unlock()

	var out []string
	if rate > maxFailures {
		out = append(out, fmt.Sprintf("%.0f %% of the last hooks failed; the log says why", rate*100))
	}
	if o.opts.Silence == nil {
		return out
	}
	if d := o.opts.Silence(); d > maxSilence {
		out = append(out, fmt.Sprintf("Objects have not been heard of for %s; look at the connection to the API server", d.Round(time.Minute)))
	}
	return out
}
