//! `config/`: the tree that users of kubebuilder know. `kubectl kustomize config/default` gives what `manifests` prints.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{
    Error, Files, Input, extras,
    files::yaml,
    inventory::{Inventory, Part, group_version, identity, kind, name, namespace},
    monitoring, sorted,
};

const KUSTOMIZATION: &str = "kustomization.yaml";

/// The tree.
pub(crate) fn files(input: &Input) -> Result<Files, Error> {
    let inventory = sorted(input, &input.installed.own)?;
    let mut tree = Tree::default();
    let mut whole = vec!["../crd", "../rbac", "../manager"];

    definitions(&mut tree, &inventory)?;
    rbac(&mut tree, &inventory)?;
    let program = [inventory.one(&Part::Namespace), inventory.one(&Part::Program)];
    tree.folder("manager", [("manager.yaml", program.into_iter().flatten().collect())])?;
    if inventory.has_webhooks() {
        let service = inventory.all(&Part::WebhookService);
        let configurations = inventory.all(&Part::WebhookConfiguration);
        tree.folder("webhook", [("manifests.yaml", configurations), ("service.yaml", service)])?;
        whole.push("../webhook");
    }
    let others = inventory.all(&Part::Other);
    if !others.is_empty() {
        tree.folder("installed", [("objects.yaml", others)])?;
        whole.push("../installed");
    }
    if let Some(service) = inventory.one(&Part::MetricsService) {
        tree.files.objects("config/default/metrics_service.yaml", [service])?;
        whole.push("metrics_service.yaml");
    }
    optional(&mut tree, input, &inventory)?;
    samples(&mut tree, input)?;
    tree.whole(&whole, input.installed.certified.is_some());
    Ok(tree.files)
}

#[derive(Default)]
struct Tree {
    files: Files,
}

impl Tree {
    /// A folder with files of objects; empty files are left out, and an empty folder is none.
    fn folder<'a>(
        &mut self,
        folder: &str,
        files: impl IntoIterator<Item = (&'a str, Vec<&'a Value>)>,
    ) -> Result<(), Error> {
        let files: Vec<_> = files.into_iter().filter(|(_, objects)| !objects.is_empty()).collect();
        let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
        self.kustomization(folder, &names);
        for (name, objects) in files {
            self.files.objects(format!("config/{folder}/{name}"), objects)?;
        }
        Ok(())
    }

    fn kustomization(&mut self, folder: &str, resources: &[&str]) {
        let resources: String = resources.iter().map(|name| format!("- {name}\n")).collect();
        let text = format!("resources:\n{resources}");
        self.files.marked(format!("config/{folder}/{KUSTOMIZATION}"), &text);
    }

    /// What installs all, and how to have more of it.
    fn whole(&mut self, resources: &[&str], certified: bool) {
        let resources: String = resources.iter().map(|name| format!("- {name}\n")).collect();
        let mut text = String::from(
            "#\n# For anything else, make an overlay: a folder with a kustomization.yaml of your own that begins with\n\
             #   resources:\n\
             #   - ../config/default\n\
             # and add to it what you want of\n\
             #   - ../config/rbac/helpers     # roles for the users of its kinds\n\
             #   - ../config/network-policy   # who may reach its ports\n\
             #   - ../config/prometheus       # a ServiceMonitor and alerts (need the Prometheus operator)\n\
             #   - ../config/grafana          # a dashboard, in a ConfigMap that Grafana's sidecar loads\n",
        );
        if certified {
            text += "#   components:\n#   - ../config/certmanager     # certificates by cert-manager, which must be there\n";
        }
        text += &format!("resources:\n{resources}");
        self.files.marked(format!("config/default/{KUSTOMIZATION}"), &text);
    }
}

fn definitions(tree: &mut Tree, inventory: &Inventory<'_>) -> Result<(), Error> {
    let files: Vec<(String, &Value)> = inventory
        .all(&Part::Definition)
        .into_iter()
        .map(|definition| (format!("bases/{}", definition_file(definition)), definition))
        .collect();
    tree.folder("crd", files.iter().map(|(name, definition)| (name.as_str(), vec![*definition])))
}

