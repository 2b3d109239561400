// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package load

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMain makes the test's binary a lab, if the first argument says so.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 || os.Args[1] != "load" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	if os.Args[2] == "--fails" {
		fmt.Fprintln(os.Stderr, "no answer")
		os.Exit(1)
	}
	fmt.Fprintln(os.Stderr, "answered")
	<-ctx.Done()
	stop()
	if err := json.NewEncoder(os.Stdout).Encode(Report{Requests: 2, Lost: 1, Errors: os.Args[2:]}); err != nil {
		os.Exit(1)
	}
}

func TestProcess(t *testing.T) {
	lab, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p, err := StartProcess(t.Context(), lab, "--gone")
	if err != nil {
		t.Fatal(err)
	}
	<-p.Begun()
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}
	got, err := p.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Report{Requests: 2, Lost: 1, Errors: []string{"--gone"}}, got); diff != "" {
		t.Errorf("Wait(): -want, +got:\n%s", diff)
	}

	if p, err = StartProcess(t.Context(), lab, "--fails"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(); err == nil || !strings.Contains(err.Error(), "no answer") {
		t.Errorf("Wait(): want the output of a lab that fails, got %v", err)
	}
}
