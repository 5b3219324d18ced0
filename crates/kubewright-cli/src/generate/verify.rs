//! Whether what is generated works: samples apply under strict validation, and what rights are granted on is there. Both are
//! tried on a control plane in this process.

use anyhow::Context;
use kube::{
    Client,
    api::{Patch, PatchParams, ValidationDirective},
    discovery::Discovery,
};
use kubewright_cluster::Cluster;
use kubewright_layout::Input;
use serde_json::{Value, json};

use crate::access::{self, Objects};

/// What does not work.
///
/// # Errors
/// When the control plane cannot be started.
pub(super) async fn faults(input: &Input, external: &[String]) -> anyhow::Result<Vec<String>> {
    let cluster =
        Cluster::builder().controllers("").nodes(0).start().await.context("a control plane to try on")?;
    let faults = tried(&cluster.client(), input, external).await;
    cluster.stop().await;
    faults
}

async fn tried(client: &Client, input: &Input, external: &[String]) -> anyhow::Result<Vec<String>> {
    let (mut faults, mut cluster) = (Vec::new(), Objects::new(client));
    for definition in input.installed.own.iter().filter(|object| object["kind"] == "CustomResourceDefinition")
    {
        if let Err(why) = applied(&mut cluster, &unconverted(definition)).await {
            faults.push(format!("the definition {}: {why}", definition["metadata"]["name"]));
        }
    }
    for sample in &input.samples {
        for object in &sample.objects {
            let of = object["apiVersion"].as_str().unwrap_or_default();
            if of.split_once('/').is_some_and(|(group, _)| external.iter().any(|other| other == group)) {
                continue;
            }
            if let Err(why) = applied(&mut cluster, object).await {
                faults.push(format!("config/samples/{} cannot be applied: {why}", sample.file));
            }
        }
    }
    faults.extend(unserved(client, input, external).await?);
    Ok(faults)
}

/// Nobody converts here.
fn unconverted(definition: &Value) -> Value {
    let mut definition = definition.clone();
    if definition["spec"]["conversion"]["strategy"] == "Webhook" {
        definition["spec"]["conversion"] = json!({"strategy": "None"});
    }
    definition
}

async fn applied(cluster: &mut Objects, object: &Value) -> Result<(), String> {
    let object = access::object(object.clone()).map_err(|error| format!("{error:#}"))?;
    let api = cluster.api(&object).await.map_err(|error| format!("{error:#}"))?;
    if let Some(namespace) = &object.metadata.namespace {
        let home = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        Box::pin(applied(cluster, &home)).await?;
    }
    let name = object.metadata.name.clone().ok_or("it has no name")?;
    let params = PatchParams {
        field_validation: Some(ValidationDirective::Strict),
        ..PatchParams::apply("kubewright-generate").force()
    };
    match api.patch(&name, &params, &Patch::Apply(&object)).await {
        Ok(_) => Ok(()),
        Err(kube::Error::Api(status)) => Err(status.message),
        Err(error) => Err(error.to_string()),
    }
}

/// Rights on what no API server has: a group or a resource that is misspelt, or of somebody else.
async fn unserved(client: &Client, input: &Input, external: &[String]) -> anyhow::Result<Vec<String>> {
    let served = Discovery::new(client.clone()).run().await.context("the control plane's own resources")?;
    let is_served = |group: &str, resource: &str| {
        let resources = |version: &str, group: &kube::discovery::ApiGroup| {
            group.versioned_resources(version).iter().any(|(kind, _)| kind.plural == resource)
        };
        let found = served.groups().find(|found| found.name() == group);
        found.is_some_and(|found| found.versions().any(|version| resources(version, found)))
    };
    let texts = |value: &Value| -> Vec<String> {
        value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut faults = Vec::new();
    for role in input.installed.own.iter().filter(|object| !object["rules"].is_null()) {
        for rule in role["rules"].as_array().into_iter().flatten() {
            for group in texts(&rule["apiGroups"]) {
                for resource in texts(&rule["resources"]) {
                    let main = resource.split('/').next().unwrap_or(&resource);
                    let is_known = group == "*" || main == "*" || external.contains(&group);
                    if !is_known && !is_served(&group, main) {
                        let kind = role["kind"].as_str().unwrap_or_default();
                        faults.push(format!(
                            "the {kind} {} grants rights on {resource} in the group {group:?}, which is not served: if it is \
                             another operator's, add the group to external-groups in [package.metadata.kubewright.generate]",
                            role["metadata"]["name"]
                        ));
                    }
                }
            }
        }
    }
    faults.dedup();
    Ok(faults)
}

#[cfg(test)]
mod tests {
    use kubewright_layout::{Manifests, Sample};
    use kubewright_runtime::command::Installation;

    use super::*;

    fn input(sample: &str) -> Input {
        let objects =
            kubewright_whitelist::operator().manifests(&Installation::default()).expect("manifests");
        let own = objects.iter().map(|object| kubewright_objects::to_value(object).expect("JSON")).collect();
        let objects = vec![serde_saphyr::from_str(sample).expect("YAML")];
        Input {
            installed: Manifests { own, certified: None },
            samples: vec![Sample { file: "sample.yaml".to_owned(), objects }],
            ..Input::default()
        }
    }

    async fn describe(input: &Input, external: &[&str]) -> Vec<String> {
        let external: Vec<String> = external.iter().map(|&group| group.to_owned()).collect();
        faults(input, &external).await.expect("a control plane")
    }

    #[tokio::test]
    async fn the_sample_of_an_operator_applies_and_its_rights_are_on_what_is_served() {
        assert_eq!(describe(&input(kubewright_whitelist::manifests::SAMPLE), &[]).await, [""; 0]);
    }

    /// KB-18's own sample, under a schema without that field: the first defect of section 0.3 that a check finds.
    #[tokio::test]
    async fn a_sample_with_a_field_that_no_schema_has_is_told() {
        let sample = kubewright_whitelist::manifests::SAMPLE.replace("foo: bar", "fooo: bar");
        let found = describe(&input(&sample), &[]).await;
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("config/samples/sample.yaml cannot be applied"), "{found:?}");
        assert!(found[0].contains(".spec.fooo") && found[0].contains("not declared in schema"), "{found:?}");
    }

    /// The third defect of the first generation: `groups=police.k8s.io` where the group is `police.foo.bar`.
    #[tokio::test]
    async fn rights_on_a_group_that_is_not_served_are_told() {
        let mut input = input(kubewright_whitelist::manifests::SAMPLE);
        input.installed.own.push(json!({
            "kind": "ClusterRole", "metadata": {"name": "police"},
            "rules": [
                {"apiGroups": ["police.k8s.io"], "resources": ["whitelists/status"], "verbs": ["get"]},
                {"apiGroups": ["apps"], "resources": ["deploymentz"], "verbs": ["get"]},
                {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get"]},
            ],
        }));
        let all = describe(&input, &[]).await;
        assert_eq!(all.len(), 2, "{all:?}");
        assert!(all[0].contains("\"police.k8s.io\", which is not served"), "{all:?}");
        assert!(all[1].contains("deploymentz"), "{all:?}");
        assert_eq!(describe(&input, &["police.k8s.io"]).await.len(), 1);
    }
}
