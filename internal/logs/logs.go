// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package logs sets up the logs of a process: its own, and those of the libraries that log
// by themselves.
package logs

import (
	"io"
	"os"

	"github.com/go-logr/logr"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
)

// Options of a process's logs.
type Options struct {
	// Debug logs at the debug level as well.
	Debug bool

	// Name of the logger. Empty means none.
	Name string

	// Writer of the logs. Nil means standard error.
	Writer io.Writer

	// Controllers declares that the process runs controllers of controller-runtime, which log
	// every reconcile at the info level: its logs, and those of client-go that repeat them,
	// are shown with Debug alone.
	Controllers bool
}

// New returns the logger of the process, and sets that of client-go and controller-runtime.
func New(o Options) logging.Logger {
	level := zapcore.InfoLevel
	if o.Debug {
		level = zapcore.DebugLevel
	}
	if o.Writer == nil {
		o.Writer = os.Stderr
	}
	zl := zap.New(zap.UseDevMode(false), zap.Level(level), zap.StacktraceLevel(zapcore.PanicLevel), zap.WriteTo(o.Writer))
	if o.Name != "" {
		zl = zl.WithName(o.Name)
	}
	switch {
	case !o.Controllers:
		ctrllog.SetLogger(zl)
		klog.SetLogger(zl.WithName("kubernetes"))
	case o.Debug:
		ctrllog.SetLogger(zl)
		logging.SetFilteredKlogLogger(zl)
	default:
		ctrllog.SetLogger(logr.Discard())
		logging.SetFilteredKlogLogger(zl)
	}
	return logging.NewLogrLogger(zl)
}
