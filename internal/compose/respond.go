// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package compose

import (
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
	xpv2 "github.com/crossplane/crossplane/apis/v2/core/v2"
	fnv1 "github.com/crossplane/function-sdk-go/proto/v1"
)

// Respond runs a function of a kind for a request, and returns the response. An error of the
// function is a fatal result, and conditions of these types carry it, see Run.Fatal.
func Respond(log logging.Logger, kind string, req *fnv1.RunFunctionRequest, run func(*Run) error, types ...xpv2.ConditionType) *fnv1.RunFunctionResponse {
	log = log.WithValues("tag", req.GetMeta().GetTag())
	r := NewRun(req)
	if err := run(r); err != nil {
		log.Info("Cannot compose "+kind, "error", err)
		return r.Fatal(err, types...)
	}
	log.Debug("Composed " + kind)
	return r.Response()
}
