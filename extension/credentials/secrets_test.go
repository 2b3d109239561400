// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/crossplane/crossplane-runtime/v2/pkg/errors"
	"github.com/crossplane/crossplane-runtime/v2/pkg/logging"
)

// A recorder is a log that keeps all it gets.
type recorder struct {
	lock sync.Mutex
	text strings.Builder
}

func (r *recorder) Info(msg string, keysAndValues ...any) {
	r.lock.Lock()
	defer r.lock.Unlock()
	fmt.Fprintln(&r.text, append([]any{msg}, keysAndValues...)...)
}
func (r *recorder) Debug(msg string, keysAndValues ...any) { r.Info(msg, keysAndValues...) }
func (r *recorder) WithValues(keysAndValues ...any) logging.Logger {
	r.Info("", keysAndValues...)
	return r
}

func writer(kube *fake.Clientset, at time.Time, log logging.Logger, servers ...string) *Writer {
	w := NewWriter(kube.CoreV1(), namespace, name, servers, log)
	w.clock = func() time.Time { return at }
	return w
}

// written returns the data of the Writer's Secrets, by suffix.
func written(t *testing.T, kube *fake.Clientset) map[string]map[string][]byte {
	t.Helper()
	out := map[string]map[string][]byte{}
	for _, suffix := range suffixes() {
		s := secret(t, kube, name+suffix)
		if s.Type != corev1.SecretTypeTLS || s.Labels[LabelCertificates] != name {
			t.Errorf("Secret %s has type %s and labels %v", s.GetName(), s.Type, s.Labels)
		}
		out[suffix] = s.Data
	}
	return out
}

func TestWrite(t *testing.T) {
	const host, other = "web-extension.shop.svc", "web-extension.shop.svc.example.org"
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	drop := func(key string) func(*corev1.Secret) {
		return func(s *corev1.Secret) { delete(s.Data, key) }
	}
	all := suffixes()
	cases := map[string]struct {
		reason string
		// secret is changed before the second run, or deleted if change is nil.
		secret  string
		change  func(*corev1.Secret)
		elapsed time.Duration
		names   []string
		want    []string
	}{
		"Same":         {reason: "Valid certificates should stay.", elapsed: leafLife / 2},
		"BeforeDue":    {reason: "Certificates with more than a third of their lifetime left should stay.", elapsed: leafLife/3*2 - time.Hour},
		"Due":          {reason: "Certificates with less left should be renewed by the same authority.", elapsed: leafLife / 3 * 2, want: all[1:]},
		"Expired":      {reason: "Expired ones should be renewed as well.", elapsed: 2 * leafLife, want: all[1:]},
		"AuthorityDue": {reason: "An authority should be renewed long before it expires.", elapsed: authorityLife / 3 * 2, want: all},
		"OtherName":    {reason: "A certificate that lacks a name should be renewed.", names: []string{host, other}, want: all[1:]},
		"FewerNames":   {reason: "A certificate with all names should stay.", names: []string{host}},
		"NoServer":     {reason: "A deleted Secret should be created again, by the same authority.", secret: suffixServer, want: all[1:]},
		"NoAuthority":  {reason: "Without the authority's key all certificates should be replaced.", secret: suffixCA, want: all},
		"NoCA":         {reason: "A missing authority in a Secret should be added, and the certificate stay.", secret: suffixEnvoy, change: drop(keyCA)},
		"NoKey":        {reason: "A certificate without its key should be replaced.", secret: suffixClient, change: drop(corev1.TLSPrivateKeyKey), want: all[1:]},
	}
	for label, tc := range cases {
		t.Run(label, func(t *testing.T) {
			kube := fake.NewClientset()
			log := &recorder{}
			if err := writer(kube, start, log, host).Write(t.Context()); err != nil {
				t.Fatal(err)
			}
			previous := written(t, kube)
			secrets := kube.CoreV1().Secrets(namespace)
			switch {
			case tc.secret != "" && tc.change == nil:
				if err := secrets.Delete(t.Context(), name+tc.secret, metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
			case tc.secret != "":
				s := secret(t, kube, name+tc.secret)
				tc.change(s)
				if _, err := secrets.Update(t.Context(), s, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			if len(tc.names) == 0 {
				tc.names = []string{host}
			}
			if err := writer(kube, start.Add(tc.elapsed), log, tc.names...).Write(t.Context()); err != nil {
				t.Fatal(err)
			}
			updated := written(t, kube)
			var renewed []string
			for _, suffix := range suffixes() {
				if !bytes.Equal(previous[suffix][corev1.TLSPrivateKeyKey], updated[suffix][corev1.TLSPrivateKeyKey]) {
					renewed = append(renewed, suffix)
				}
				if len(updated[suffix]) != len(previous[suffix]) {
					t.Errorf("\n%s\nSecret %s has %d keys, and had %d", tc.reason, suffix, len(updated[suffix]), len(previous[suffix]))
				}
				if suffix != suffixCA && !bytes.Equal(updated[suffix][keyCA], updated[suffixCA][corev1.TLSCertKey]) {
					t.Errorf("\n%s\nSecret %s has another authority", tc.reason, suffix)
				}
			}
			if diff := cmp.Diff(tc.want, renewed); diff != "" {
				t.Errorf("\n%s\nrenewed: -want, +got:\n%s", tc.reason, diff)
			}
			if slices.Contains(renewed, suffixCA) && tc.secret != suffixCA && !bytes.Contains(updated[suffixCA][corev1.TLSCertKey], previous[suffixCA][corev1.TLSCertKey]) {
				t.Errorf("\n%s\nthe previous authority is no longer trusted", tc.reason)
			}
			// Keys and certificates are PEM.
			if strings.Contains(log.text.String(), "-----") || !strings.Contains(log.text.String(), name+suffixCA) {
				t.Errorf("the log should name Secrets and show no content:\n%s", log.text.String())
			}
		})
	}
}

// TestWriteForeign checks that a Writer changes nothing if one Secret belongs to another program.
func TestWriteForeign(t *testing.T) {
	for _, suffix := range suffixes() {
		theirs := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + suffix, Labels: map[string]string{LabelCertificates: "api-extension"}}, Data: map[string][]byte{"password": []byte("x")}}
		kube := fake.NewClientset(theirs)
		err := writer(kube, time.Now(), logging.NewNopLogger(), "web").Write(t.Context())
		if err == nil || !strings.Contains(err.Error(), name+suffix) || strings.Contains(err.Error(), "password") {
			t.Errorf("want an error that names Secret %s, got %v", name+suffix, err)
		}
		list, err := kube.CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]corev1.Secret{*theirs}, list.Items); diff != "" {
			t.Errorf("-before, +after:\n%s", diff)
		}
	}
}

