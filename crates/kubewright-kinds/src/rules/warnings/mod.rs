//! What a good object is warned of: deprecated fields, and what is allowed but hardly meant
//! (`pkg/api/*/warnings.go`, `WarningsOnCreate` and `WarningsOnUpdate` of the strategies).

pub(crate) mod addresses;
mod overlaps;
pub(crate) mod pods;
pub(crate) mod storage;

use serde_json::Value;

use super::at::At;
use super::text;

/// What an object is warned of, and the one that it replaces.
pub(crate) struct WarningContext<'a> {
    new: At<'a>,
    old: Option<At<'a>>,
    /// Whether this write raises the generation: templates are looked at again only then.
    raised: &'a dyn Fn() -> bool,
}

/// The warnings for objects of one kind.
pub(crate) type Warn = fn(&WarningContext<'_>, &mut Vec<String>);

impl<'a> WarningContext<'a> {
    pub(super) fn new(new: &'a Value, old: Option<&'a Value>, raised: &'a dyn Fn() -> bool) -> Self {
        Self { new: At::root(new), old: old.map(At::root), raised }
    }

    /// The object as it is to be.
    pub(super) fn new_object(&self) -> &At<'a> {
        &self.new
    }

    pub(super) fn is_new(&self) -> bool {
        self.old.is_none()
    }
}

/// Labels of nodes that have other names now (`pkg/api/node`).
fn deprecated_label(key: &str) -> Option<&'static str> {
    Some(match key {
        "beta.kubernetes.io/arch" => "deprecated since v1.14; use \"kubernetes.io/arch\" instead",
        "beta.kubernetes.io/os" => "deprecated since v1.14; use \"kubernetes.io/os\" instead",
        "failure-domain.beta.kubernetes.io/region" => {
            "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead"
        }
        "failure-domain.beta.kubernetes.io/zone" => {
            "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead"
        }
        "beta.kubernetes.io/instance-type" => {
            "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead"
        }
        "app.kubernetes.io/created-by" => "deprecated since v1.9",
        "scheduler.alpha.kubernetes.io/preferAvoidPods" => {
            "deprecated since v1.22; use Taints and Tolerations instead"
        }
        "node-role.kubernetes.io/master" => "use \"node-role.kubernetes.io/control-plane\" instead",
        _ => return None,
    })
}

/// The keys of a list of expressions.
fn of_expressions(expressions: &At<'_>, out: &mut Vec<String>) {
    for key in expressions.items().map(|expression| expression.get("key")) {
        if let Some(why) = deprecated_label(key.text()) {
            out.push(format!("{}: {} is {why}", key.path, key.text()));
        }
    }
}

/// The name becomes part of the names of pods, and those are host names.
fn of_name(subject: &WarningContext<'_>, used: &str, out: &mut Vec<String>) {
    let wrong = text::label(subject.new.dig(&["metadata", "name"]).text());
    if subject.is_new() && !wrong.is_empty() {
        out.push(format!(
            "metadata.name: this is used in {used}, which can result in surprising behavior; a DNS label is recommended: [{}]",
            wrong.join(" ")
        ));
    }
}

fn of_template(subject: &WarningContext<'_>, path: &[&str], named: bool, out: &mut Vec<String>) {
    if named {
        of_name(subject, "Pod names and hostnames", out);
    }
    if subject.is_new() || (subject.raised)() {
        pods::of_template(&subject.new.dig(path), out);
    }
}

/// The template of an object that is one.
pub(crate) fn of_pod_template(subject: &WarningContext<'_>, out: &mut Vec<String>) {
    of_template(subject, &["template"], false, out);
}

/// The template in a spec.
pub(crate) fn of_spec_template(subject: &WarningContext<'_>, out: &mut Vec<String>) {
    of_template(subject, &["spec", "template"], false, out);
}

/// The template in a spec, whose pods are named after the object.
pub(crate) fn of_named_template(subject: &WarningContext<'_>, out: &mut Vec<String>) {
    of_template(subject, &["spec", "template"], true, out);
}

/// The template in the spec of a replication controller. An update is warned of what it replaces, not of what it says: its strategy calls
/// `GetWarningsForPodTemplate` with the old template as the new one.
pub(crate) fn of_replication_controller(subject: &WarningContext<'_>, out: &mut Vec<String>) {
    match &subject.old {
        None => of_named_template(subject, out),
        Some(old) if (subject.raised)() => pods::of_template(&old.dig(&["spec", "template"]), out),
        Some(_) => {}
    }
}

