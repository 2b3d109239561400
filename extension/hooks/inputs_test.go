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
	"strconv"
	"testing"

	pb "github.com/envoyproxy/gateway/proto/extension"
	"google.golang.org/protobuf/proto"

	"github.com/tailscale-gateway/tailscale-gateway/test/apiserver"
)

// allInputs are tried instead of some.
var allInputs = flag.Bool("inputs", false, "translate all of Envoy Gateway's inputs instead of each sixth") //nolint:gochecknoglobals // A flag.

// oneInput is tried alone.
var oneInput = flag.String("input", "", "translate this one of Envoy Gateway's inputs alone") //nolint:gochecknoglobals // A flag.

// sampled is how many inputs one that is tried stands for.
const sampled = 6

// TestInputs has Envoy Gateway's own translators translate what Envoy Gateway's own tests do,
// with our kinds in the place of Services, and hooks answer that to what replicas of the
// extension make of it that know all of it, some, or something else. TestGoldens has what
// does not come from resources.
func TestInputs(t *testing.T) {
	root, err := apiserver.Root()
	if err != nil {
		t.Fatal(err)
	}
	translator, err := apiserver.Program(t.Context(), root, "envoy-gateway-inputs", "TEST_ASSET_ENVOY_GATEWAY_INPUTS")
	if err != nil {
		t.Fatal(err)
	}
	envoy, err := apiserver.Program(t.Context(), root, "envoy", "TEST_ASSET_ENVOY")
	if err != nil {
		t.Fatal(err)
	}
	var ins []*input
	for i, in := range loadInputs(t) {
		if *oneInput == in.name || *oneInput == "" && (*allInputs || i%sampled == 0) {
			ins = append(ins, in)
		}
	}
	j := newJudge(t, envoy)
	messages := 0
	for _, of := range inTwelves(ins) {
		var cases []*replaced
		for _, in := range of {
			for _, which := range []replacement{replaceNone, replaceSecond, replaceAll} {
				cases = append(cases, in.replace(which))
			}
		}
		answers := translateInputs(t, translator, cases)
		for i := 0; i < len(cases); i += 3 {
			none, second, all := cases[i], cases[i+1], cases[i+2]
			messages += tryInput(t, j, "none", none, answers[i], all)
			messages += tryInput(t, j, "second", second, answers[i+1], none, all)
			messages += tryInput(t, j, "all", all, answers[i+2], none, second)
		}
		j.judge()
	}
	// Each input makes a message at least, three times and by both schemes of names.
	if messages < 5*len(ins) {
		t.Errorf("Envoy Gateway makes %d messages of %d inputs, want more", messages, len(ins))
	}
	t.Logf("%d inputs make %d messages; Envoy judges %d answers, those of %d inputs without filters, and refuses %d as they came", len(ins), messages, j.judged, len(j.bare), j.before)
	if *oneInput == "" && (j.before*20 > j.judged || len(j.bare)*20 > len(ins)) {
		t.Errorf("Envoy refuses too much as it came for its judgement to mean anything")
	}
}

func inTwelves(ins []*input) [][]*input {
	var out [][]*input
	for len(ins) > 12 {
		out, ins = append(out, ins[:12]), ins[12:]
	}
	return append(out, ins)
}

// An inputAnswer is what the translators make of an input. See the command's own types.
type inputAnswer struct {
	Name     string
	Messages []struct {
		Gateway string
		Naming  int
		Request []byte
	}
}

// translateInputs by Envoy Gateway's translators.
func translateInputs(t *testing.T, translator string, cases []*replaced) []inputAnswer {
	t.Helper()
	var in, out bytes.Buffer
	e := json.NewEncoder(&in)
	for _, c := range cases {
		if err := e.Encode(object{"name": c.input.name, "resources": c.resources(), "features": c.features}); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), translator)
	var said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = &in, &out, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, said.String())
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

// tryInput with all knowledges, and return how many messages Envoy Gateway makes of it.
func tryInput(t *testing.T, j *judge, which string, in *replaced, a inputAnswer, same ...*replaced) int {
	t.Helper()
	n := 0
	ks := in.knowledges(t, same...)
	for _, m := range a.Messages {
		if len(m.Request) == 0 {
			continue
		}
		n++
		for _, k := range ks {
			name := in.input.name + "/" + which + "/" + m.Gateway + "/v" + strconv.Itoa(m.Naming) + "/" + k.name
			t.Run(name, func(t *testing.T) {
				c := &inputCheck{T: t, knowledge: k, before: decodeRequest(t, m.Request)}
				c.after = answerInput(t, k, decodeRequest(t, m.Request))
				c.check()
				j.add(in.input.name, name, c.before, c.after)
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

// answerInput as the extension does.
func answerInput(t *testing.T, k knowledge, r *pb.PostTranslateModifyRequest) *pb.PostTranslateModifyRequest {
	t.Helper()
	rsp, err := NewServer(k.store, testSources).PostTranslateModify(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	return &pb.PostTranslateModifyRequest{
		PostTranslateContext: r.GetPostTranslateContext(), Clusters: rsp.GetClusters(), Secrets: rsp.GetSecrets(), Listeners: rsp.GetListeners(), Routes: rsp.GetRoutes(),
	}
}
