//! `dist/chart`: a Helm chart, with values called as those of kubebuilder's charts.
//!
//! It is made of the manifests themselves: of what they say in the namespace of a release, and of how they differ when
//! cert-manager makes the certificates. Rendered with its default values into the operator's own namespace it gives what
//! `manifests` prints, but for the Namespace (`helm install --create-namespace`), and for the annotation that keeps
//! definitions when the release goes (`crd.keep`).

mod chart;
mod deployment;
mod template;
mod values;

use serde_json::{Value, json};

pub(crate) use self::chart::maintainer;
use self::template::Template;
use crate::{
    Error, Files, Input, extras,
    files::MARK,
    inventory::{Inventory, Part, identity, kind},
    kustomize::{definition_file, rbac_file},
    monitoring, sorted,
};

const METRICS: &str = ".Values.metrics.enable";
const WEBHOOK: &str = ".Values.webhook.enable";
const CERTIFIED: &str = ".Values.certManager.enable";

/// The chart.
pub(crate) fn files(input: &Input) -> Result<Files, Error> {
    let own = sorted(input, &input.released.own)?;
    let both = Both { own: &own, certified: input.released.certified.as_deref() };
    let mut chart = Chart::default();
    let program = deployment::Program::of(&both)?;
    chart.files.marked("dist/chart/Chart.yaml", &chart::chart(input)?);
    chart.files.marked("dist/chart/values.yaml", &values::values(&program, both.certified.is_some())?);
    chart.files.marked("dist/chart/.helmignore", chart::IGNORED);
    chart.files.raw("dist/chart/templates/NOTES.txt", chart::notes(input));
    for (part, object) in both.all() {
        if let Some((file, documents)) = both.template(part, object)? {
            chart.add(&file, documents)?;
        }
    }
    chart.add("manager/manager.yaml", vec![program.template(own.program()?)?])?;
    optional(&mut chart, input, &own)?;
    chart.write();
    Ok(chart.files)
}

/// The files of a chart, and its templates before they are files.
#[derive(Default)]
struct Chart {
    files: Files,
    templates: std::collections::BTreeMap<String, String>,
}

impl Chart {
    fn add(&mut self, file: &str, documents: Vec<Template>) -> Result<(), Error> {
        let text = self.templates.entry(file.to_owned()).or_default();
        for document in documents {
            *text += &document.text()?;
        }
        Ok(())
    }

    fn write(&mut self) {
        for (file, text) in std::mem::take(&mut self.templates) {
            self.files.raw(format!("dist/chart/templates/{file}"), format!("{{{{/* {MARK} */}}}}\n{text}"));
        }
    }
}

/// An installation with certificates of its own, and with cert-manager's.
struct Both<'a> {
    own: &'a Inventory<'a>,
    certified: Option<&'a [Value]>,
}

impl<'a> Both<'a> {
    /// Each object of the one or the other, the program apart.
    fn all(&self) -> Vec<(Part, &'a Value)> {
        let mut all: Vec<(Part, &Value)> =
            self.own.iter().map(|(part, object)| (part.clone(), object)).collect();
        let known = |object: &Value| self.own.iter().any(|(_, other)| identity(other) == identity(object));
        let added = self.certified.into_iter().flatten().filter(|object| !known(object));
        all.extend(added.map(|object| (Part::Certificate, object)));
        all
    }

