//! The operator's Deployment, and the Service of its metrics.

use k8s_openapi::api::{apps::v1::Deployment, core::v1::Service};
use serde_json::{Value, json};

use super::{Installation, layout::Layout};
use crate::Error;

/// The ports of the Deployment.
const HEALTH: u16 = 8081;
const METRICS: u16 = 8443;
/// How long a pod may take to end: more than a graceful shutdown takes.
const GRACE: u64 = 40;

impl Layout {
    pub(super) fn metrics_service(&self) -> Result<Service, Error> {
        self.service(&self.named("metrics"), METRICS, METRICS)
    }

    /// A Service in front of a port of the operator's pods.
    pub(super) fn service(&self, name: &str, port: u16, target: u16) -> Result<Service, Error> {
        Ok(kubewright_objects::from_value(json!({
            "metadata": self.local(name),
            "spec": {
                "selector": self.labels,
                "ports": [{"name": "https", "port": port, "protocol": "TCP", "targetPort": target}],
            },
        }))?)
    }

    /// Hardened as the `restricted` Pod Security Standard asks for.
    pub(super) fn deployment(&self, installation: &Installation) -> Result<Deployment, Error> {
        let mut pod = json!({
            "serviceAccountName": self.name,
            "terminationGracePeriodSeconds": GRACE,
            "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [self.container()],
        });
        #[cfg(feature = "webhook")]
        if let Some(volume) = self.webhook_volume() {
            pod["volumes"] = json!([volume]);
        }
        Ok(kubewright_objects::from_value(json!({
            "metadata": self.local(&self.name),
            "spec": {
                "replicas": installation.replicas,
                "selector": {"matchLabels": self.labels},
                "template": {"metadata": {"labels": self.labels}, "spec": pod.take()},
            },
        }))?)
    }

    fn container(&self) -> Value {
        let mut arguments = vec![
            "run".to_owned(),
            "--leader-elect".to_owned(),
            format!("--health-probe-bind-address=:{HEALTH}"),
            format!("--metrics-bind-address=:{METRICS}"),
            "--log-format=json".to_owned(),
        ];
        if !self.watched.is_empty() {
            arguments.push(format!("--namespace={}", self.watched.join(",")));
        }
        #[cfg(feature = "webhook")]
        arguments.extend(self.webhook_arguments());
        #[cfg(feature = "webhook")]
        let webhooks = self.webhooks.map(|_| port("webhook-server", super::webhooks::PORT));
        #[cfg(not(feature = "webhook"))]
        let webhooks = None;
        let ports = [port("health", HEALTH), port("metrics", METRICS)].into_iter().chain(webhooks);
        let probe = |path: &str, delay: u8, period: u8| {
            json!({
                "httpGet": {"path": path, "port": HEALTH},
                "initialDelaySeconds": delay,
                "periodSeconds": period,
            })
        };
        let mut container = json!({
            "name": "operator",
            "image": self.image,
            "args": arguments,
            "ports": ports.collect::<Vec<_>>(),
            "livenessProbe": probe("/healthz", 15, 20),
            "readinessProbe": probe("/readyz", 1, 5),
            "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}, "limits": {"memory": "128Mi"}},
            "securityContext": {
                "allowPrivilegeEscalation": false,
                "readOnlyRootFilesystem": true,
                "capabilities": {"drop": ["ALL"]},
            },
        });
        #[cfg(feature = "webhook")]
        if let Some(mount) = self.webhook_mount() {
            container["volumeMounts"] = json!([mount]);
        }
        container.take()
    }
}

fn port(name: &str, number: u16) -> Value {
    json!({"name": name, "containerPort": number, "protocol": "TCP"})
}
