// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
)

// flagNamespaced makes Crossplane watch only the composites of the namespace in which it runs. It
// never composes those of other namespaces, and reports no error (crossplane/crossplane#7353,
// cmd/crossplane/core/core.go of Crossplane 2.4).
const flagNamespaced = "--watch-cache-namespaced"

// checkCache checks that Crossplane watches all namespaces. Without a Deployment of Crossplane's
// service account, nothing is known.
func checkCache(ctx context.Context, kube kubernetes.Interface, namespace, account string, r *report) error {
	l, err := kube.AppsV1().Deployments(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return errors.Wrapf(err, "cannot list Deployments of namespace %s", namespace)
	}
	for i := range l.Items {
		d := &l.Items[i]
		if d.Spec.Template.Spec.ServiceAccountName != account {
			continue
		}
		requirement := fmt.Sprintf("Deployment %s/%s watches objects of all namespaces", namespace, d.GetName())
		fix := fmt.Sprintf("Remove %s from args of Crossplane's chart: with it Crossplane never composes objects of other namespaces, and shows no error.", flagNamespaced)
		if err := r.add(!namespaced(d), requirement, fix); err != nil {
			return err
		}
	}
	return nil
}

// namespaced reports whether a container of the Deployment has the flag.
func namespaced(d *appsv1.Deployment) bool {
	for _, c := range d.Spec.Template.Spec.Containers {
		if slices.ContainsFunc(slices.Concat(c.Command, c.Args), func(a string) bool {
			name, value, ok := strings.Cut(a, "=")
			return name == flagNamespaced && (!ok || value != "false")
		}) {
			return true
		}
	}
	return false
}