pub(crate) fn of_stateful_set(subject: &WarningContext<'_>, out: &mut Vec<String>) {
    of_template(subject, &["spec", "template"], false, out);
    let spec = subject.new.get("spec");
    for claim in spec.get("volumeClaimTemplates").items() {
        // An update names the field as Go does.
        let path = format!("{}{}", claim.path, if subject.is_new() { "" } else { ".Spec" });
        storage::of_claim_spec(&At { path, ..claim.get("spec") }, out);
    }
    if spec.get("revisionHistoryLimit").number().is_some_and(|limit| limit < 0) {
        out.push("spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended".to_owned());
    }
}

pub(crate) fn of_job(subject: &WarningContext<'_>, out: &mut Vec<String>) {
    of_job_spec(subject, &["spec"], out);
}

fn of_job_spec(subject: &WarningContext<'_>, path: &[&str], out: &mut Vec<String>) {
    of_name(subject, "Pod names and hostnames", out);
    if !subject.is_new() && !(subject.raised)() {
        return;
    }
    let spec = subject.new.dig(path);
    let number = |field: &str| spec.get(field).number().unwrap_or_default();
    if spec.get("completionMode").text() == "Indexed"
        && number("completions") > 100_000
        && number("parallelism") > 10_000
    {
        out.push(format!("{}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes might not be able to track completedIndexes when a big number of indexes fail", spec.path));
    }
    pods::of_template(&spec.get("template"), out);
}

pub(crate) fn of_cron_job(subject: &WarningContext<'_>, out: &mut Vec<String>) {
    of_job_spec(subject, &["spec", "jobTemplate", "spec"], out);
    if !subject.is_new() && subject.new.dig(&["spec", "schedule"]).text().contains("TZ") {
        out.push("cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details".to_owned());
    }
}

pub(crate) fn of_ingress(subject: &WarningContext<'_>, out: &mut Vec<String>) {
    const CLASS: &str = "kubernetes.io/ingress.class";
    let is_annotated = subject.new.dig(&["metadata", "annotations"]).get(CLASS).is_set();
    if subject.is_new() && is_annotated && !subject.new.dig(&["spec", "ingressClassName"]).is_set() {
        out.push(format!("annotation {CLASS:?} is deprecated, please use 'spec.ingressClassName' instead"));
    }
}

pub(crate) fn of_node(subject: &WarningContext<'_>, out: &mut Vec<String>) {
    let spec = subject.new.get("spec");
    if spec.get("configSource").is_set() {
        out.push("spec.configSource: the feature is removed".to_owned());
    }
    if !spec.get("externalID").is_empty() {
        out.push("spec.externalID: this field is deprecated, and is unused by Kubernetes".to_owned());
    }
    for range in spec.get("podCIDRs").items() {
        addresses::of_range(&range, out);
    }
}

pub(crate) fn of_service_account(subject: &WarningContext<'_>, out: &mut Vec<String>) {
    const ENFORCE: &str = "kubernetes.io/enforce-mountable-secrets";
    let has = |account: &At<'_>| account.dig(&["metadata", "annotations"]).get(ENFORCE).is_set();
    if has(&subject.new) && !subject.old.as_ref().is_some_and(has) {
        out.push(format!("metadata.annotations[{ENFORCE}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"));
    }
}

/// A certificate and a key that are no PEM. (Whether they belong together is not looked at.)
pub(crate) fn of_secret(subject: &WarningContext<'_>, out: &mut Vec<String>) {
    use base64::Engine;
    if subject.new.get("type").text() != "kubernetes.io/tls" {
        return;
    }
    for (key, what) in [("tls.crt", "certificate"), ("tls.key", "key")] {
        let text = subject.new.get("data").get(key).text();
        let bytes = base64::engine::general_purpose::STANDARD.decode(text).unwrap_or_default();
        if pem::parse(&bytes).is_err() {
            out.push(format!("tls: failed to find any PEM data in {what} input"));
            return;
        }
    }
}

pub(crate) fn of_runtime_class(subject: &WarningContext<'_>, out: &mut Vec<String>) {
    let selector = subject.new.dig(&["scheduling", "nodeSelector"]);
    for why in selector.entries().filter_map(|(key, _)| deprecated_label(key)) {
        out.push(format!("{}: {why}", selector.path));
    }
}
