//! The ClusterServiceVersion.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};

use crate::{
    Error, Input, Olm,
    helm::maintainer,
    inventory::{Inventory, Part, kind, name, namespace},
    sorted,
};

/// The manifests that it is made of: OLM makes the certificates of webhooks and mounts them where cert-manager's are.
pub(super) fn objects(input: &Input) -> &[Value] {
    input.installed.certified.as_deref().unwrap_or(&input.installed.own)
}

/// The CSV of an operator.
///
/// # Errors
/// When it has rights in namespaces other than its own, which no bundle can give.
pub(super) fn csv(input: &Input) -> Result<Value, Error> {
    let inventory = sorted(input, objects(input))?;
    let (about, olm) = (&input.about, &input.about.olm);
    let description = olm.description.as_ref().or(about.description.as_ref()).cloned().unwrap_or_default();
    let mut metadata = json!({
        "name": format!("{}.v{}", input.name, input.version),
        "namespace": "placeholder",
        "annotations": {
            "alm-examples": examples(input)?,
            "capabilities": olm.capabilities.as_deref().unwrap_or("Basic Install"),
        },
    });
    let annotations = &mut metadata["annotations"];
    if !olm.categories.is_empty() {
        annotations["categories"] = olm.categories.join(", ").into();
    }
    if let Some(description) = &about.description {
        annotations["description"] = description.clone().into();
    }
    if let Some(repository) = &about.repository {
        annotations["repository"] = repository.clone().into();
    }
    let mut spec = json!({
        "displayName": olm.display_name.as_ref().unwrap_or(&input.name),
        "description": description,
        "version": input.version,
        "maturity": olm.maturity.as_deref().unwrap_or("alpha"),
        "keywords": about.keywords,
        "maintainers": about.authors.iter().map(|author| maintainer(author)).collect::<Vec<_>>(),
        "provider": {"name": olm.provider.as_deref().unwrap_or_default()},
        "links": links(input),
        "icon": icon(olm),
        "installModes": install_modes(),
        "install": {"strategy": "deployment", "spec": install(input, &inventory)?},
        "customresourcedefinitions": {"owned": owned(&inventory)},
    });
    if let Some(oldest) = &olm.min_kube_version {
        spec["minKubeVersion"] = oldest.clone().into();
    }
    if let Some(replaced) = &olm.replaces {
        spec["replaces"] = replaced.clone().into();
    }
    let webhooks = webhooks(&input.name, &inventory);
    if !webhooks.is_empty() {
        spec["webhookdefinitions"] = webhooks.into();
    }
    Ok(json!({
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": metadata,
        "spec": spec,
    }))
}

fn examples(input: &Input) -> Result<String, Error> {
    let objects: Vec<&Value> = input.samples.iter().flat_map(|sample| &sample.objects).collect();
    serde_json::to_string_pretty(&objects).map_err(|error| Error::Yaml(error.to_string()))
}

fn links(input: &Input) -> Value {
    let about = &input.about;
    let named = [("Homepage", &about.homepage), ("Source", &about.repository)];
    named.into_iter().filter_map(|(name, url)| Some(json!({"name": name, "url": url.as_ref()?}))).collect()
}

fn icon(olm: &Olm) -> Value {
    let Some(file) = &olm.icon else { return json!([]) };
    let kind = match file.rsplit_once('.').map(|(_, suffix)| suffix) {
        Some("svg") => "image/svg+xml",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("gif") => "image/gif",
        _ => "image/png",
    };
    json!([{"base64data": STANDARD.encode(&olm.icon_data), "mediatype": kind}])
}

/// It looks at every namespace: what it looks at is said when it is generated, not when it is installed.
fn install_modes() -> Value {
    let mode = |kind: &str| json!({"type": kind, "supported": kind == "AllNamespaces"});
    ["OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"].map(mode).to_vec().into()
}

fn install(input: &Input, inventory: &Inventory<'_>) -> Result<Value, Error> {
    let (mut everywhere, mut at_home) = (Vec::new(), Vec::new());
    for (suffix, role) in inventory.rbac() {
        let rules = role["rules"].as_array().cloned().unwrap_or_default();
        match kind(role) {
            // It is bound to others.
            "ClusterRole" if suffix == "metrics-reader" => {}
            "ClusterRole" => everywhere.extend(rules),
            "Role" if namespace(role) == Some(inventory.home()) => at_home.extend(rules),
            "Role" => {
                return Err(Error::Unsayable(format!(
                    "an OLM bundle cannot give rights in the namespace {}: generate it without --namespace",
                    namespace(role).unwrap_or_default()
                )));
            }
            _ => {}
        }
    }
    let permissions = |rules: Vec<Value>| match rules.is_empty() {
        true => json!([]),
        false => json!([{"serviceAccountName": input.name, "rules": rules}]),
    };
    let mut program = inventory.program()?["spec"].clone();
    unmounted(&mut program);
    let labels = inventory.program()?["metadata"]["labels"].clone();
    Ok(json!({
        "clusterPermissions": permissions(everywhere),
        "permissions": permissions(at_home),
        "deployments": [{"name": input.name, "label": labels, "spec": program}],
    }))
}

