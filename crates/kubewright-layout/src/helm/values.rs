//! `values.yaml`.

use serde_json::{Value, json};

use super::{deployment::Program, template::indent};
use crate::{Error, files::yaml};

/// The default values: those that give what `manifests` prints.
pub(super) fn values(program: &Program, webhooks: bool) -> Result<String, Error> {
    let mut text = String::from("# The operator's Deployment\nmanager:\n");
    let mut say = |comment: &str, key: &str, value: &Value| -> Result<(), Error> {
        let line = yaml(&json!({key: value}))?;
        text += &indent(&format!("# {comment}\n{line}"), 2);
        Ok(())
    };
    let or = |value: &Value, empty: Value| if value.is_null() { empty } else { value.clone() };
    say("How many there are, of which one works", "replicas", &json!(program.replicas))?;
    let image = json!({
        "repository": program.repository,
        "tag": program.tag,
        "digest": program.digest,
        "pullPolicy": "",
    });
    say("Without a tag it is the chart's appVersion; a digest goes before a tag", "image", &image)?;
    say("Arguments of the program, which may be templates", "args", &json!(program.arguments))?;
    say("Variables of its environment", "env", &or(program.container("env"), json!([])))?;
    say("What it may use", "resources", &or(program.container("resources"), json!({})))?;
    say("For its container", "securityContext", &or(program.container("securityContext"), json!({})))?;
    say("For its pods", "podSecurityContext", &or(program.pod("securityContext"), json!({})))?;
    say("Annotations of its pods", "podAnnotations", &or(program.annotations(), json!({})))?;
    say(
        "Secrets to pull its image with",
        "imagePullSecrets",
        &or(program.pod("imagePullSecrets"), json!([])),
    )?;
    say("How pods are replaced", "strategy", &json!({}))?;
    say("Where its pods run", "affinity", &or(program.pod("affinity"), json!({})))?;
    say("Which nodes may run them", "nodeSelector", &or(program.pod("nodeSelector"), json!({})))?;
    say("Which taints of nodes they bear", "tolerations", &or(program.pod("tolerations"), json!([])))?;
    say(
        "How they are spread",
        "topologySpreadConstraints",
        &or(program.pod("topologySpreadConstraints"), json!([])),
    )?;
    say(
        "Which pods go before others",
        "priorityClassName",
        &or(program.pod("priorityClassName"), json!("")),
    )?;
    say("Further volumes of its pods", "extraVolumes", &json!([]))?;
    say("Where these are mounted", "extraVolumeMounts", &json!([]))?;
    text += &format!(
        "
# Its rights; without, an administrator grants them
rbac:
  enable: true
  # Roles for the users of its kinds, to be bound by an administrator
  helpers:
    enable: false

# The definitions of its kinds
crd:
  enable: true
  # Whether they, and all objects of these kinds, stay when the chart is uninstalled
  keep: true

# Metrics, over HTTPS, for those who may read them
metrics:
  enable: true
  port: {}
",
        program.metrics_port
    );
    if webhooks {
        text += "
# Its webhooks
webhook:
  enable: true

# Certificates of the webhooks by cert-manager, which must be there; otherwise the operator makes them itself
certManager:
  enable: false
";
    }
    text += "
# A ServiceMonitor and alerts, for the Prometheus operator
prometheus:
  enable: false

# A dashboard, in a ConfigMap that Grafana's sidecar loads
grafana:
  enable: false

# Let only namespaces with the label `metrics: enabled` read metrics
networkPolicy:
  enable: false
";
    Ok(text)
}
