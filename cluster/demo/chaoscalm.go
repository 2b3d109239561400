// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

const (
	// calmMargin is by how many percentage points the pressure on the processors may exceed that of the loads
	// alone when a fault begins.
	calmMargin = 15

	// calmMost is the pressure above which no fault begins, in percent: nearly all the time, a program waits.
	calmMost = 95

	// calmLook is the time for which the pressure is measured before a fault begins, and so the least time between
	// two faults.
	calmLook = 3 * time.Second
)

// A calm has faults begin in turn, and while the machine has processors for the programs that run. The pods that a
// fault ends start again, which takes a small machine longer than the time to the next fault: requests would be lost
// to the machine, and not to the fault.
//
// The pressure is the share of a time in which a program waited for a processor.
type calm struct {
	// most is the pressure at which a fault may begin, in percent. Zero means any.
	most float64

	// turn is held by the actor that begins next.
	turn sync.Mutex
}

// wait waits for the caller's turn and for a calm machine, at most until a time.
func (c *calm) wait(ctx context.Context, deadline time.Time) error {
	c.turn.Lock()
	defer c.turn.Unlock()
	for time.Now().Before(deadline) {
		pressure, err := pressureFor(ctx, calmLook)
		if err != nil || c.most == 0 || pressure <= c.most {
			return err
		}
	}
	return nil
}

// learn measures the pressure of the loads alone for a time, and sets most.
func (c *calm) learn(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return nil
	}
	pressure, err := pressureFor(ctx, d)
	c.most = min(pressure+calmMargin, calmMost)
	return err
}

// pressureFor measures the pressure on this machine's processors for a time, in percent. It is zero on a kernel
// without pressure stall information.
func pressureFor(ctx context.Context, d time.Duration) (float64, error) {
	earlier, err := waits()
	if err != nil {
		return 0, err
	}
	start := time.Now()
	if err := elapse(ctx, d); err != nil {
		return 0, err
	}
	later, err := waits()
	return 100 * float64(later-earlier) / float64(time.Since(start)), err
}

// waits returns for how long a program of this machine has waited for a processor since the start.
func waits() (time.Duration, error) {
	b, err := os.ReadFile("/proc/pressure/cpu")
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, errors.Wrap(err, "cannot read the pressure on this machine's processors")
	}
	return waitsIn(string(b))
}

// waitsIn returns total of the line some, in microseconds, of a file of pressure stall information
// (Documentation/accounting/psi.rst of Linux).
func waitsIn(text string) (time.Duration, error) {
	line, _, _ := strings.Cut(text, "\n")
	_, value, ok := strings.Cut(line, " total=")
	if !ok || !strings.HasPrefix(line, "some ") {
		return 0, errors.New("cannot find the pressure on this machine's processors")
	}
	n, err := strconv.ParseInt(value, 10, 64)
	return time.Duration(n) * time.Microsecond, errors.Wrap(err, "cannot parse the pressure on this machine's processors")
}

// loadAverage returns how many programs have wanted a processor of this machine in the last minute.
func loadAverage() (float64, error) {
	b, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, errors.Wrap(err, "cannot read the load of this machine")
	}
	first, _, _ := strings.Cut(string(b), " ")
	out, err := strconv.ParseFloat(first, 64)
	return out, errors.Wrap(err, "cannot parse the load of this machine")
}