// TestWriteRace lets another Writer create all Secrets between the first read and the first write.
func TestWriteRace(t *testing.T) {
	kube := fake.NewClientset()
	other := map[string]map[string][]byte{}
	kube.PrependReactor("create", "secrets", func(ktesting.Action) (bool, runtime.Object, error) {
		if len(other) > 0 {
			return false, nil, nil
		}
		s, err := newSet(NewWriter(nil, namespace, name, []string{"web"}, nil).names, time.Now())
		if err != nil {
			return true, nil, err
		}
		other = s.secrets()
		for suffix, data := range other {
			o := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + suffix, Labels: map[string]string{LabelCertificates: name}}, Type: corev1.SecretTypeTLS, Data: data}
			if err := kube.Tracker().Add(o); err != nil {
				return true, nil, err
			}
		}
		return false, nil, nil
	})
	if err := writer(kube, time.Now(), logging.NewNopLogger(), "web").Write(t.Context()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(other, written(t, kube)); diff != "" {
		t.Errorf("the first Writer's certificates should stay: -want, +got:\n%s", diff)
	}
}

// TestWriteConflicts checks that a Writer gives up if others write all the time.
func TestWriteConflicts(t *testing.T) {
	kube := fake.NewClientset()
	n := 0
	kube.PrependReactor("create", "secrets", func(ktesting.Action) (bool, runtime.Object, error) {
		n++
		return true, nil, kerrors.NewConflict(corev1.Resource("secrets"), "s", errors.New("boom"))
	})
	if err := writer(kube, time.Now(), logging.NewNopLogger(), "web").Write(t.Context()); !kerrors.IsConflict(err) || n != attempts {
		t.Errorf("want a conflict after %d attempts, got %v after %d", attempts, err, n)
	}
}
