//! The files that name all others, and are written anew with each kind: `src/kinds.rs` and `tests/it/main.rs`.

use std::collections::BTreeMap;

use crate::{
    Project,
    project::{Origin, Resource},
    templates::{conversion_module, rust},
};

pub(crate) const KINDS: &str = "src/kinds.rs";
pub(crate) const TESTS: &str = "tests/it/main.rs";

/// `src/kinds.rs`: the modules of all kinds, and what an operator has to know of them.
pub(crate) fn kinds(project: &Project) -> String {
    let mut text =
        "//! The kinds of this operator. Kept by `kubewright create`: what you change here, it merges.\n\n"
            .to_owned();
    text += match has_webhooks(project) {
        false => "use kubewright::command::Operator;\n\n",
        true => "use kubewright::{command::Operator, webhook::Webhooks};\n\n",
    };
    let mut groups: BTreeMap<String, Vec<&Resource>> = BTreeMap::new();
    for resource in &project.resources {
        groups.entry(resource.group.module()).or_default().push(resource);
    }
    for (module, resources) in groups {
        let group = project.api_group(resources[0]);
        text += &format!("/// The group {group}.\npub mod {module} {{\n");
        let modules: Vec<String> = resources.iter().map(|resource| kind(project, resource)).collect();
        text += &modules.join("\n");
        text += "}\n\n";
    }
    text += &register(project);
    if has_webhooks(project) {
        text += &webhooks(project);
    }
    rust(project, &text)
}

/// The module of a kind.
fn kind(project: &Project, resource: &Resource) -> String {
    let mut modules = Vec::new();
    if resource.origin != Origin::BuiltIn {
        modules.extend(resource.versions.iter().map(ToString::to_string));
    }
    for (present, name) in [
        (resource.controller, "controller"),
        (resource.webhooks.defaulting, "defaulting"),
        (resource.webhooks.validation, "validation"),
    ] {
        modules.extend(present.then(|| name.to_owned()));
    }
    modules.extend(resource.conversions.iter().map(|pair| conversion_module(&pair.0, &pair.1)));

    let mut text = format!("    /// {}.\n    pub mod {} {{\n", resource.kind, resource.kind.module());
    if has_conversion(resource) {
        text += "        use kubewright::webhook::Conversion;\n\n";
    }
    for module in modules {
        let public = if module.starts_with("conversion_") { "" } else { "pub " };
        text += &format!("        {public}mod {module};\n");
    }
    if resource.origin != Origin::BuiltIn {
        text += "\n        // The version that is stored, and that the controller works with.\n";
        text += &format!("        pub use self::{}::*;\n", resource.hub);
    }
    if has_conversion(resource) {
        text += &conversion(project, resource);
    }
    text + "    }\n"
}

/// What converts between the versions of a kind.
fn conversion(project: &Project, resource: &Resource) -> String {
    let kind = &resource.kind;
    let mut text = format!(
        "\n        /// Between its versions.\n        pub fn conversion() -> Conversion<{kind}> {{\n            Conversion::hub::<{kind}>()\n"
    );
    for version in resource.spokes() {
        text += &format!("                .spoke::<{version}::{kind}>()\n");
    }
    text += &format!(
        "                .keeping(\"{}/conversion-data\")\n        }}\n",
        project.api_group(resource)
    );
    text
}

/// The function that adds all of them to an operator.
fn register(project: &Project) -> String {
    let of_kind = |resource: &Resource| {
        let (module, kind) = (resource.module(), &resource.kind);
        let mut calls = Vec::new();
        if resource.origin.is_own() {
            calls.push(format!("definition::<{module}::{kind}>()"));
            let spokes =
                resource.spokes().map(|version| format!("definition::<{module}::{version}::{kind}>()"));
            calls.extend(spokes);
        }
        if resource.controller {
            calls.push(format!("controller({module}::controller::controller)"));
        }
        calls
    };
    let mut calls: Vec<Vec<String>> = project.resources.iter().map(of_kind).collect();
    if has_webhooks(project) {
        calls.push(vec!["webhooks(webhooks())".to_owned()]);
    }
    let steps = steps("operator", &calls);
    let mutable = if steps.is_empty() { "" } else { "mut " };
    format!(
        "/// Adds them to an operator.\npub fn register({mutable}operator: Operator) -> Operator {{\n{steps}    operator\n}}\n"
    )
}

/// The function that makes the operator's webhooks.
fn webhooks(project: &Project) -> String {
    let of_kind = |resource: &Resource| {
        let module = resource.module();
        let calls = [
            (resource.webhooks.defaulting, format!("add({module}::defaulting::webhook())")),
            (resource.webhooks.validation, format!("add({module}::validation::webhook())")),
            (has_conversion(resource), format!("convert({module}::conversion())")),
        ];
        calls.into_iter().filter_map(|(present, call)| present.then_some(call)).collect()
    };
    let calls: Vec<Vec<String>> = project.resources.iter().map(of_kind).collect();
    let (name, steps) = (project.project_name.as_str(), steps("webhooks", &calls));
    format!(
        "\n/// Their webhooks.\npub fn webhooks() -> Webhooks {{\n    let mut webhooks = Webhooks::new({name:?});\n{steps}    webhooks\n}}\n"
    )
}

/// The steps of a builder, each a statement of its own and those of each kind apart: so a kind can be added where somebody has changed
/// the lines of another, and both are merged.
fn steps(variable: &str, kinds: &[Vec<String>]) -> String {
    let step = |call: &String| format!("    {variable} = {variable}.{call};\n");
    let kinds = kinds.iter().filter(|calls| !calls.is_empty());
    kinds.map(|calls| calls.iter().map(step).collect::<String>() + "\n").collect()
}

fn has_conversion(resource: &Resource) -> bool {
    resource.spokes().next().is_some()
}

fn has_webhooks(project: &Project) -> bool {
    project.resources.iter().any(|resource| !resource.webhooks.is_none() || has_conversion(resource))
}

/// `tests/it/main.rs`: the modules of all tests.
pub(crate) fn tests(project: &Project) -> String {
    let mut modules = Vec::new();
    for resource in project.resources.iter().filter(|resource| resource.origin != Origin::Imported) {
        modules.push(resource.file_name());
        modules.extend(
            resource.versions.iter().skip(1).map(|version| format!("{}_{version}", resource.file_name())),
        );
    }
    let mut text = "//! Tests of the operator, in one program. Kept by `kubewright create`: what you change here, it merges.\n".to_owned();
    if !modules.is_empty() {
        text += "\n";
    }
    for module in modules {
        text += &format!("mod {module};\n");
    }
    rust(project, &text)
}
