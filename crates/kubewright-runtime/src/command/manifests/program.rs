//! The operator's Deployment, and the Service of its metrics.

use k8s_openapi::api::{
    apps::v1::Deployment,
    core::v1::{PodTemplateSpec, Service},
};
use serde_json::{Value, json};

use super::{
    Installation,
    layout::Layout,
    pod::{Shape, shaped},
};
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
    ///
    /// # Errors
    /// [`Error::Misconfigured`] when a shape takes away what the operator counts on.
    pub(super) fn deployment(
        &self,
        installation: &Installation,
        own_arguments: &[String],
        shapes: &[Shape],
    ) -> Result<Deployment, Error> {
        let mut pod = json!({
            "serviceAccountName": self.name,
            "terminationGracePeriodSeconds": GRACE,
            "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [self.container(own_arguments)],
        });
        #[cfg(feature = "webhook")]
        if let Some(volume) = self.webhook_volume() {
            pod["volumes"] = json!([volume]);
        }
        let template: PodTemplateSpec =
            kubewright_objects::from_value(json!({"metadata": {"labels": self.labels}, "spec": pod.take()}))?;
        let template = kubewright_objects::to_value(&shaped(template, shapes)?)?;
        // As JSON: whether a Deployment's spec is optional depends on the version of its type.
        let spec = json!({"replicas": installation.replicas, "selector": {"matchLabels": self.labels}, "template": template});
        let deployment =
            kubewright_objects::from_value(json!({"metadata": self.local(&self.name), "spec": spec}))?;
        Ok(deployment)
    }

    /// What the pod tells the program of itself (acceptance OS-09, as operator-sdk's), and where it looks: `WATCH_NAMESPACE` is the
    /// variable of `--namespace`, and empty for everywhere.
    fn environment(&self) -> Value {
        let field =
            |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
        json!([
            field("POD_NAME", "metadata.name"),
            field("POD_NAMESPACE", "metadata.namespace"),
            {"name": "OPERATOR_NAME", "value": self.name},
            {"name": "WATCH_NAMESPACE", "value": self.watched.join(",")},
        ])
    }

    fn container(&self, own_arguments: &[String]) -> Value {
        let mut arguments = vec![
            "run".to_owned(),
            if self.sharded { "--shard" } else { "--leader-elect" }.to_owned(),
            format!("--health-probe-bind-address=:{HEALTH}"),
            format!("--metrics-bind-address=:{METRICS}"),
            "--log-format=json".to_owned(),
        ];
        #[cfg(feature = "webhook")]
        arguments.extend(self.webhook_arguments());
        arguments.extend_from_slice(own_arguments);
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
            "env": self.environment(),
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
