// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"context"
	"slices"
	"time"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// A Health is what Argo CD shows for an object.
type Health struct {
	Status, Message string
}

// Statuses of Argo CD that a check may return (argo-cd docs/operator-manual/health.md).
const (
	Healthy     = "Healthy"
	Progressing = "Progressing"
	Degraded    = "Degraded"
	Suspended   = "Suspended"
)

// luaLimit is how long a script may run. Argo CD's limit is a second, which a busy machine needs for
// the start of a script alone.
const luaLimit = 30 * time.Second

// Run runs a script with an object as Argo CD does (argo-cd util/lua/lua.go, runLua and
// ExecuteHealthLua): without Lua's standard libraries except package, base, table and a restricted
// os, which no script here uses.
func Run(script string, o *unstructured.Unstructured) (Health, error) {
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	for name, open := range map[string]lua.LGFunction{lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		if err := l.CallByParam(lua.P{Fn: l.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			return Health{}, errors.Wrapf(err, "cannot open Lua's library %q", name)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), luaLimit)
	defer cancel()
	l.SetContext(ctx)
	v, err := value(l, o.Object)
	if err != nil {
		return Health{}, err
	}
	l.SetGlobal("obj", v)
	if err := l.DoString(script); err != nil {
		return Health{}, errors.Wrapf(err, "cannot run the health check of %s %q", o.GetKind(), o.GetName())
	}
	t, ok := l.Get(-1).(*lua.LTable)
	if !ok {
		return Health{}, errors.Errorf("the health check of %s %q returns a %s", o.GetKind(), o.GetName(), l.Get(-1).Type())
	}
	out := Health{}
	t.ForEach(func(k, v lua.LValue) {
		s, ok := v.(lua.LString)
		switch {
		case !ok:
			err = errors.Errorf("the health check of %s %q returns a %s as %s", o.GetKind(), o.GetName(), v.Type(), k)
		case k == lua.LString("status"):
			out.Status = string(s)
		case k == lua.LString("message"):
			out.Message = string(s)
		default:
			err = errors.Errorf("the health check of %s %q returns the unknown field %s", o.GetKind(), o.GetName(), k)
		}
	})
	if err == nil && !slices.Contains([]string{Healthy, Progressing, Degraded, Suspended}, out.Status) {
		err = errors.Errorf("the health check of %s %q returns the status %q", o.GetKind(), o.GetName(), out.Status)
	}
	return out, err
}

// HealthOf runs the script of an object's kind, from the root of the repository.
func HealthOf(root string, o *unstructured.Unstructured) (Health, error) {
	c, err := CheckOf(o.GroupVersionKind().GroupKind())
	if err != nil {
		return Health{}, err
	}
	script, err := c.Script(root)
	if err != nil {
		return Health{}, err
	}
	return Run(script, o)
}

// value returns a part of an object as a value of Lua, as Argo CD converts it (argo-cd
// util/lua/lua.go, decodeValue).
func value(l *lua.LState, v any) (lua.LValue, error) {
	switch v := v.(type) {
	case nil:
		return lua.LNil, nil
	case bool:
		return lua.LBool(v), nil
	case string:
		return lua.LString(v), nil
	case float64:
		return lua.LNumber(v), nil
	case int64:
		return lua.LNumber(v), nil
	case []any:
		t := l.CreateTable(len(v), 0)
		for _, e := range v {
			i, err := value(l, e)
			if err != nil {
				return nil, err
			}
			t.Append(i)
		}
		return t, nil
	case map[string]any:
		t := l.CreateTable(0, len(v))
		for k, e := range v {
			i, err := value(l, e)
			if err != nil {
				return nil, err
			}
			t.RawSetString(k, i)
		}
		return t, nil
	}
	return nil, errors.Errorf("an object has a value of type %T", v)
}
