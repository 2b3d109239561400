// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
)

// stopGrace is how long a provider may take to stop.
const stopGrace = 30 * time.Second

// A Provider is a running provider process.
type Provider struct {
	*apiserver.Process

	log *os.File
}

// AllowTailnets is the flag that lets ProviderConfigs refer to the simulated tailnets.
const AllowTailnets = "--allowed-hosts=127.0.0.1:*"

// StartProvider starts a program of the folder of programs with the flags. Its endpoints for
// metrics and health are off, so that many run on one machine.
func (e *Env) StartProvider(program, name string, flags ...string) (*Provider, error) {
	return e.StartProgram(filepath.Join(e.bin, program), name, append([]string{"--metrics-address=0", "--health-address=0"}, flags...)...)
}

// StartProgram starts a program by its path.
func (e *Env) StartProgram(path, name string, flags ...string) (*Provider, error) {
	log, err := os.Create(filepath.Join(e.logs, name+".log"))
	if err != nil {
		return nil, errors.Wrap(err, "cannot create a log file")
	}
	p, err := apiserver.StartProcess(apiserver.ProcessOptions{Env: []string{"KUBECONFIG=" + e.kubeconfig}, Log: log}, path, flags...)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	r := &Provider{Process: p, log: log}
	e.processes = append(e.processes, r)
	return r, nil
}

// Stop ends the provider as Kubernetes does.
func (p *Provider) Stop() error {
	return errors.Join(p.Process.Stop(stopGrace), p.closeLog())
}

// Kill ends the provider without a grace period.
func (p *Provider) Kill() error {
	return errors.Join(p.Process.Kill(), p.closeLog())
}

func (p *Provider) closeLog() error {
	if err := p.log.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return errors.Wrap(err, "cannot close a log file")
	}
	return nil
}

// Running returns an error if the process has ended.
func (p *Provider) Running() error {
	select {
	case <-p.Exited():
		return errors.Errorf("the program has ended (%v), see %s", p.Err(), p.log.Name())
	default:
		return nil
	}
}

// Memory of a process in MiB.
type Memory struct {
	// RSS is the resident memory, Peak its maximum.
	RSS, Peak float64
}

// Memory returns the memory of the provider.
func (p *Provider) Memory() (Memory, error) { return MemoryOf(p.Process) }

// MemoryOf returns the memory of a process from the kernel's status file.
func MemoryOf(p *apiserver.Process) (Memory, error) {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.PID()), "status"))
	if err != nil {
		return Memory{}, errors.Wrap(err, "cannot read a process's status")
	}
	m := Memory{}
	for line := range bytes.Lines(b) {
		f := bytes.Fields(line)
		if len(f) < 2 {
			continue
		}
		kib, err := strconv.ParseFloat(string(f[1]), 64)
		if err != nil {
			continue // Another line, without a number.
		}
		switch string(f[0]) {
		case "VmRSS:":
			m.RSS = kib / 1024
		case "VmHWM:":
			m.Peak = kib / 1024
		}
	}
	if m.RSS == 0 || m.Peak == 0 {
		return Memory{}, errors.New("a process's status has no memory")
	}
	return m, nil
}
