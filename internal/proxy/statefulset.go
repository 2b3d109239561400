// Copyright 2026 The Tailscale Gateway Authors
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

const (
	// uid that both containers run as. Tailscaled lets the user who runs it
	// use its LocalAPI, so the agent must be the same.
	uid = 1000

	// terminationGracePeriodSeconds covers the agent's drain (control needs some
	// 15 s to move a service to another host, kube/services of tailscale.com),
	// containerboot's own, which takes at most 25 s, and the sidecar's end.
	terminationGracePeriodSeconds = 60

	// revisionHistoryLimit is how many old templates are kept to roll back to.
	revisionHistoryLimit = 3
)

// StatefulSet of the proxies. Its pod template depends neither on the replicas
// nor on the tailnet: scaling and new credentials restart no pod.
func StatefulSet(o Options) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		ObjectMeta: o.objectMeta(),
		Spec: appsv1.StatefulSetSpec{
			Replicas:             ptr.To(o.Replicas),
			ServiceName:          o.ServiceName,
			Selector:             &metav1.LabelSelector{MatchLabels: o.PodLabels()},
			PodManagementPolicy:  appsv1.ParallelPodManagement,
			UpdateStrategy:       appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType},
			RevisionHistoryLimit: ptr.To[int32](revisionHistoryLimit),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: o.PodLabels()},
				Spec:       podSpec(o),
			},
		},
	}
}

func podSpec(o Options) corev1.PodSpec {
	return corev1.PodSpec{
		ServiceAccountName:           o.Name,
		AutomountServiceAccountToken: ptr.To(true),
		// Containerboot reads its settings from variables. A Service called
		// ts-socket must not become one.
		EnableServiceLinks:            ptr.To(false),
		TerminationGracePeriodSeconds: ptr.To[int64](terminationGracePeriodSeconds),
		NodeSelector:                  o.NodeSelector,
		Tolerations:                   o.Tolerations,
		ImagePullSecrets:              o.ImagePullSecrets,
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot:   ptr.To(true),
			RunAsUser:      ptr.To[int64](uid),
			RunAsGroup:     ptr.To[int64](uid),
			FSGroup:        ptr.To[int64](uid),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{
			spread(o, corev1.LabelTopologyZone),
			spread(o, corev1.LabelHostname),
		},
		InitContainers: []corev1.Container{agent(o)},
		Containers:     []corev1.Container{tailscale(o)},
		Volumes: []corev1.Volume{
			// Auth keys pass through here. Memory, so that none reaches a disk.
			emptyDir(volumeTailscaledConfig, corev1.EmptyDirVolumeSource{
				Medium:    corev1.StorageMediumMemory,
				SizeLimit: ptr.To(resource.MustParse("8Mi")),
			}),
			emptyDir(volumeProxiesConfig, corev1.EmptyDirVolumeSource{}),
			emptyDir(volumeRun, corev1.EmptyDirVolumeSource{}),
			emptyDir(volumeTmp, corev1.EmptyDirVolumeSource{}),
		},
	}
}

// spread asks for an even spread, but never leaves a pod unscheduled for it.
func spread(o Options, key string) corev1.TopologySpreadConstraint {
	return corev1.TopologySpreadConstraint{
		MaxSkew:           1,
		TopologyKey:       key,
		WhenUnsatisfiable: corev1.ScheduleAnyway,
		LabelSelector:     &metav1.LabelSelector{MatchLabels: o.PodLabels()},
	}
}

func emptyDir(name string, d corev1.EmptyDirVolumeSource) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &d}}
}
