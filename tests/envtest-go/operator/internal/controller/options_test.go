package controller

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	inDefault      = client.InNamespace("default")
	withBackground = client.PropagationPolicy(metav1.DeletePropagationBackground)
)
