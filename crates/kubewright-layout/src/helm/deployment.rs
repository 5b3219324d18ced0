//! The operator's Deployment as a template, and what of it becomes values.

use serde_json::{Value, json};

use super::{
    Both, CERTIFIED, METRICS, WEBHOOK,
    template::{Template, indent, text_of},
};
use crate::Error;

const POD: &str = "/spec/template/spec";
const CONTAINER: &str = "/spec/template/spec/containers/0";

/// What the Deployment says that values say otherwise.
pub(super) struct Program {
    pub(super) replicas: u64,
    pub(super) repository: String,
    pub(super) tag: String,
    pub(super) digest: String,
    /// Arguments that are the user's to change.
    pub(super) arguments: Vec<String>,
    pub(super) metrics_port: u64,
    container: Value,
    pod: Value,
    /// Arguments of webhooks, with certificates of its own and with cert-manager's.
    webhook_arguments: [Vec<String>; 2],
    /// What is mounted always, and what for cert-manager's certificates.
    volumes: [Value; 2],
    mounts: [Value; 2],
    annotations: Value,
}

impl Program {
    pub(super) fn of(both: &Both<'_>) -> Result<Self, Error> {
        let own = both.own.program()?;
        let container = own.pointer(CONTAINER).ok_or(Error::Missing("container"))?.clone();
        let certified = both.certified_form(own);
        let at = |pointer: &str| {
            certified.and_then(|program| program.pointer(pointer)).cloned().unwrap_or_default()
        };
        let (webhook, arguments): (Vec<String>, Vec<String>) =
            words(&container["args"]).into_iter().partition(|argument| argument.starts_with("--webhook-"));
        let certified_arguments = words(&at(&format!("{CONTAINER}/args")));
        let (repository, tag, digest) = image(container["image"].as_str().unwrap_or_default());
        let is_fixed = |argument: &String| {
            argument == "run" || argument.starts_with("--metrics-bind") || argument.starts_with("--health-")
        };
        Ok(Self {
            replicas: own.pointer("/spec/replicas").and_then(Value::as_u64).unwrap_or(1),
            repository,
            tag,
            digest,
            arguments: arguments.into_iter().filter(|argument| !is_fixed(argument)).collect(),
            metrics_port: port(&container, "metrics").unwrap_or(8443),
            pod: own.pointer(POD).cloned().unwrap_or_default(),
            webhook_arguments: [
                webhook,
                certified_arguments
                    .into_iter()
                    .filter(|argument| argument.starts_with("--webhook-"))
                    .collect(),
            ],
            volumes: apart(own, &format!("{POD}/volumes"), at),
            mounts: apart(own, &format!("{CONTAINER}/volumeMounts"), at),
            annotations: own.pointer("/spec/template/metadata/annotations").cloned().unwrap_or_default(),
            container,
        })
    }

    /// The value of a key of the container.
    pub(super) fn container(&self, key: &str) -> &Value {
        &self.container[key]
    }

    /// The value of a key of the pod.
    pub(super) fn pod(&self, key: &str) -> &Value {
        &self.pod[key]
    }

    /// The annotations of the pod.
    pub(super) fn annotations(&self) -> &Value {
        &self.annotations
    }

