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

	// calmPause is the time between two looks, and between two faults.
	calmPause = 2 * time.Second
)

// A calm has faults begin in turn, and while the machine has processors for the programs that run. The pods that a
// fault ends start again, which takes a small machine longer than the time to the next fault: requests would be lost
// to the machine, and not to the fault.
//
// The pressure is the share of the last ten seconds in which a program waited for a processor.
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
		if err := elapse(ctx, calmPause); err != nil {
			return err
		}
		pressure, err := pressureOnCPUs()
		if err != nil || c.most == 0 || pressure <= c.most {
			return err
		}
	}
	return nil
}

// learn measures the pressure of the loads alone for a time, and sets most.
func (c *calm) learn(ctx context.Context, d time.Duration) error {
	end := time.Now().Add(d)
	sum, n := 0.0, 0
	for time.Now().Before(end) {
		if err := elapse(ctx, min(time.Until(end), calmPause)); err != nil {
			return err
		}
		pressure, err := pressureOnCPUs()
		if err != nil {
			return err
		}
		sum, n = sum+pressure, n+1
	}
	c.most = min(sum/float64(max(n, 1))+calmMargin, calmMost)
	return nil
}

// pressureOnCPUs returns the pressure on this machine's processors in percent. It is zero on a kernel without pressure
// stall information.
func pressureOnCPUs() (float64, error) {
	b, err := os.ReadFile("/proc/pressure/cpu")
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, errors.Wrap(err, "cannot read the pressure on this machine's processors")
	}
	return pressureIn(string(b))
}

// pressureIn returns avg10 of the line some of a file of pressure stall information (Documentation/accounting/psi.rst of
// Linux), in percent.
func pressureIn(text string) (float64, error) {
	_, rest, ok := strings.Cut(text, "some avg10=")
	if !ok {
		return 0, errors.New("cannot find the pressure on this machine's processors")
	}
	value, _, _ := strings.Cut(rest, " ")
	out, err := strconv.ParseFloat(value, 64)
	return out, errors.Wrap(err, "cannot parse the pressure on this machine's processors")
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