/// `<group>_<plural>.yaml`, as controller-gen calls it.
pub(crate) fn definition_file(definition: &Value) -> String {
    let spec = &definition["spec"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{}_{}.yaml", text(&spec["group"]), text(&spec["names"]["plural"]))
}

fn rbac(tree: &mut Tree, inventory: &Inventory<'_>) -> Result<(), Error> {
    let mut files: BTreeMap<String, Vec<&Value>> = BTreeMap::new();
    for (suffix, object) in inventory.rbac() {
        files.entry(rbac_file(suffix, object)).or_default().push(object);
    }
    files.insert("service_account.yaml".to_owned(), inventory.all(&Part::Account));
    tree.folder("rbac", files.iter().map(|(name, objects)| (name.as_str(), objects.clone())))
}

/// As kubebuilder calls it.
pub(crate) fn rbac_file(suffix: &str, object: &Value) -> String {
    let prefix = match suffix {
        "operator" => String::new(),
        "leader" => "leader_election_".to_owned(),
        other => format!("{}_", other.replace('-', "_")),
    };
    let what = if kind(object).ends_with("Binding") { "role_binding" } else { "role" };
    format!("{prefix}{what}.yaml")
}

/// What is not in `config/default`, and can be added to it.
fn optional(tree: &mut Tree, input: &Input, inventory: &Inventory<'_>) -> Result<(), Error> {
    let helpers = extras::helper_roles(&input.name, inventory);
    if !helpers.is_empty() {
        tree.folder("rbac/helpers", helpers.iter().map(|(name, role)| (name.as_str(), vec![role])))?;
    }
    let metrics = extras::metrics_policy(&input.name, inventory);
    let webhook = extras::webhook_policy(&input.name, inventory);
    let policies = [("allow-metrics-traffic.yaml", &metrics), ("allow-webhook-traffic.yaml", &webhook)];
    tree.folder(
        "network-policy",
        policies.into_iter().map(|(name, policy)| (name, policy.iter().collect())),
    )?;
    let monitor = extras::service_monitor(&input.name, inventory);
    let rules = monitoring::rules(&input.name, inventory);
    let prometheus = [("monitor.yaml", monitor.iter().collect()), ("rules.yaml", rules.iter().collect())];
    tree.folder("prometheus", prometheus)?;
    dashboard(tree, input, inventory)?;
    match &input.installed.certified {
        Some(certified) => certmanager(tree, &input.installed.own, certified),
        None => Ok(()),
    }
}

/// The dashboard as a file that can be imported, and how a ConfigMap is made of it.
fn dashboard(tree: &mut Tree, input: &Input, inventory: &Inventory<'_>) -> Result<(), Error> {
    let Some(text) = monitoring::dashboard(&input.name, inventory)? else { return Ok(()) };
    tree.files.raw(format!("config/grafana/{}", monitoring::DASHBOARD), text);
    let (label, value) = monitoring::DASHBOARD_LABEL;
    let kustomization = json!({
        "configMapGenerator": [{
            "name": monitoring::dashboard_name(&input.name),
            "namespace": inventory.home(),
            "files": [monitoring::DASHBOARD],
            "options": {"disableNameSuffixHash": true, "labels": {label: value}},
        }],
    });
    tree.files.marked(format!("config/grafana/{KUSTOMIZATION}"), &yaml(&kustomization)?);
    Ok(())
}

/// The component that makes of the one installation the other: what is only there is added, what is only here deleted, and
/// the rest patched.
fn certmanager(tree: &mut Tree, own: &[Value], certified: &[Value]) -> Result<(), Error> {
    let find = |objects: &[Value], wanted: &Value| {
        objects.iter().find(|object| identity(object) == identity(wanted)).cloned()
    };
    let added: Vec<&Value> = certified.iter().filter(|object| find(own, object).is_none()).collect();
    tree.files.objects("config/certmanager/certificate.yaml", added)?;
    let mut patches = Vec::new();
    for object in own {
        match find(certified, object) {
            None => patches.push(json!({"patch": yaml(&deletion(object))?})),
            Some(wanted) if wanted == *object => {}
            Some(wanted) => {
                let file = format!("{}_{}_patch.yaml", kind(object).to_lowercase(), name(object));
                let operations = serde_json::to_value(json_patch::diff(object, &wanted))
                    .map_err(|error| Error::Yaml(error.to_string()))?;
                tree.files.marked(format!("config/certmanager/{file}"), &yaml(&operations)?);
                patches.push(json!({"path": file, "target": target(object)}));
            }
        }
    }
    let component = json!({
        "apiVersion": "kustomize.config.k8s.io/v1alpha1",
        "kind": "Component",
        "resources": ["certificate.yaml"],
        "patches": patches,
    });
    tree.files.marked(format!("config/certmanager/{KUSTOMIZATION}"), &yaml(&component)?);
    Ok(())
}

fn deletion(object: &Value) -> Value {
    let mut deletion = json!({
        "$patch": "delete",
        "apiVersion": object["apiVersion"],
        "kind": object["kind"],
        "metadata": {"name": name(object)},
    });
    if let Some(namespace) = namespace(object) {
        deletion["metadata"]["namespace"] = namespace.into();
    }
    deletion
}

fn target(object: &Value) -> Value {
    let (group, version) = group_version(object["apiVersion"].as_str().unwrap_or_default());
    let mut target = json!({"version": version, "kind": object["kind"], "name": name(object)});
    if !group.is_empty() {
        target["group"] = group.into();
    }
    if let Some(namespace) = namespace(object) {
        target["namespace"] = namespace.into();
    }
    target
}

fn samples(tree: &mut Tree, input: &Input) -> Result<(), Error> {
    if !input.samples.is_empty() {
        let names: Vec<&str> = input.samples.iter().map(|sample| sample.file.as_str()).collect();
        let resources: String = names.iter().map(|name| format!("- {name}\n")).collect();
        // Under this name kustomize finds it, and `kubectl apply -f config/samples/`, which reads `.yaml`, passes over it.
        tree.files.marked("config/samples/Kustomization", &format!("resources:\n{resources}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Format, generate, testing};

    /// The objects of a folder, as its kustomization names them.
    fn resources(files: &Files, folder: &str) -> Vec<Value> {
        let text = files.get(&format!("{folder}/{KUSTOMIZATION}")).unwrap_or_else(|| panic!("{folder}"));
        let kustomization: Value = serde_saphyr::from_str(text).expect("YAML");
        let mut objects = Vec::new();
        for resource in kustomization["resources"].as_array().into_iter().flatten() {
            let resource = resource.as_str().expect("a path");
            if resource.ends_with(".yaml") {
                let text = files.get(&format!("{folder}/{resource}")).unwrap_or_else(|| panic!("{resource}"));
                objects.extend(serde_saphyr::from_multiple::<Value>(text).expect("YAML"));
            } else {
                let (parent, _) = folder.rsplit_once('/').expect("a parent");
                let other = resource.strip_prefix("../").expect("a sibling");
                objects.extend(resources(files, &format!("{parent}/{other}")));
            }
        }
        objects
    }

    fn sorted(mut objects: Vec<Value>) -> Vec<Value> {
        objects.sort_by_key(identity);
        objects
    }

    #[test]
    fn the_tree_holds_what_manifests_prints_and_no_more() {
        for input in [testing::whitelist(), testing::police()] {
            let files = generate(&input, &[Format::Kustomize]).expect("files");
            assert_eq!(sorted(resources(&files, "config/default")), sorted(input.installed.own));
        }
    }

    #[test]
    fn with_cert_manager_it_is_what_manifests_prints_with_it() {
        let input = testing::police();
        let files = generate(&input, &[Format::Kustomize]).expect("files");
        let mut objects = resources(&files, "config/default");
        let component: Value =
            serde_saphyr::from_str(files.get("config/certmanager/kustomization.yaml").expect("a component"))
                .expect("YAML");
        objects.extend(resources(&files, "config/certmanager"));
        for patch in component["patches"].as_array().expect("patches") {
            if let Some(text) = patch["patch"].as_str() {
                let deletion: Value = serde_saphyr::from_str(text).expect("YAML");
                assert_eq!(deletion["$patch"], "delete");
                objects.retain(|object| identity(object) != identity(&deletion));
                continue;
            }
            let file = format!("config/certmanager/{}", patch["path"].as_str().expect("a path"));
            let operations: json_patch::Patch =
                serde_saphyr::from_str(files.get(&file).expect("a patch")).expect("YAML");
            let is_target = |object: &&mut Value| {
                object["kind"] == patch["target"]["kind"] && name(object) == patch["target"]["name"]
            };
            let object = objects.iter_mut().find(is_target).expect("the target");
            json_patch::patch(object, &operations).expect("it can be patched");
        }
        assert_eq!(sorted(objects), sorted(input.installed.certified.expect("webhooks")));
    }

    #[test]
    fn files_are_called_as_kubebuilder_calls_them() {
        let files = generate(&testing::whitelist(), &[Format::Kustomize]).expect("files");
        let told: Vec<&str> = files.iter().map(|(path, _)| path).collect();
        assert_eq!(
            told,
            [
                "config/crd/bases/sample.foo.bar_whitelists.yaml",
                "config/crd/kustomization.yaml",
                "config/default/kustomization.yaml",
                "config/default/metrics_service.yaml",
                "config/grafana/kustomization.yaml",
                "config/grafana/operator.json",
                "config/manager/kustomization.yaml",
                "config/manager/manager.yaml",
                "config/network-policy/allow-metrics-traffic.yaml",
                "config/network-policy/kustomization.yaml",
                "config/prometheus/kustomization.yaml",
                "config/prometheus/monitor.yaml",
                "config/prometheus/rules.yaml",
                "config/rbac/helpers/kustomization.yaml",
                "config/rbac/helpers/whitelist_admin_role.yaml",
                "config/rbac/helpers/whitelist_editor_role.yaml",
                "config/rbac/helpers/whitelist_viewer_role.yaml",
                "config/rbac/kustomization.yaml",
                "config/rbac/leader_election_role.yaml",
                "config/rbac/leader_election_role_binding.yaml",
                "config/rbac/metrics_auth_role.yaml",
                "config/rbac/metrics_auth_role_binding.yaml",
                "config/rbac/metrics_reader_role.yaml",
                "config/rbac/role.yaml",
                "config/rbac/role_binding.yaml",
                "config/rbac/service_account.yaml",
                "config/samples/Kustomization",
            ]
        );
    }
}
