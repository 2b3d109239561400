// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package sidebyside

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"sync"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A Journal keeps in the files of a folder what explains a lost request: the logs of pods, also of
// those that are deleted, what a measurement notes, and the logs of the lab's programs.
type Journal struct {
	lab    *Lab
	folder string

	followers sync.WaitGroup

	mu    sync.Mutex
	cause error
}

// NewJournal returns a Journal in a folder, without the files of an earlier one.
func (l *Lab) NewJournal(folder string) (*Journal, error) {
	if err := os.RemoveAll(folder); err != nil {
		return nil, errors.Wrap(err, "cannot remove the earlier journal")
	}
	return &Journal{lab: l, folder: folder}, errors.Wrap(os.MkdirAll(folder, 0o755), "cannot create a folder for the journal")
}

// Follow appends the log of a pod's containers to a file with the pod's name, until the pod is gone
// or the context ends.
func (j *Journal) Follow(ctx context.Context, namespace, pod string) {
	j.followers.Go(func() {
		err := j.run(ctx, pod, "kubectl", "logs", "--follow", "--all-containers", "--prefix", "--timestamps", "--namespace="+namespace, pod)
		if ctx.Err() == nil {
			j.keep(err)
		}
	})
}

// Note appends a line with the time to a file.
func (j *Journal) Note(file, format string, args ...any) {
	f, err := j.open(file)
	if err != nil {
		j.keep(err)
		return
	}
	_, err = f.WriteString(time.Now().UTC().Format(time.RFC3339Nano) + " " + fmt.Sprintf(format, args...) + "\n")
	j.keep(errors.Wrap(errors.Join(err, f.Close()), "cannot write a file of the journal"))
}

// Close adds the logs of programs of the lab, as lab logs has them, and those of pods: pairs of a
// namespace and a label. It waits for followers, whose context must have ended.
func (j *Journal) Close(ctx context.Context, programs []string, pods [][2]string) error {
	for _, p := range programs {
		j.keep(j.run(ctx, p, "logs", "--lines=0", p))
	}
	for _, p := range pods {
		j.keep(j.run(ctx, path.Base(p[1]), "kubectl", "logs", "--namespace="+p[0], "--selector="+p[1], "--prefix", "--timestamps", "--tail=-1"))
	}
	j.followers.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.cause
}

// run appends the output of a command of the lab to a file.
func (j *Journal) run(ctx context.Context, file string, args ...string) error {
	f, err := j.open(file)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, j.lab.program, args...)
	cmd.Stdout, cmd.Stderr = f, f
	return errors.Wrapf(errors.Join(cmd.Run(), f.Close()), "cannot keep the log of %s", file)
}

func (j *Journal) open(file string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(j.folder, file+".log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	return f, errors.Wrap(err, "cannot open a file of the journal")
}

func (j *Journal) keep(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.cause = errors.Join(j.cause, err)
}
