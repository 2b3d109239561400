// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"maps"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	tailnetv1alpha1 "github.com/tailscale-gateway/tailscale-gateway/apis/tailnet/v1alpha1"
	"github.com/tailscale-gateway/tailscale-gateway/internal/sidecar"
)

const (
	// uid is the default user ID of both containers. Tailscaled lets only its own user use its
	// LocalAPI, so the agent must have the same.
	uid int64 = 1000

	// terminationGracePeriodSeconds covers, in an ingress pod, up to 75 s in which the agent's drain
	// waits for another host of its services, such as the pod that takes the place of one that was
	// stopped at the same time; 30 s in which it accepts new connections (the control server needs
	// some 15 s to move a service to another host, kube/services of tailscale.com, and notifies
	// clients after that); and the termination of containerboot, which has no services left to
	// withdraw, and of the sidecar. In an egress pod it covers egressDrain, the time before it in
	// which clients learn that the pod accepts no more connections, and the termination of both
	// containers. It is not longer because of namespace deletion: Kubernetes deletes the pods first,
	// and continues with other objects after half of this time (pkg/controller/namespace/deletion).
	terminationGracePeriodSeconds = 120

	// egressDrain is the maximum time for open connections through an egress pod to end once
	// the pod is stopped.
	egressDrain = 90 * time.Second

	// revisionHistoryLimit is the number of old templates that are kept for rollbacks.
	revisionHistoryLimit = 3
)

// StatefulSet builds the StatefulSet of the proxies. Its pod template depends neither on the
// replicas nor on the tailnet: scaling and new credentials restart no pod.
func StatefulSet(o Options, img Images) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		ObjectMeta: o.objectMeta(),
		Spec: appsv1.StatefulSetSpec{
			Replicas:             ptr.To(o.Pods.Replicas),
			ServiceName:          o.Pods.ServiceName,
			Selector:             &metav1.LabelSelector{MatchLabels: o.PodLabels()},
			PodManagementPolicy:  appsv1.ParallelPodManagement,
			UpdateStrategy:       appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType},
			RevisionHistoryLimit: ptr.To[int32](revisionHistoryLimit),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: o.allPodLabels(), Annotations: o.Pods.Annotations},
				Spec:       podSpec(o, img),
			},
		},
	}
}

func podSpec(o Options, img Images) corev1.PodSpec {
	return corev1.PodSpec{
		ServiceAccountName:           o.Name,
		AutomountServiceAccountToken: ptr.To(true),
		// Containerboot reads its settings from variables. A Service called ts-socket must not
		// set one.
		EnableServiceLinks:            ptr.To(false),
		TerminationGracePeriodSeconds: ptr.To[int64](terminationGracePeriodSeconds),
		NodeSelector:                  o.Pods.NodeSelector,
		Tolerations:                   o.Pods.Tolerations,
		Affinity:                      o.Pods.Affinity,
		PriorityClassName:             o.Pods.PriorityClassName,
		ImagePullSecrets:              pullSecrets(o, img),
		SecurityContext:               podSecurityContext(o),
		TopologySpreadConstraints:     spread(o),
		InitContainers:                slices.Concat(network(o, img), check(o, img), []corev1.Container{agent(o, img)}),
		Containers:                    []corev1.Container{tailscale(o, img)},
		Volumes:                       volumes(o),
	}
}

// pullSecrets returns the references to the pull secrets of a pod. Kubelet ignores those that do not
// exist in its namespace.
func pullSecrets(o Options, img Images) []corev1.LocalObjectReference {
	if len(o.Pods.ImagePullSecrets) > 0 {
		return o.Pods.ImagePullSecrets
	}
	var out []corev1.LocalObjectReference
	for _, name := range img.PullSecrets {
		out = append(out, corev1.LocalObjectReference{Name: name})
	}
	return out
}

// volumes returns the volumes of a pod. Volumes in memory hold secrets, so that none is written
// to a disk: one for auth keys, and another for keys of certificates, so that the agent can
// still write tailscaled's config when the latter is full.
func volumes(o Options) []corev1.Volume {
	out := []corev1.Volume{
		inMemory(volumeTailscaledConfig, "8Mi"),
		emptyDir(volumeProxiesConfig, corev1.EmptyDirVolumeSource{}),
		emptyDir(volumeRun, corev1.EmptyDirVolumeSource{}),
		emptyDir(volumeTmp, corev1.EmptyDirVolumeSource{}),
	}
	if !o.egress() {
		out = append(out, inMemory(volumeTLS, "16Mi"))
	}
	return out
}

// allPodLabels returns the labels of the pods, including the user's.
func (o Options) allPodLabels() map[string]string {
	l := map[string]string{}
	for k, v := range o.Pods.Labels {
		l[k] = string(v)
	}
	maps.Copy(l, o.PodLabels())
	return l
}

func podSecurityContext(o Options) *corev1.PodSecurityContext {
	s := ptr.Deref(o.Pods.SecurityContext, tailnetv1alpha1.PodSecurityContext{})
	if o.kernel() {
		return kernelSecurityContext(o)
	}
	return &corev1.PodSecurityContext{
		RunAsNonRoot:       ptr.To(true),
		RunAsUser:          ptr.To(ptr.Deref(s.RunAsUser, uid)),
		RunAsGroup:         ptr.To(ptr.Deref(s.RunAsGroup, uid)),
		FSGroup:            ptr.To(ptr.Deref(s.FSGroup, uid)),
		SupplementalGroups: s.SupplementalGroups,
		SELinuxOptions:     seLinuxOptions(s),
		SeccompProfile:     &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		Sysctls:            dnsSysctls(o),
	}
}

func seLinuxOptions(s tailnetv1alpha1.PodSecurityContext) *corev1.SELinuxOptions {
	if s.SELinuxOptions == nil {
		return nil
	}
	return &corev1.SELinuxOptions{Level: s.SELinuxOptions.Level, Type: s.SELinuxOptions.Type}
}

// dnsSysctls returns the sysctl that lets the agent, which has no privileges, listen on the DNS
// port. Kubelet treats this sysctl as safe, and the PodSecurity level restricted allows it.
func dnsSysctls(o Options) []corev1.Sysctl {
	if o.Pods.DNSConfigMap == "" {
		return nil
	}
	return []corev1.Sysctl{{Name: "net.ipv4.ip_unprivileged_port_start", Value: strconv.Itoa(sidecar.PortDNS)}}
}

// spread returns the user's constraints. The default is an even spread that never leaves a pod
// unscheduled. A missing selector would match no pod.
func spread(o Options) []corev1.TopologySpreadConstraint {
	ours := &metav1.LabelSelector{MatchLabels: o.PodLabels()}
	if len(o.Pods.TopologySpreadConstraints) == 0 {
		return []corev1.TopologySpreadConstraint{
			{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: ours},
			{MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: ours},
		}
	}
	out := slices.Clone(o.Pods.TopologySpreadConstraints)
	for i := range out {
		if out[i].LabelSelector == nil {
			out[i].LabelSelector = ours
		}
	}
	return out
}

func emptyDir(name string, d corev1.EmptyDirVolumeSource) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &d}}
}

func inMemory(name, limit string) corev1.Volume {
	return emptyDir(name, corev1.EmptyDirVolumeSource{Medium: corev1.StorageMediumMemory, SizeLimit: ptr.To(resource.MustParse(limit))})
}
