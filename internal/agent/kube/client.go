// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

// Package kube is the agent's client of the Kubernetes API: it watches objects in the agent's
// namespace, and writes the Machine's status. It makes no decisions.
package kube

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/errors"
	"github.com/tailscale-gateway/tailscale-gateway/internal/version"
)

// FieldManager is the field manager that owns status.agent of Machines.
const FieldManager = "tailscale-gateway-agent"

// A Resource is the name that a kind of objects has in URLs of the API server.
type Resource string

// Resources that the agent lists and watches.
const (
	Secrets            Resource = "secrets"
	ConfigMaps         Resource = "configmaps"
	ServiceAttachments Resource = "serviceattachments"
)

// machines is the resource of the Machine, which the agent may only get and report to.
const machines Resource = "machines"

// A Client is what the agent needs of the Kubernetes API.
type Client interface {
	// List returns the list of the objects in a namespace that the options select.
	List(ctx context.Context, r Resource, namespace string, o metav1.ListOptions) (runtime.Object, error)

	// Watch returns the changes of these objects.
	Watch(ctx context.Context, r Resource, namespace string, o metav1.ListOptions) (watch.Interface, error)

	// PatchSecret changes a Secret by a JSON merge patch.
	PatchSecret(ctx context.Context, key types.NamespacedName, patch []byte) error

	// GetMachine returns a Machine.
	GetMachine(ctx context.Context, key types.NamespacedName) (*v1alpha1.Machine, error)

	// ApplyMachineStatus applies fields of a Machine's status as FieldManager, by force. config is
	// the Machine in JSON with these fields only.
	ApplyMachineStatus(ctx context.Context, key types.NamespacedName, config []byte) error
}

// newScheme returns a scheme with the kinds that the agent uses, and no others: the linker keeps what is
// in a scheme.
func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	s.AddKnownTypes(corev1.SchemeGroupVersion, &corev1.Secret{}, &corev1.SecretList{}, &corev1.ConfigMap{}, &corev1.ConfigMapList{})
	metav1.AddToGroupVersion(s, corev1.SchemeGroupVersion)
	s.AddKnownTypes(v1alpha1.SchemeGroupVersion, &v1alpha1.Machine{}, &v1alpha1.ServiceAttachment{}, &v1alpha1.ServiceAttachmentList{})
	metav1.AddToGroupVersion(s, v1alpha1.SchemeGroupVersion)
	return s
}

// An APIClient is the Client of an API server. It knows the paths of all that it needs and uses no
// discovery, so it also works for an agent that starts while the API server is unavailable.
//
// It is a client of client-go's rest package. The clients of controller-runtime and of client-go's
// kubernetes package know all kinds of Kubernetes, which would be a third of the agent.
type APIClient struct {
	// resources have a client each, so that none uses up the request rate of another.
	resources map[Resource]rest.Interface
	params    runtime.ParameterCodec
}

var _ Client = &APIClient{}

// NewClient returns a client for the API server in cfg.
func NewClient(cfg *rest.Config) (*APIClient, error) {
	s := newScheme()
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = version.UserAgent()
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(s).WithoutConversion()
	h, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, errors.Wrap(err, "cannot make HTTP client of Kubernetes")
	}
	core, tailnet := rest.CopyConfig(cfg), rest.CopyConfig(cfg)
	core.APIPath, core.GroupVersion = "/api", &corev1.SchemeGroupVersion
	core.ContentType = runtime.ContentTypeProtobuf
	tailnet.APIPath, tailnet.GroupVersion = "/apis", &v1alpha1.SchemeGroupVersion

	c := &APIClient{resources: map[Resource]rest.Interface{}, params: runtime.NewParameterCodec(s)}
	for r, cfg := range map[Resource]*rest.Config{Secrets: core, ConfigMaps: core, ServiceAttachments: tailnet, machines: tailnet} {
		rc, err := rest.RESTClientForConfigAndClient(cfg, h)
		if err != nil {
			return nil, errors.Wrapf(err, "cannot make Kubernetes client for %s", r)
		}
		c.resources[r] = rc
	}
	return c, nil
}

// List implements Client.
func (c *APIClient) List(ctx context.Context, r Resource, namespace string, o metav1.ListOptions) (runtime.Object, error) {
	return c.selected(r, namespace, o).Do(ctx).Get()
}

// Watch implements Client.
func (c *APIClient) Watch(ctx context.Context, r Resource, namespace string, o metav1.ListOptions) (watch.Interface, error) {
	o.Watch = true
	return c.selected(r, namespace, o).Watch(ctx)
}

// selected returns a request for the objects that the options select.
func (c *APIClient) selected(r Resource, namespace string, o metav1.ListOptions) *rest.Request {
	return c.resources[r].Get().Namespace(namespace).Resource(string(r)).VersionedParams(&o, c.params)
}

// PatchSecret implements Client.
func (c *APIClient) PatchSecret(ctx context.Context, key types.NamespacedName, patch []byte) error {
	return c.resources[Secrets].Patch(types.MergePatchType).
		Namespace(key.Namespace).Resource(string(Secrets)).Name(key.Name).Body(patch).Do(ctx).Error()
}

// GetMachine implements Client.
func (c *APIClient) GetMachine(ctx context.Context, key types.NamespacedName) (*v1alpha1.Machine, error) {
	m := &v1alpha1.Machine{}
	err := c.resources[machines].Get().
		Namespace(key.Namespace).Resource(string(machines)).Name(key.Name).Do(ctx).Into(m)
	return m, err
}

// ApplyMachineStatus implements Client.
func (c *APIClient) ApplyMachineStatus(ctx context.Context, key types.NamespacedName, config []byte) error {
	force := true
	return c.resources[machines].Patch(types.ApplyYAMLPatchType).
		Namespace(key.Namespace).Resource(string(machines)).Name(key.Name).SubResource("status").
		VersionedParams(&metav1.PatchOptions{FieldManager: FieldManager, Force: &force}, c.params).
		Body(config).Do(ctx).Error()
}