    pub(super) fn template(&self, program: &Value) -> Result<Template, Error> {
        let mut template = Template::of(program);
        template.inline("/spec/replicas", "{{ .Values.manager.replicas }}");
        template.inline(
            &format!("{CONTAINER}/image"),
            "\"{{ .Values.manager.image.repository }}{{ if .Values.manager.image.digest }}@{{ .Values.manager.image.digest }}\
             {{ else }}:{{ .Values.manager.image.tag | default .Chart.AppVersion }}{{ end }}\"",
        );
        let optional = |name: &str, value: &str| {
            format!(
                "{{{{- with .Values.manager.{value} }}}}\n{name}:\n  {{{{- toYaml . | nindent @2 }}}}\n{{{{- end }}}}\n"
            )
        };
        let word = |name: &str, value: &str| {
            format!("{{{{- with .Values.manager.{value} }}}}\n{name}: {{{{ . | quote }}}}\n{{{{- end }}}}\n")
        };
        for key in ["resources", "securityContext", "env"] {
            template.lines(CONTAINER, key, &optional(key, key));
        }
        template.lines(CONTAINER, "imagePullPolicy", &word("imagePullPolicy", "image.pullPolicy"));
        for key in
            ["affinity", "nodeSelector", "tolerations", "topologySpreadConstraints", "imagePullSecrets"]
        {
            template.lines(POD, key, &optional(key, key));
        }
        template.lines(POD, "securityContext", &optional("securityContext", "podSecurityContext"));
        template.lines(POD, "priorityClassName", &word("priorityClassName", "priorityClassName"));
        template.lines("/spec", "strategy", &optional("strategy", "strategy"));
        template.lines("/spec/template/metadata", "annotations", &optional("annotations", "podAnnotations"));
        template.lines(CONTAINER, "args", &self.argument_lines()?);
        template.lines(CONTAINER, "ports", &self.port_lines()?);
        template.lines(
            CONTAINER,
            "volumeMounts",
            &mounted("volumeMounts", "extraVolumeMounts", &self.mounts)?,
        );
        template.lines(POD, "volumes", &mounted("volumes", "extraVolumes", &self.volumes)?);
        Ok(template)
    }

    fn argument_lines(&self) -> Result<String, Error> {
        let mut lines = format!(
            "args:\n  - run\n  {{{{- if {METRICS} }}}}\n  - --metrics-bind-address=:{{{{ .Values.metrics.port }}}}\n  \
             {{{{- else }}}}\n  - --metrics-bind-address=0\n  {{{{- end }}}}\n"
        );
        let health = words(&self.container["args"]).into_iter().filter(|word| word.starts_with("--health-"));
        lines += &list(&health.collect::<Vec<_>>())?;
        lines += "  {{- range .Values.manager.args }}\n  - {{ tpl . $ | quote }}\n  {{- end }}\n";
        let [own, certified] = &self.webhook_arguments;
        if !own.is_empty() {
            lines += &format!("  {{{{- if not {WEBHOOK} }}}}\n  - --webhook-bind-address=0\n");
            if !certified.is_empty() {
                lines += &format!("  {{{{- else if {CERTIFIED} }}}}\n{}", list(certified)?);
            }
            lines += &format!("  {{{{- else }}}}\n{}  {{{{- end }}}}\n", list(own)?);
        }
        Ok(lines)
    }

    fn port_lines(&self) -> Result<String, Error> {
        let mut lines = String::from("ports:\n");
        for port in self.container["ports"].as_array().into_iter().flatten() {
            let name = port["name"].as_str().unwrap_or_default();
            let mut text = indent(&text_of(&json!([port]))?, 2);
            if name == "metrics" {
                let number = format!("containerPort: {}\n", self.metrics_port);
                text = text.replace(&number, "containerPort: {{ .Values.metrics.port }}\n");
            }
            let condition = match name {
                "metrics" => Some(METRICS),
                "webhook-server" => Some(WEBHOOK),
                _ => None,
            };
            lines += &match condition {
                Some(condition) => format!("  {{{{- if {condition} }}}}\n{text}  {{{{- end }}}}\n"),
                None => text,
            };
        }
        Ok(lines)
    }
}

/// The list at a pointer, and what its form for cert-manager has beyond it.
fn apart(own: &Value, pointer: &str, certified: impl Fn(&str) -> Value) -> [Value; 2] {
    let always = own.pointer(pointer).cloned().unwrap_or_default();
    let is_own = |item: &Value| always.as_array().is_some_and(|items| items.contains(item));
    let more: Vec<Value> =
        certified(pointer).as_array().into_iter().flatten().filter(|item| !is_own(item)).cloned().collect();
    let more = if more.is_empty() { Value::Null } else { Value::Array(more) };
    [always, more]
}

