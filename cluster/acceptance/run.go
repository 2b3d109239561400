// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/tailscale"
	"github.com/tailscale-gateway/tailscale-gateway/internal/version"
)

const (
	// rowsDir is the folder of the rows' files, and summaryFile the file about all rows.
	rowsDir     = "rows"
	summaryFile = "summary.json"

	// cleanupTimeout bounds a cleanup after a row or at the end, also after a signal.
	cleanupTimeout = 5 * time.Minute
)

type runCmd struct {
	options
}

// A run is one pass over the rows.
type run struct {
	opts     *options
	prefix   string
	session  *session
	cred     credential
	ledger   *ledger
	progress *progress
	secret   *redactor
	nodes    nodes

	// egress is the proxy that rows connect from, once it is started.
	egress *proxy

	// web is the service that carries traffic, once it exists.
	web tailscale.Service

	// locked is the error with which the API rejects the credential.
	locked error

	// unhosted is the error because of which no node can host web.
	unhosted error
}

// A summary holds the results of a run, without exchanges.
type summary struct {
	Version string    `json:"version"`
	Began   time.Time `json:"began"`
	Took    float64   `json:"took"`
	APIURL  string    `json:"apiURL"`
	Tailnet string    `json:"tailnet"`
	Prefix  string    `json:"prefix"`
	Tag     string    `json:"tag"`

	Credential string         `json:"credential"`
	Flags      []need         `json:"flags,omitempty"`
	Counts     map[string]int `json:"counts"`
	Rows       []result       `json:"rows"`
}

// Help implements kong.HelpProvider.
func (c *runCmd) Help() string { return help }

// Run runs the rows, or cleans up after a run.
func (c *runCmd) Run(ctx context.Context, out io.Writer) error {
	pattern, err := c.check()
	if err != nil {
		return err
	}
	cred, err := takeCredential()
	if err != nil {
		return err
	}
	l, err := openLedger(c.Out)
	if err != nil {
		return err
	}
	r := &run{opts: &c.options, cred: cred, ledger: l, progress: &progress{out: out}, secret: &redactor{}}
	if r.session, err = newSession(r.opts, cred, r.secret); err != nil {
		return errors.Join(err, l.close())
	}
	if c.Cleanup {
		return errors.Join(r.cleanup(ctx), l.close())
	}
	return errors.Join(r.all(ctx, func(row row) bool { return pattern.MatchString(row.id()) }), l.close())
}

// cleaner returns a cleaner that calls the API through a session.
func (r *run) cleaner(s *session) *cleaner {
	return &cleaner{ledger: r.ledger, s: s, cluster: r.clusterRemover()}
}

// clusterRemover returns a function that removes objects of the cluster, or nil without one.
func (r *run) clusterRemover() func(context.Context, object) error {
	if r.opts.Kubeconfig == "" {
		return nil
	}
	return func(ctx context.Context, o object) error {
		c, err := newCluster(r.opts.Kubeconfig)
		if err != nil {
			return err
		}
		return c.remove(ctx, o)
	}
}

// cleanup removes the objects of a run that ended before it removed them.
func (r *run) cleanup(ctx context.Context) error {
	if r.opts.Prefix != "" {
		return r.cleanupByName(ctx)
	}
	remaining := r.ledger.left()
	if r.ledger.lastRun().Name == "" {
		return usageError{errors.Errorf("--out has no ledger: pass the prefix of the objects as --prefix, which begins with %s", prefixRoot)}
	}
	if len(remaining) > 0 {
		location, err := r.place(ctx)
		if err != nil {
			return err
		}
		if err := r.ledger.lastRun().errElsewhere(location); err != nil {
			return usageError{err}
		}
	}
	r.progress.printf("Removing the objects in %s.\n", filepath.Join(r.opts.Out, ledgerFile))
	c := r.cleaner(r.session)
	if err := c.named(ctx, remaining); err != nil {
		return err
	}
	r.progress.printf("Removed %d objects of the ledger.\n", len(remaining))
	return r.strangers(ctx, r.ledger.lastRun().Name)
}

// cleanupByName lists the objects whose names have the prefix, and removes them if --yes confirms
// the list. Without the ledger, only its name shows that an object belongs to a run.
func (r *run) cleanupByName(ctx context.Context) error {
	c := r.cleaner(r.session)
	found, err := c.found(ctx, r.opts.Prefix)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		r.progress.printf("No object is named %s-...\n", r.opts.Prefix)
		return nil
	}
	r.progress.printf("Objects of tailnet %s at %s that are named %s-...:\n", r.opts.Tailnet, r.opts.APIURL, r.opts.Prefix)
	for _, o := range found {
		r.progress.printf("  %s %s\n", o.kind, o.name)
	}
	if !r.opts.Confirmed {
		return usageError{errors.New("nothing was removed: to remove the objects of this list, add --yes")}
	}
	if err := c.remove(ctx, found); err != nil {
		return err
	}
	r.progress.printf("Removed %d objects.\n", len(found))
	return nil
}

