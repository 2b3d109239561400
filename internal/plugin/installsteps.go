// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"

	gatewayv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/gateway/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/meta"
	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/causes"
	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/check"
	"github.com/tailscale-gateway/tailscale-gateway/internal/plugin/installation"
)

// act carries out a step of a plan.
func (i *installer) act(s installation.Step) error {
	ctx := i.session.ctx
	switch s.Name {
	case installation.StepCrossplane, installation.StepRelease:
		i.say("         $ %s\n", s.Command)
		_, err := i.helm.run(s.Helm...)
		return err
	case installation.StepNamespace:
		err := i.kube.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: i.options.Namespace}})
		if kerrors.IsAlreadyExists(err) {
			return nil
		}
		return errors.Wrapf(err, "cannot create namespace %s", i.options.Namespace)
	case installation.StepSecret:
		// A Secret that appeared meanwhile stays as it is.
		err := i.kube.Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: i.options.Namespace, Name: i.options.Secret},
			Type:       corev1.SecretTypeOpaque,
			Data:       map[string][]byte{meta.SecretKeyClientID: []byte(i.credential.ClientID), meta.SecretKeyClientSecret: []byte(i.credential.ClientSecret)},
		})
		return errors.Wrapf(err, "cannot create Secret %s/%s", i.options.Namespace, i.options.Secret)
	case installation.StepPolicy:
		return i.mergePolicy()
	case installation.StepWait:
		return i.await()
	}
	return errors.Errorf("there is no step %q", s.Name)
}

// mergePolicy adds to the policy file what its current text lacks. Tailscale validates the new text, and refuses it if
// the file was changed in between.
func (i *installer) mergePolicy() error {
	warnings, err := i.api.PolicyFile().EditPolicyFile(i.session.ctx, func(text string) (string, error) {
		lacking, err := installation.Lacks(text, i.facts, i.options)
		if err != nil || len(lacking) == 0 {
			return text, err
		}
		return installation.Merge(text, lacking)
	})
	for _, w := range warnings {
		i.say("         Tailscale warns: %s\n", Quoted(w))
	}
	return err
}

// pollInterval is how often the installation is read while it starts. Kinds appear meanwhile, which no watch outlasts.
const pollInterval = 2 * time.Second

// await waits until nothing is pending, and prints what it waits for.
func (i *installer) await() error {
	deadline := i.session.time.Now().Add(i.cmd.Timeout)
	last := ""
	for {
		p, err := i.progress()
		if err != nil {
			return err
		}
		pending := installation.Pending(p)
		if pending == "" {
			return nil
		}
		if pending != last {
			i.say("         waiting for %s\n", Quoted(pending))
			last = pending
		}
		if !i.session.time.Now().Before(deadline) {
			return errors.Errorf("%s is over, and it still waits for %s%s", i.cmd.Timeout, pending, i.advice(p))
		}
		if err := i.session.wait(i.session.ctx, pollInterval); err != nil {
			return err
		}
	}
}

// advice says where to look for why the provider does not create the tailnet.
func (i *installer) advice(p installation.Progress) string {
	if p.Tailnet == "" || p.Conditions != nil {
		return ""
	}
	return "; if the packages are healthy, events say why: " + i.options.Check.Kubectl() + " describe configmap " + meta.FirstTailnetConfigMap +
		" --namespace=" + check.Quote(i.options.Check.CrossplaneNamespace)
}

// progress reads how far an installation is.
func (i *installer) progress() (installation.Progress, error) {
	r := i.reader()
	failure := ""
	p := installation.Progress{Packages: ask(r, noted(&failure, r.packages)), Definitions: ask(r, noted(&failure, r.definitions))}
	request := ask(r, noted(&failure, func() (*corev1.ConfigMap, error) {
		cm := &corev1.ConfigMap{}
		err := r.kube.Get(r.ctx, types.NamespacedName{Namespace: r.options.CrossplaneNamespace, Name: meta.FirstTailnetConfigMap}, cm)
		return cm, err
	}))
	if cm := request.Value; cm != nil {
		p.Tailnet = cm.Data[meta.FirstTailnetName]
		p.Created = p.Tailnet != "" && cm.Data[meta.FirstTailnetCreated] == p.Tailnet
	}
	if p.Tailnet != "" {
		conditions := ask(r, noted(&failure, func() ([]causes.Condition, error) {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(gatewayv1alpha1.SchemeGroupVersion.WithKind(gatewayv1alpha1.TailscaleTailnetKind))
			err := r.kube.Get(r.ctx, types.NamespacedName{Name: p.Tailnet}, u)
			if kerrors.IsNotFound(err) || apimeta.IsNoMatchError(err) {
				return nil, nil
			}
			return append([]causes.Condition{}, conditionsOf(u)...), err
		}))
		// Nobody waits for what may not be read.
		if p.Conditions = conditions.Value; conditions.Unknown != "" {
			p.Tailnet = ""
		}
	}
	p.Failure = failure
	return p, r.failure
}

// noted returns a question that notes why it has no answer, unless the caller may not ask it, or the object or its
// kind does not exist. An error may pass: after an uninstallation, the API server's list of kinds names some that are
// gone, until they are back.
func noted[T any](failure *string, question func() (T, error)) func() (T, error) {
	return func() (T, error) {
		v, err := question()
		if err != nil && !kerrors.IsForbidden(err) && !kerrors.IsNotFound(err) && !apimeta.IsNoMatchError(err) {
			*failure = err.Error()
		}
		return v, err
	}
}
