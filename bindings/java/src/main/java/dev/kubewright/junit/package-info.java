/**
 * Kubernetes control planes for tests: {@link dev.kubewright.junit.Kubewright} has JUnit inject them, and
 * {@link dev.kubewright.junit.KubewrightCluster} is one to start by hand.
 */
package dev.kubewright.junit;
