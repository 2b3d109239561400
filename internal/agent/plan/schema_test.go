// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// agentSchema returns the schema of what an agent reports.
func agentSchema(t *testing.T) apiextensionsv1.JSONSchemaProps {
	t.Helper()
	b, err := os.ReadFile("../../../package/provider/crds/tailnet.gateway.tailscale.com_machines.yaml")
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(b, crd); err != nil {
		t.Fatal(err)
	}
	out, ok := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties["agent"]
	if !ok {
		t.Fatal("the schema has no status.agent")
	}
	return out
}

// unlimited returns the fields without a maximum below a schema.
func unlimited(path string, s apiextensionsv1.JSONSchemaProps) []string {
	var out []string
	switch s.Type {
	case "string":
		if s.MaxLength == nil && len(s.Enum) == 0 {
			out = append(out, path)
		}
	case "array":
		if s.MaxItems == nil {
			out = append(out, path)
		}
		out = append(out, unlimited(path+"[]", *s.Items.Schema)...)
	}
	for name, p := range s.Properties {
		out = append(out, unlimited(path+"."+name, p)...)
	}
	return out
}

// TestAgentStatusIsLimited verifies that a compromised pod cannot report texts or lists of any size.
func TestAgentStatusIsLimited(t *testing.T) {
	if got := unlimited("status.agent", agentSchema(t)); len(got) > 0 {
		t.Errorf("fields without a maximum: %v", got)
	}
}

// TestAgentStatusFits verifies that the API server accepts the longest message of a service:
// otherwise the agent could report nothing.
func TestAgentStatusFits(t *testing.T) {
	services := []Service{{Name: "svc:web", Message: strings.Repeat("ä", 1<<20)}}
	got := Status("10.0.0.1", services, Tailnet{Running: true}).Services[0].Message
	most := *agentSchema(t).Properties["services"].Items.Schema.Properties["message"].MaxLength
	if n := utf8.RuneCountInString(got); got == "" || int64(n) > most || len(got) > int(most) {
		t.Errorf("a message has %d bytes, and the schema allows %d", len(got), most)
	}
}