/// OLM mounts the certificate itself, and calls the Service of its own name.
fn unmounted(program: &mut Value) {
    let Some(Value::Object(pod)) = program.pointer_mut("/template/spec") else { return };
    without_certificates(pod, "volumes");
    let Some(Value::Object(container)) = pod.get_mut("containers").and_then(|all| all.get_mut(0)) else {
        return;
    };
    without_certificates(container, "volumeMounts");
    if let Some(Value::Array(arguments)) = container.get_mut("args") {
        let leads_elsewhere =
            |argument: &Value| argument.as_str().is_some_and(|text| text.starts_with("--webhook-service="));
        arguments.retain(|argument| !leads_elsewhere(argument));
    }
}

/// Takes the certificate of webhooks out of a list of volumes or mounts; what the operator mounts besides stays.
fn without_certificates(map: &mut Map<String, Value>, key: &str) {
    let Some(Value::Array(items)) = map.get_mut(key) else { return };
    items.retain(|item| item["name"] != "webhook-certs");
    if items.is_empty() {
        map.remove(key);
    }
}

fn owned(inventory: &Inventory<'_>) -> Vec<Value> {
    let mut owned = Vec::new();
    for definition in inventory.all(&Part::Definition) {
        let spec = &definition["spec"];
        for version in spec["versions"].as_array().into_iter().flatten() {
            let schema = &version["schema"]["openAPIV3Schema"];
            let mut entry = json!({
                "name": name(definition),
                "version": version["name"],
                "kind": spec["names"]["kind"],
                "displayName": words(spec["names"]["kind"].as_str().unwrap_or_default()),
                "description": schema["description"].as_str().unwrap_or_default(),
            });
            for (part, key) in [("spec", "specDescriptors"), ("status", "statusDescriptors")] {
                let descriptors = descriptors(&schema["properties"][part]["properties"]);
                if !descriptors.is_empty() {
                    entry[key] = descriptors.into();
                }
            }
            owned.push(entry);
        }
    }
    owned
}

fn descriptors(properties: &Value) -> Vec<Value> {
    let empty = Map::new();
    let properties = properties.as_object().unwrap_or(&empty);
    let describe = |(path, schema): (&String, &Value)| {
        let mut first = path.chars();
        let upper: String = first.next().into_iter().flat_map(char::to_uppercase).chain(first).collect();
        json!({
            "path": path,
            "displayName": words(&upper),
            "description": schema["description"].as_str().unwrap_or_default(),
        })
    };
    properties.iter().map(describe).collect()
}

/// `WhiteList` as people write it.
fn words(camel: &str) -> String {
    let mut text = String::new();
    let mut small = false;
    for c in camel.chars() {
        if c.is_uppercase() && small {
            text.push(' ');
        }
        small = c.is_lowercase();
        text.push(c);
    }
    text
}

fn webhooks(operator: &str, inventory: &Inventory<'_>) -> Vec<Value> {
    let port = inventory
        .one(&Part::WebhookService)
        .map_or(Value::Null, |service| service["spec"]["ports"][0]["targetPort"].clone());
    let mut webhooks = Vec::new();
    for configuration in inventory.all(&Part::WebhookConfiguration) {
        for webhook in configuration["webhooks"].as_array().into_iter().flatten() {
            let mut entry = json!({
                "type": match kind(configuration) {
                    "MutatingWebhookConfiguration" => "MutatingAdmissionWebhook",
                    _ => "ValidatingAdmissionWebhook",
                },
                "generateName": webhook["name"],
                "deploymentName": operator,
                "containerPort": 443,
                "targetPort": port,
                "webhookPath": webhook["clientConfig"]["service"]["path"],
            });
            let carried = [
                "admissionReviewVersions",
                "sideEffects",
                "failurePolicy",
                "matchPolicy",
                "rules",
                "timeoutSeconds",
                "objectSelector",
                "reinvocationPolicy",
            ];
            for key in carried {
                if let Some(value) = webhook.get(key).filter(|value| !value.is_null()) {
                    entry[key] = value.clone();
                }
            }
            webhooks.push(entry);
        }
    }
    for definition in inventory.all(&Part::Definition) {
        let conversion = &definition["spec"]["conversion"];
        if conversion["strategy"] == "Webhook" {
            webhooks.push(json!({
                "type": "ConversionWebhook",
                "generateName": format!("c{}.kb.io", name(definition).replace('.', "-")),
                "admissionReviewVersions": conversion["webhook"]["conversionReviewVersions"],
                "sideEffects": "None",
                "deploymentName": operator,
                "containerPort": 443,
                "targetPort": port,
                "webhookPath": conversion["webhook"]["clientConfig"]["service"]["path"],
                "conversionCRDs": [name(definition)],
            }));
        }
    }
    webhooks
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn kinds_are_called_as_people_write_them() {
        for (camel, told) in [("WhiteList", "White List"), ("At", "At"), ("URLMap", "URLMap")] {
            assert_eq!(words(camel), told);
        }
    }
}