    fn certified_form(&self, object: &Value) -> Option<&'a Value> {
        self.certified?.iter().find(|other| identity(other) == identity(object))
    }

    /// The file of an object, and its documents there; `None` for what the chart does not have, or has elsewhere.
    fn template(&self, part: Part, object: &Value) -> Result<Option<(String, Vec<Template>)>, Error> {
        let one = |file: &str, template: Template| Ok(Some((file.to_owned(), vec![template])));
        match part {
            Part::Namespace | Part::Program => Ok(None),
            Part::Definition => {
                let file = format!("crd/{}", definition_file(object));
                one(&file, self.definition(object))
            }
            Part::Account => one("rbac/service_account.yaml", Template::of(object)),
            Part::Rbac(suffix) => {
                let file = format!("rbac/{}", rbac_file(&suffix, object));
                let template = Template::of(object).when(".Values.rbac.enable");
                Ok(Some((file, vec![self.gated(&suffix, template, object)])))
            }
            Part::MetricsService => {
                let mut template = Template::of(object).when(METRICS);
                for place in ["/spec/ports/0/port", "/spec/ports/0/targetPort"] {
                    template.inline(place, "{{ .Values.metrics.port }}");
                }
                one("metrics/service.yaml", template)
            }
            Part::WebhookService => one("webhook/service.yaml", Template::of(object).when(WEBHOOK)),
            Part::WebhookConfiguration => {
                let (mut template, annotations) = self.annotated(object);
                template.annotations(&[(CERTIFIED, annotations)]);
                one("webhook/manifests.yaml", template.when(WEBHOOK))
            }
            Part::Certificate => {
                let file = format!("certmanager/{}.yaml", kind(object).to_lowercase());
                one(&file, Template::of(object).when(WEBHOOK).when(CERTIFIED))
            }
            Part::Other => one("installed/objects.yaml", Template::of(object)),
        }
    }

    /// A role of metrics or webhooks is there when these are.
    fn gated(&self, suffix: &str, template: Template, object: &Value) -> Template {
        match suffix {
            "metrics-auth" | "metrics-reader" => template.when(METRICS),
            "webhook" if self.certified_form(object).is_none() => {
                template.when(WEBHOOK).when("not .Values.certManager.enable")
            }
            "webhook" => template.when(WEBHOOK),
            _ => template,
        }
    }

    /// An object, and the annotations that it has with cert-manager alone.
    fn annotated(&self, object: &Value) -> (Template, Value) {
        let annotations = |object: &Value| object["metadata"]["annotations"].clone();
        let added = match self.certified_form(object).map(annotations) {
            Some(Value::Object(certified)) => {
                let own = annotations(object);
                certified.into_iter().filter(|(key, _)| own.get(key).is_none()).collect()
            }
            _ => serde_json::Map::new(),
        };
        (Template::of(object), Value::Object(added))
    }

    fn definition(&self, object: &Value) -> Template {
        let (mut template, injected) = self.annotated(object);
        let keep = json!({"helm.sh/resource-policy": "keep"});
        let certified = format!("and {WEBHOOK} {CERTIFIED}");
        template.annotations(&[(".Values.crd.keep", keep), (&certified, injected)]);
        if object["spec"]["conversion"]["strategy"] == "Webhook" {
            template.only_when("/spec", "conversion", WEBHOOK);
        }
        template.when(".Values.crd.enable")
    }
}

/// What is off by default.
fn optional(chart: &mut Chart, input: &Input, own: &Inventory<'_>) -> Result<(), Error> {
    const POLICIES: &str = ".Values.networkPolicy.enable";
    for (file, role) in extras::helper_roles(&input.name, own) {
        let template = Template::of(&role).when(".Values.rbac.enable").when(".Values.rbac.helpers.enable");
        chart.add(&format!("rbac/{file}"), vec![template])?;
    }
    if let Some(policy) = extras::metrics_policy(&input.name, own) {
        let mut template = Template::of(&policy).when(METRICS).when(POLICIES);
        template.inline("/spec/ingress/0/ports/0/port", "{{ .Values.metrics.port }}");
        chart.add("network-policy/allow-metrics-traffic.yaml", vec![template])?;
    }
    if let Some(policy) = extras::webhook_policy(&input.name, own) {
        let template = Template::of(&policy).when(WEBHOOK).when(POLICIES);
        chart.add("network-policy/allow-webhook-traffic.yaml", vec![template])?;
    }
    if let Some(monitor) = extras::service_monitor(&input.name, own) {
        let template = Template::of(&monitor).when(METRICS).when(".Values.prometheus.enable");
        chart.add("prometheus/monitor.yaml", vec![template])?;
    }
    if let Some(rules) = monitoring::rules(&input.name, own) {
        let template = Template::of(&rules).when(METRICS).when(".Values.prometheus.enable");
        chart.add("prometheus/rules.yaml", vec![template])?;
    }
    if let Some(map) = monitoring::dashboard_map(&input.name, own)? {
        let template = Template::of(&map).when(METRICS).when(".Values.grafana.enable");
        chart.add("grafana/dashboard.yaml", vec![template])?;
    }
    Ok(())
}
