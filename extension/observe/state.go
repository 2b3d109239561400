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

// Serving records that all objects are known and served.
func (o *Observer) Serving() { o.set(serving) }

// Stopping records that the process shuts down: it should get no new calls.
func (o *Observer) Stopping() { o.set(stopping) }

func (o *Observer) set(s state) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.state = max(o.state, s)
}

// unready returns the reason why the replica should get no calls. Empty if it should.
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

// degraded returns the degraded parts of a serving process. The replica stays ready, because the
// others know no more, and Envoy Gateway stops without any.
func (o *Observer) degraded() []string {
	o.mu.Lock()
	rate := o.failureRate()
	o.mu.Unlock()

	var out []string
	if rate > maxFailures {
		out = append(out, fmt.Sprintf("%.0f %% of the last hooks failed; the log has the reasons", rate*100))
	}
	if o.opts.Silence == nil {
		return out
	}
	if d := o.opts.Silence(); d > maxSilence {
		out = append(out, fmt.Sprintf("The Kubernetes API has not answered for %s; check the connection to the API server", d.Round(time.Minute)))
	}
	return out
}
