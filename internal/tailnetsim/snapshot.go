// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package tailnetsim

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// load reads the state file. A file that does not exist is an empty tailnet.
func (s *Server) load() error {
	b, err := os.ReadFile(s.opts.StateFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return errors.Wrap(err, "cannot read the state file")
	}
	st := &state{}
	if err := json.Unmarshal(b, st); err != nil {
		return errors.Wrap(err, "cannot decode the state file")
	}
	if st.NoiseKey.IsZero() || st.LegacyKey.IsZero() {
		return errors.New("cannot use the state file: it has no server key")
	}
	st.fill()
	s.st = st
	return s.loadLock()
}

// saver writes the state file soon after changes, many changes at once.
type saver struct {
	s    *Server
	ch   chan struct{}
	done chan struct{}
}

func newSaver(s *Server) *saver {
	v := &saver{s: s, ch: make(chan struct{}, 1), done: make(chan struct{})}
	go v.run()
	return v
}

func (v *saver) kick() {
	select {
	case v.ch <- struct{}{}:
	default:
	}
}

func (v *saver) run() {
	defer close(v.done)
	for {
		select {
		case <-v.s.ctx.Done():
			return
		case <-v.ch:
		}
		if err := v.write(); err != nil {
			v.s.log.Error("Cannot save state", "error", err)
		}
		select {
		case <-v.s.ctx.Done():
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// close writes a last time. Server.cancel must have been called.
func (v *saver) close() error {
	<-v.done
	return v.write()
}

func (v *saver) write() error {
	v.s.mu.Lock()
	b, err := json.Marshal(v.s.st)
	v.s.mu.Unlock()
	if err != nil {
		return errors.Wrap(err, "cannot encode the state")
	}
	f, err := os.CreateTemp(filepath.Dir(v.s.opts.StateFile), ".tailnetsim-*")
	if err != nil {
		return errors.Wrap(err, "cannot create a state file")
	}
	_, err = f.Write(b)
	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(errors.Wrap(err, "cannot write the state file"), os.Remove(f.Name()))
	}
	return errors.Wrap(os.Rename(f.Name(), v.s.opts.StateFile), "cannot replace the state file")
}