// strangers returns an error that lists objects with the run's prefix that are not in its ledger:
// the product did not remove them, or somebody else created them.
func (r *run) strangers(ctx context.Context, prefix string) error {
	found, err := r.cleaner(r.session).found(ctx, prefix)
	if err != nil || len(found) == 0 {
		return err
	}
	return errors.Errorf("objects with the prefix that are not in the ledger stay: %s; list them with --cleanup --prefix=%s", listed(found), prefix)
}

// all runs the rows that match, removes the objects that they created, and returns an error if one
// fails.
func (r *run) all(ctx context.Context, match func(row) bool) error {
	if remaining := r.ledger.left(); len(remaining) > 0 {
		return usageError{errors.Errorf("%s lists %d objects of an earlier run: run with --cleanup first, or with another --out", filepath.Join(r.opts.Out, ledgerFile), len(remaining))}
	}
	r.prefix = cmp.Or(r.opts.Prefix, newPrefix())
	var rows []row
	for _, row := range table() {
		if match(row) {
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return usageError{errors.New("no row matches --only")}
	}
	if r.locked = r.knock(ctx); ctx.Err() != nil {
		return errors.Wrap(ctx.Err(), "stopped before anything was created")
	}
	if err := r.prepare(ctx); err != nil {
		return err
	}
	r.announce(rows)
	if r.locked != nil {
		r.progress.printf("The API rejects the credential: %v\n\n", r.locked)
	}

	began := time.Now()
	var results []*result
	for i, row := range rows {
		r.progress.began(i+1, len(rows), row)
		res := r.one(ctx, row)
		results = append(results, res)
		r.progress.ended(res)
		if err := r.keep(i, res); err != nil {
			return errors.Join(err, r.end(ctx))
		}
	}
	endErr := r.end(ctx)
	s := r.summarize(results, began)
	if err := writeJSON(filepath.Join(r.opts.Out, summaryFile), s); err != nil {
		return errors.Join(err, endErr)
	}
	r.progress.printf("\n%d PASS, %d FAIL, %d SKIP in %s: %s\n", s.Counts[outcomePass], s.Counts[outcomeFail], s.Counts[outcomeSkip],
		time.Since(began).Round(time.Second), filepath.Join(r.opts.Out, summaryFile))
	for _, res := range results {
		if res.Outcome == outcomeFail {
			r.progress.printf("  FAIL %s/%s: %s\n", res.Section, res.Name, res.Reason)
		}
	}
	switch {
	case r.locked != nil:
		return errors.Wrap(r.locked, "the API rejects the credential")
	case endErr != nil:
		return errors.Wrap(endErr, "objects of the run may remain, see --cleanup")
	case ctx.Err() != nil:
		return errors.New("stopped by a signal; all created objects are removed")
	case s.Counts[outcomeFail] > 0:
		return errors.Errorf("%d rows failed", s.Counts[outcomeFail])
	}
	return nil
}

// prepare checks that the prefix is free, creates the folder of results, and records the run in the
// ledger.
func (r *run) prepare(ctx context.Context) error {
	if r.opts.Prefix != "" && r.locked == nil {
		found, err := r.cleaner(r.session).found(ctx, r.prefix)
		if err != nil {
			return err
		}
		if len(found) > 0 {
			return usageError{errors.Errorf("prefix %s is taken, by %s: choose another, or remove them with --cleanup", r.prefix, listed(found))}
		}
	}
	dir := filepath.Join(r.opts.Out, rowsDir)
	if err := os.RemoveAll(dir); err != nil {
		return errors.Wrap(err, "cannot remove an earlier run's results")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return errors.Wrap(err, "cannot create the folder of results")
	}
	location := place{APIURL: r.opts.APIURL, Tailnet: r.opts.Tailnet, Credential: r.cred.fingerprint()}
	if r.locked == nil {
		var err error
		if location, err = r.place(ctx); err != nil {
			return err
		}
	}
	return r.ledger.begin(r.prefix, location)
}

// flags returns the flags that were set.
func (r *run) flags() []need {
	var out []need
	for _, n := range []need{needWrite, needPolicy, needSettings, needCerts, needKubeconfig} {
		if _, lacks := r.opts.lacks(row{needs: []need{n}}); !lacks {
			out = append(out, n)
		}
	}
	return out
}

// announce prints what the run changes.
func (r *run) announce(rows []row) {
	o := r.opts
	r.progress.printf("Tailnet %s at %s, with the %s.\n", o.Tailnet, o.APIURL, r.cred.kind())
	r.progress.printf("The names of all created objects begin with %s. The run removes the objects at the end.\n", r.prefix)
	for _, n := range []struct {
		need        need
		description string
	}{
		{needWrite, "services, auth keys and nodes tagged " + o.Tag + ", split-DNS domains, webhooks, attributes of an additional node"},
		{needPolicy, "one comment at the end of the policy file, and entries for a service and an address of the run alone"},
		{needSettings, "the tailnet's route selection: each of its values for some seconds, and then the current value again"},
		{needCerts, "one certificate of a service, from the issuer that the tailnet uses"},
		{needKubeconfig, "a namespace and a TailscaleTailnet in that cluster; the credential goes into a Secret there"},
	} {
		verb := "  leaves alone  "
		if _, lacks := o.lacks(row{needs: []need{n.need}}); !lacks {
			verb = "  MAKES         "
		}
		r.progress.printf("%s%-13s %s\n", verb, n.need, n.description)
	}
	r.progress.printf("Ledger and results: %s. %d rows:\n\n", o.Out, len(rows))
}

// one runs a row.
func (r *run) one(ctx context.Context, row row) *result {
	res := &result{Section: row.section, Name: row.name, About: row.about, Observed: map[string]any{}, Seconds: map[string]float64{}, Began: time.Now().UTC()}
	t := &turn{session: r.session, rec: &recorder{secret: r.secret}, run: r, row: row, res: res}
	err := r.guarded(t.rec.attach(ctx), t)
	res.Took = float64(time.Since(res.Began).Milliseconds()) / 1000
	res.Exchanges = t.rec.exchanges()
	var s skip
	switch {
	case err == nil:
		res.Outcome = outcomePass
	case errors.As(err, &s):
		res.Outcome, res.Skip, res.Reason = outcomeSkip, s.kind, r.secret.text(s.Error())
	case ctx.Err() != nil:
		res.Outcome, res.Skip, res.Reason = outcomeSkip, skipStopped, "stopped by a signal"
	default:
		res.Outcome, res.Reason = outcomeFail, r.secret.text(err.Error())
	}
	return res
}

// guarded runs a row, converts a panic into an error, and removes the objects that only the row
// uses.
func (r *run) guarded(ctx context.Context, t *turn) (err error) {
	if ctx.Err() != nil {
		return skipf(skipStopped, "stopped by a signal")
	}
	if r.locked != nil && t.row.section != sectionCredential {
		return skipf(skipMissing, "the API rejects the credential")
	}
	if n, lacks := r.opts.lacks(t.row); lacks {
		return skipf(skipFlag, "needs %s", n)
	}
	defer func() {
		if v := recover(); v != nil {
			err = errors.Errorf("panic: %v: %s", v, debug.Stack())
		}
		err = errors.Join(err, r.afterRow(ctx, t))
	}()
	return t.row.run(ctx, t)
}

// afterRow removes the objects that only the row uses. Nodes stay until the end.
func (r *run) afterRow(ctx context.Context, t *turn) error {
	var remaining []entry
	for _, e := range r.ledger.left() {
		if e.Row == t.row.id() {
			remaining = append(remaining, e)
		}
	}
	if len(remaining) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	return errors.Wrap(r.cleaner(t.session).named(ctx, remaining), "cannot remove the row's objects")
}

// end removes the objects in the ledger, and looks for objects that are not in it.
func (r *run) end(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	closeErr := r.nodes.close()
	if r.egress != nil {
		_, err := r.egress.stop()
		closeErr = errors.Join(closeErr, err)
	}
	if r.locked != nil {
		// Nothing was created, and nothing can be removed.
		return closeErr
	}
	if err := errors.Join(closeErr, r.cleaner(r.session).named(ctx, r.ledger.left())); err != nil {
		return err
	}
	return r.strangers(ctx, r.prefix)
}

// keep writes a row's file.
func (r *run) keep(i int, res *result) error {
	return writeJSON(filepath.Join(r.opts.Out, rowsDir, fmt.Sprintf("%02d-%s-%s.json", i+1, res.Section, res.Name)), res)
}

func (r *run) summarize(results []*result, began time.Time) summary {
	s := summary{
		Version: version.Version, Began: began.UTC(), Took: time.Since(began).Seconds(), APIURL: r.opts.APIURL, Tailnet: r.opts.Tailnet,
		Prefix: r.prefix, Tag: r.opts.Tag, Credential: r.cred.kind(), Flags: r.flags(), Counts: map[string]int{},
	}
	for _, res := range results {
		short := *res
		short.Exchanges = nil
		s.Rows = append(s.Rows, short)
		s.Counts[res.Outcome]++
	}
	return s
}

func writeJSON(path string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return errors.Wrapf(err, "cannot encode %s", path)
	}
	return errors.Wrapf(os.WriteFile(path, append(b, '\n'), 0o600), "cannot write %s", path)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
