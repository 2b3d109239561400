// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
)

// DefaultSettle is how long a change waits for further changes: related changes, such as a
// service that is advertised and then accepted, go into one report. Each report causes a run of
// the controller that composed the Machine.
const DefaultSettle = time.Second

const (
	// defaultInterval is the default of the Machine's field, for a Machine without one.
	defaultInterval = 2 * time.Second

	// requestTimeout bounds one request to the API server.
	requestTimeout = 10 * time.Second

	// resync is how often the Reporter checks that its report is still there: a Machine can be
	// deleted and created again while its pod runs.
	resync = 5 * time.Minute

	minBackoff = time.Second
	maxBackoff = 30 * time.Second
)

// A Reporter writes the agent's status to its Machine: the latest status, only if it differs
// from the Machine's, and not more often than the Machine allows.
type Reporter struct {
	client Client
	key    types.NamespacedName
	log    logging.Logger
	done   func(error)
	settle time.Duration

	wake chan struct{}

	mu     sync.Mutex
	wanted *v1alpha1.MachineAgentStatus
}

// A ReporterOption configures a Reporter.
type ReporterOption func(*Reporter)

// WithSettle sets how long a change waits for further changes, in place of DefaultSettle.
func WithSettle(d time.Duration) ReporterOption {
	return func(r *Reporter) { r.settle = d }
}

// NewReporter returns a Reporter for the Machine with the given name. It calls done with the
// result of each attempt.
func NewReporter(c Client, key types.NamespacedName, log logging.Logger, done func(error), o ...ReporterOption) *Reporter {
	r := &Reporter{client: c, key: key, log: log, done: done, settle: DefaultSettle, wake: make(chan struct{}, 1)}
	for _, fn := range o {
		fn(r)
	}
	return r
}

// Set sets the status to report. The caller must not change s afterwards.
func (r *Reporter) Set(s *v1alpha1.MachineAgentStatus) {
	r.mu.Lock()
	same := equality.Semantic.DeepEqual(r.wanted, s)
	r.wanted = s
	r.mu.Unlock()
	if same {
		return
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run reports until ctx is done. It retries without limit, and logs only the first of several
// failures.
func (r *Reporter) Run(ctx context.Context) {
	backoff, failing := minBackoff, false
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		case <-time.After(resync):
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(r.settle):
		}
		// Changes that arrive in the meantime go into the next report.
		select {
		case <-r.wake:
		default:
		}

		for {
			pause, err := r.report(ctx)
			if ctx.Err() != nil {
				return
			}
			r.done(err)
			switch {
			case err != nil && !failing:
				r.log.Info("Cannot report status, will keep trying", "error", err)
			case err == nil && failing:
				r.log.Info("Reporting status again")
			case err != nil:
				r.log.Debug("Cannot report status", "error", err)
			}
			failing = err != nil
			if failing {
				pause, backoff = backoff, min(2*backoff, maxBackoff)
			} else {
				backoff = minBackoff
			}

			select {
			case <-ctx.Done():
				return
			case <-time.After(pause):
			}
			if !failing {
				break
			}
		}
	}
}

// report writes the wanted status if the Machine's status differs, and returns how long to wait
// before the next report.
func (r *Reporter) report(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()

	r.mu.Lock()
	wanted := r.wanted
	r.mu.Unlock()
	if wanted == nil {
		return 0, nil
	}

	m, err := r.client.GetMachine(ctx, r.key)
	if err != nil {
		return 0, errors.Wrapf(err, "cannot get Machine %q", r.key)
	}
	interval := defaultInterval
	if m.Spec.ReportInterval != nil {
		interval = m.Spec.ReportInterval.Duration
	}
	if equality.Semantic.DeepEqual(m.Status.Agent, wanted) {
		return 0, nil
	}
	return interval, r.apply(ctx, wanted)
}

// apply takes ownership of status.agent only: a typed Machine would also claim the empty fields
// beside it.
func (r *Reporter) apply(ctx context.Context, s *v1alpha1.MachineAgentStatus) error {
	config, err := json.Marshal(map[string]any{
		"apiVersion": v1alpha1.SchemeGroupVersion.String(),
		"kind":       v1alpha1.MachineKind,
		"metadata":   map[string]any{"namespace": r.key.Namespace, "name": r.key.Name},
		"status":     map[string]any{"agent": s},
	})
	if err != nil {
		return errors.Wrap(err, "cannot encode status")
	}
	return errors.Wrapf(r.client.ApplyMachineStatus(ctx, r.key, config), "cannot apply status of Machine %q", r.key)
}

// Reachable reports whether the API server answers.
func (r *Reporter) Reachable(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if _, err := r.client.GetMachine(ctx, r.key); !kerrors.IsNotFound(err) {
		return errors.Wrapf(err, "cannot get Machine %q", r.key)
	}
	return nil
}
