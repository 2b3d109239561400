// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// Expressions are an item of healthCheckExprs of a Flux Kustomization
// (fluxcd/kustomize-controller docs/spec/v1/kustomizations.md).
type Expressions struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	InProgress string `json:"inProgress,omitempty"`
	Failed     string `json:"failed,omitempty"`
	Current    string `json:"current,omitempty"`
}

// Results of Flux's health checks.
const (
	InProgress = "InProgress"
	Failed     = "Failed"
	Current    = "Current"
)

// Evaluate returns the result for an object as Flux computes it (fluxcd/pkg
// runtime/cel/status_evaluator.go): an older status.observedGeneration is InProgress, then the first
// expression that is true decides, and without any the object is InProgress. After an error, such as
// a missing field, Flux waits.
func (e *Expressions) Evaluate(o *unstructured.Unstructured) (string, error) {
	observed, found, err := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	if err != nil {
		return "", errors.Wrap(err, "cannot read the observed generation")
	}
	if found && observed != o.GetGeneration() {
		return InProgress, nil
	}
	for _, x := range []struct{ expression, result string }{{e.InProgress, InProgress}, {e.Failed, Failed}, {e.Current, Current}} {
		if x.expression == "" {
			continue
		}
		match, err := evaluate(x.expression, o.Object)
		if err != nil {
			return "", errors.Wrapf(err, "cannot evaluate whether %s %q is %s", o.GetKind(), o.GetName(), x.result)
		}
		if match {
			return x.result, nil
		}
	}
	return InProgress, nil
}

// programs are the programs of expressions, because their environment takes long to create.
var programs sync.Map

// evaluate returns the value of an expression for an object.
func evaluate(expression string, object map[string]any) (bool, error) {
	p, ok := programs.Load(expression)
	if !ok {
		compiled, err := program(expression)
		if err != nil {
			return false, err
		}
		p, _ = programs.LoadOrStore(expression, compiled)
	}
	v, _, err := p.(cel.Program).Eval(object) //nolint:errcheck,forcetypeassert // The map has nothing else.
	if err != nil {
		return false, err
	}
	b, ok := v.(types.Bool)
	if !ok {
		return false, errors.Errorf("the expression has a value of type %s", v.Type())
	}
	return bool(b), nil
}

// program returns an expression in Flux's environment (fluxcd/pkg runtime/cel/expression.go). Flux
// parses expressions without checking their types, because not every object has all fields.
func program(expression string) (cel.Program, error) {
	env, err := cel.NewEnv(cel.HomogeneousAggregateLiterals(), cel.EagerlyValidateDeclarations(true), cel.DefaultUTCTimeZone(true),
		cel.CrossTypeNumericComparisons(true), cel.OptionalTypes(), ext.Strings(), ext.Sets(), ext.Encoders())
	if err != nil {
		return nil, err
	}
	ast, issues := env.Parse(expression)
	if err := issues.Err(); err != nil {
		return nil, err
	}
	return env.Program(ast, cel.EvalOptions(cel.OptOptimize))
}
