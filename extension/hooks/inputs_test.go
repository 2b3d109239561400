//go:build integration

// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os/exec"
	"slices"
	"strconv"
	"testing"

	pb "github.com/envoyproxy/gateway/proto/extension"
	"google.golang.org/protobuf/proto"

	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
)

// allInputs selects all inputs instead of a sample.
var allInputs = flag.Bool("inputs", false, "translate all of Envoy Gateway's inputs instead of each sixth")

// oneInput selects a single input.
var oneInput = flag.String("input", "", "translate this one of Envoy Gateway's inputs alone")

// sampled is the number of inputs for each input in the sample.
const sampled = 6

// TestInputs runs Envoy Gateway's own translators over the inputs of Envoy Gateway's tests, with
// Tailscale backends in place of Services. Replicas of the extension that know all objects, some of
// them, or others answer the hooks. TestGoldens covers messages that do not come from resources.
func TestInputs(t *testing.T) {
	translator := program(t, "envoy-gateway-inputs", "TEST_ASSET_ENVOY_GATEWAY_INPUTS")
	envoy := program(t, "envoy", "TEST_ASSET_ENVOY")
	var ins []*input
	for i, doc := range loadInputs(t) {
		if *oneInput == doc.name || *oneInput == "" && (*allInputs || i%sampled == 0) {
			ins = append(ins, doc)
		}
	}
	j := newValidator(t, envoy)
	messages := 0
	for _, batch := range inTwelves(ins) {
		var cases []*replaced
		for _, doc := range batch {
			for _, mode := range []replacement{replaceNone, replaceSecond, replaceAll} {
				cases = append(cases, doc.replace(mode))
			}
		}
		answers := translateInputs(t, translator, cases)
		for i := 0; i < len(cases); i += 3 {
			none, second, all := cases[i], cases[i+1], cases[i+2]
			messages += tryInput(t, j, "none", none, answers[i], all)
			messages += tryInput(t, j, "second", second, answers[i+1], none, all)
			messages += tryInput(t, j, "all", all, answers[i+2], none, second)
		}
		j.validate()
	}
	// Each input makes at least one message, three times and with both schemes of names.
	if messages < 5*len(ins) {
		t.Errorf("Envoy Gateway makes %d messages of %d inputs, want more", messages, len(ins))
	}
	t.Logf("%d inputs make %d messages; Envoy validates %d answers, those of %d inputs without filters, and refuses %d messages", len(ins), messages, j.validated, len(j.withoutFilters), j.refused)
	if *oneInput == "" && (j.refused*20 > j.validated || len(j.withoutFilters)*20 > len(ins)) {
		t.Errorf("Envoy refuses too many messages for this test to be meaningful")
	}
}

// silentInputs are the inputs of which Envoy Gateway makes no message, with the reason.
var silentInputs = map[string]string{
	"backend-invalid-hostname-address":                          noGateway,
	"backend-with-localhost-host-infra":                         noGateway,
	"envoypatchpolicy-no-status-for-unknown-gateway":            noGateway,
	"httproute-with-urlrewrite-filter-regex-match-replace-http": "Envoy Gateway refuses what it makes of the input: a redirect filter has a path modifier without a replacement",
}

const noGateway = "the input has no Gateway"

// TestInputsMakeMessages checks that Envoy Gateway makes a message of each input: TestInputs would not
// notice one of which it makes none.
func TestInputsMakeMessages(t *testing.T) {
	translator := program(t, "envoy-gateway-inputs", "TEST_ASSET_ENVOY_GATEWAY_INPUTS")
	seen := map[string]bool{}
	for _, ins := range inTwelves(loadInputs(t)) {
		var cases []*replaced
		for _, doc := range ins {
			cases = append(cases, doc.replace(replaceNone))
		}
		for i, a := range translateInputs(t, translator, cases) {
			name := ins[i].name
			seen[name] = true
			makes := slices.ContainsFunc(a.Messages, func(m inputMessage) bool { return len(m.Request) > 0 })
			if reason := silentInputs[name]; makes != (reason == "") {
				t.Errorf("%s makes a message: %t, and the reason for none is %q", name, makes, reason)
			}
		}
	}
	for name := range silentInputs {
		if !seen[name] {
			t.Errorf("there is no input %s", name)
		}
	}
}

// program returns the path of a program of the lab.
func program(t *testing.T, name, variable string) string {
	t.Helper()
	root, err := apiserver.Root()
	if err != nil {
		t.Fatal(err)
	}
	out, err := apiserver.Program(t.Context(), root, name, variable)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func inTwelves(ins []*input) [][]*input {
	var out [][]*input
	for len(ins) > 12 {
		out, ins = append(out, ins[:12]), ins[12:]
	}
	return append(out, ins)
}

// An inputAnswer holds the output of the translators for an input, as in the command's own types.
type inputAnswer struct {
	Name     string
	Messages []inputMessage
}

type inputMessage struct {
	Gateway string
	Naming  int
	Request []byte
}

// translateInputs runs Envoy Gateway's translators.
func translateInputs(t *testing.T, translator string, cases []*replaced) []inputAnswer {
	t.Helper()
	var stdin, out bytes.Buffer
	e := json.NewEncoder(&stdin)
	for _, c := range cases {
		if err := e.Encode(object{"name": c.input.name, "resources": c.resources(), "features": c.features}); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), translator)
	var output bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = &stdin, &out, &output
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, output.String())
	}
	d := json.NewDecoder(&out)
	as := make([]inputAnswer, len(cases))
	for i := range as {
		if err := d.Decode(&as[i]); err != nil {
			t.Fatal(err)
		}
	}
	return as
}

// tryInput checks all replicas, and returns the number of messages that Envoy Gateway makes of the
// input.
func tryInput(t *testing.T, j *validator, mode string, r *replaced, a inputAnswer, same ...*replaced) int {
	t.Helper()
	n := 0
	ks := r.replicas(t, same...)
	for _, m := range a.Messages {
		if len(m.Request) == 0 {
			continue
		}
		n++
		for _, k := range ks {
			name := r.input.name + "/" + mode + "/" + m.Gateway + "/v" + strconv.Itoa(m.Naming) + "/" + k.name
			t.Run(name, func(t *testing.T) {
				c := &inputCheck{T: t, replica: k, message: decodeRequest(t, m.Request)}
				c.answer = answerInput(t, k, decodeRequest(t, m.Request))
				c.check()
				j.add(r.input.name, name, c.message, c.answer)
			})
		}
	}
	return n
}

func decodeRequest(t *testing.T, b []byte) *pb.PostTranslateModifyRequest {
	t.Helper()
	r := &pb.PostTranslateModifyRequest{}
	if err := proto.Unmarshal(b, r); err != nil {
		t.Fatal(err)
	}
	return r
}

// answerInput returns a replica's answer to a message.
func answerInput(t *testing.T, k replica, r *pb.PostTranslateModifyRequest) *pb.PostTranslateModifyRequest {
	t.Helper()
	rsp, err := NewServer(k.store, testSources).PostTranslateModify(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	return &pb.PostTranslateModifyRequest{
		PostTranslateContext: r.GetPostTranslateContext(), Clusters: rsp.GetClusters(), Secrets: rsp.GetSecrets(), Listeners: rsp.GetListeners(), Routes: rsp.GetRoutes(),
	}
}