/// What the operator mounts always and for cert-manager, and what the user mounts.
fn mounted(key: &str, extra: &str, [always, certified]: &[Value; 2]) -> Result<String, Error> {
    let user = format!(".Values.manager.{extra}");
    let users = format!("  {{{{- with {user} }}}}\n  {{{{- toYaml . | nindent @2 }}}}\n  {{{{- end }}}}\n");
    if always.is_array() {
        let mut lines = format!("{key}:\n{}", indent(&text_of(always)?, 2));
        if certified.is_array() {
            let items = indent(&text_of(certified)?, 2);
            lines += &format!("  {{{{- if and {WEBHOOK} {CERTIFIED} }}}}\n{items}  {{{{- end }}}}\n");
        }
        return Ok(lines + &users);
    }
    if !certified.is_array() {
        return Ok(format!("{{{{- if {user} }}}}\n{key}:\n{users}{{{{- end }}}}\n"));
    }
    let condition = format!("and {WEBHOOK} {CERTIFIED}");
    let items = indent(&text_of(certified)?, 2);
    Ok(format!(
        "{{{{- if or ({condition}) {user} }}}}\n{key}:\n  {{{{- if {condition} }}}}\n{items}  {{{{- end }}}}\n{users}{{{{- end }}}}\n"
    ))
}

fn list(words: &[String]) -> Result<String, Error> {
    if words.is_empty() {
        return Ok(String::new());
    }
    Ok(indent(&text_of(&json!(words))?, 2))
}

fn words(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn port(container: &Value, name: &str) -> Option<u64> {
    let ports = container["ports"].as_array()?;
    ports.iter().find(|port| port["name"] == name)?["containerPort"].as_u64()
}

/// The repository, the tag and the digest in the name of an image.
pub(crate) fn image(name: &str) -> (String, String, String) {
    let (rest, digest) = name.split_once('@').unwrap_or((name, ""));
    // A colon in front of the last slash is that of a port.
    let (repository, tag) = match rest.rsplit_once(':') {
        Some((repository, tag)) if !tag.contains('/') => (repository, tag),
        _ => (rest, ""),
    };
    (repository.to_owned(), tag.to_owned(), digest.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{apart, image, mounted};

    #[test]
    fn what_the_operator_mounts_is_mounted_whatever_certificates_it_has() {
        let (own, certificate) = (json!({"name": "own"}), json!({"name": "webhook-certs"}));
        let program = json!({"volumes": [own]});
        let parts = apart(&program, "/volumes", |_| json!([certificate, own]));
        assert_eq!(parts, [json!([own]), json!([certificate])]);
        assert_eq!(apart(&program, "/volumes", |_| Value::Null), [json!([own]), Value::Null]);
        let lines = mounted("volumes", "extraVolumes", &parts).expect("lines");
        assert!(lines.starts_with("volumes:\n  - name: own\n  {{- if and "), "{lines}");
        assert!(lines.contains("  - name: webhook-certs\n  {{- end }}\n"), "{lines}");
    }

    #[test]
    fn the_port_of_a_registry_is_no_tag() {
        for (name, parts) in [
            ("web:1.0", ["web", "1.0", ""]),
            ("localhost:5000/web", ["localhost:5000/web", "", ""]),
            ("localhost:5000/a/web:1", ["localhost:5000/a/web", "1", ""]),
            ("r.example/web@sha256:ab", ["r.example/web", "", "sha256:ab"]),
            ("r.example/web:1@sha256:ab", ["r.example/web", "1", "sha256:ab"]),
        ] {
            let (repository, tag, digest) = image(name);
            assert_eq!([repository, tag, digest], parts);
        }
    }
}
