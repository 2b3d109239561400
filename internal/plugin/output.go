// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf16"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	"github.com/tailscale-gateway/tailscale-gateway/internal/orphans"
)

// A row is one item in the output.
type row struct {
	// Tailnet is the provider config or the credential of the item's tailnet, or the cluster
	// itself.
	Tailnet string `json:"tailnet"`

	orphans.Item `json:",inline"`

	// Result is what the command did, or would do with --delete.
	Result string `json:"result"`
}

// An output is what the command orphans prints. Its fields are stable.
type output struct {
	DryRun bool  `json:"dryRun"`
	Items  []row `json:"items"`

	// NotRead are parts of tailnets that the credential may not read.
	NotRead []string `json:"notRead,omitempty"`

	// Others and Unknown are the numbers of items of other clusters, and of those whose mark does
	// not show the cluster, by tailnet: --all lists them.
	Others  map[string]int `json:"others,omitempty"`
	Unknown map[string]int `json:"unknown,omitempty"`

	Clusters map[string]string `json:"clusterIDs"`
}

func (o *output) add(s scan, results map[orphans.Item]string, all bool) {
	if o.Clusters == nil {
		o.Clusters, o.Others, o.Unknown = map[string]string{}, map[string]int{}, map[string]int{}
	}
	if s.report.Cluster != "" {
		o.Clusters[s.target.name] = s.report.Cluster
	}
	for _, n := range s.view.notRead {
		o.NotRead = append(o.NotRead, s.target.name+": "+n)
	}
	for _, i := range s.report.Items {
		switch i.Verdict {
		case orphans.VerdictOther:
			o.Others[s.target.name]++
		case orphans.VerdictUnknown:
			o.Unknown[s.target.name]++
		case orphans.VerdictOrphan:
		}
		if !all && i.Verdict != orphans.VerdictOrphan {
			continue
		}
		r := row{Tailnet: s.target.name, Item: i, Result: results[i]}
		switch {
		case r.Result != "":
		case i.KeepReason != "":
			r.Result = resultStays + i.KeepReason
		default:
			r.Result = "would be deleted"
		}
		o.Items = append(o.Items, r)
	}
}

// left returns the number of orphans that remain.
func (o *output) left() int {
	n := 0
	for _, r := range o.Items {
		if r.Verdict == orphans.VerdictOrphan && r.Result != resultDeleted {
			n++
		}
	}
	return n
}

func (o *output) print(w io.Writer, format string, at time.Time) error {
	if format == "table" {
		return o.table(w, at)
	}
	return encode(w, format, o)
}

// ascii escapes all other characters of a JSON text, because a terminal may obey them.
func ascii(b []byte) []byte {
	out := make([]byte, 0, len(b))
	for _, r := range string(b) {
		if r < 0x7f {
			out = append(out, byte(r))
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			out = fmt.Appendf(out, "\\u%04x", unit)
		}
	}
	return out
}

func (o *output) table(w io.Writer, at time.Time) error {
	if len(o.Items) > 0 {
		t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
		fmt.Fprintln(t, "TAILNET\tKIND\tNAME\tTEXT\tOWNER\tCLUSTER\tAGE\tLAST SEEN\tREASON\tRESULT")
		for _, r := range o.Items {
			cells := []string{r.Tailnet, string(r.Kind), r.Name, r.Text, r.Owner, r.Cluster, since(r.Created, at), r.seen(at), r.Reason, r.Result}
			for n := range cells {
				if cells[n] = Quoted(cells[n]); cells[n] == "" {
					cells[n] = "-"
				}
			}
			fmt.Fprintln(t, strings.Join(cells, "\t"))
		}
		if err := t.Flush(); err != nil {
			return errors.Wrap(err, "cannot print")
		}
		fmt.Fprintln(w)
	}
	_, err := io.WriteString(w, o.summary())
	return errors.Wrap(err, "cannot print")
}

func (r row) seen(at time.Time) string {
	if r.Online {
		return "online"
	}
	return since(r.LastSeen, at)
}

func since(t *metav1.Time, at time.Time) string {
	if t == nil {
		return ""
	}
	return orphans.Duration(max(at.Sub(t.Time), 0))
}

// summary returns the lines below the table.
func (o *output) summary() string {
	out := &strings.Builder{}
	devices, deletable := 0, 0
	for _, r := range o.Items {
		if r.Verdict == orphans.VerdictOrphan && r.Kind == orphans.KindDevice && r.Result != resultDeleted {
			devices++
		}
		if r.Result == "would be deleted" {
			deletable++
		}
	}
	fmt.Fprintf(out, "%d orphans left", o.left())
	if o.DryRun && deletable > 0 {
		fmt.Fprintf(out, "; --delete deletes %d", deletable)
	}
	out.WriteString(".\n")
	if devices > 0 {
		// The plans of Tailscale limit the number of devices (tailscale.com/kb/1251/pricing-faq).
		fmt.Fprintf(out, "%d of them are devices, which count toward the device limit of the tailnet's plan.\n", devices)
	}
	for _, name := range sortedKeys(o.Clusters) {
		fmt.Fprintf(out, "%s: the cluster ID is %s", Quoted(name), Quoted(o.Clusters[name]))
		if n := o.Others[name]; n > 0 {
			fmt.Fprintf(out, "; other clusters have %d objects without an object here", n)
		}
		if n := o.Unknown[name]; n > 0 {
			fmt.Fprintf(out, "; the mark of %d keys does not show the cluster", n)
		}
		out.WriteString(".\n")
	}
	for _, n := range o.NotRead {
		fmt.Fprintf(out, "Not read: %s\n", Quoted(n))
	}
	return out.String()
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// Quoted returns a text as it is if a terminal shows it as it is, and quoted otherwise: users of a
// tailnet choose names, and a terminal obeys control characters.
func Quoted(s string) string {
	for _, r := range s {
		if r < 0x20 || r > 0x7e {
			return strconv.QuoteToASCII(s)
		}
	}
	return s
}
