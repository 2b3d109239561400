// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Command acceptance tests the product against a real tailnet: it calls Tailscale's API as the
// product does, runs the product's controllers, joins additional nodes, sends traffic through a
// Tailscale Service, and stores every reply. It removes all objects that it created. Start with `go run
// ./cluster/acceptance --help`; docs/acceptance.md describes the rows.
//
// rows.go has the table of rows, and a file for each section has their functions. life.go runs a
// controller over an object in memory. Redaction, decoding and comparison are pure functions.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// Exit codes.
const (
	exitPass  = 0
	exitFail  = 1
	exitUsage = 2
)

const description = `Test Tailscale Gateway against a tailnet, with a real account or in the lab.`

// help is the detailed help text of a run.
const help = `It only reads unless you pass --write. It removes everything that it created: at the end, on
failure and on a signal. After a crash, run it again with --cleanup and the same --out.

The credential comes from the environment: TS_CLIENT_ID and TS_CLIENT_SECRET of an OAuth
client, or TS_CLIENT_ID and TS_ID_TOKEN of a federated identity, or TS_API_KEY. It is never
printed or written to a file.

  acceptance                          # what the credential may read
  acceptance --write --policy         # all but certificates and the cluster
  acceptance --cleanup                # after a crash
  acceptance compare DIR1 DIR2        # two runs

Exit code: 0 when no row fails, 1 when one does, 2 for a wrong command line.`

type cli struct {
	Run     runCmd     `cmd:"" default:"withargs" help:"Test Tailscale Gateway against a tailnet, with a real account or in the lab. This is the default command."`
	Compare compareCmd `cmd:"" help:"Compare the results of two runs, and the shapes of replies."`
}

// A usageError reports an invalid command line.
type usageError struct{ error }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the process immediately: the ledger lists the remaining objects.
	context.AfterFunc(ctx, stop)
	code := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code) //nolint:gocritic // stop was called.
}

// command runs a command line and returns its exit code.
func command(ctx context.Context, args []string, out, errOut io.Writer) int {
	if len(args) == 1 && (args[0] == "--help" || args[0] == "-h") {
		// The useful flags are those of the default command.
		say(out, "Commands: run (default), compare; see also compare --help.\n\n")
		args = []string{"run", "--help"}
	}
	parser, err := kong.New(&cli{}, kong.Name("acceptance"), kong.Description(description), kong.Writers(out, errOut),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.BindTo(out, (*io.Writer)(nil)))
	if err != nil {
		say(errOut, "acceptance: %v\n", err)
		return exitUsage
	}
	k, err := parser.Parse(args)
	if err != nil {
		say(errOut, "acceptance: %v; see --help\n", err)
		return exitUsage
	}
	err = k.Run()
	var usage usageError
	switch {
	case err == nil:
		return exitPass
	case errors.As(err, &usage):
		say(errOut, "acceptance: %v; see --help\n", usage)
		return exitUsage
	}
	say(errOut, "acceptance: %v\n", err)
	return exitFail
}

// say prints text for the user.
func say(w io.Writer, format string, a ...any) {
	// Losing a line of progress is no reason to stop.
	_, _ = fmt.Fprintf(w, format, a...)
}
