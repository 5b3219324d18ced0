//! `bundle/`: what the Operator Lifecycle Manager installs an operator from.

mod csv;
mod findings;

use serde_json::{Value, json};

pub use self::findings::{Finding, Level};
use crate::{
    Error, Files, Input,
    files::{MARK, yaml},
    inventory::{Part, kind, name},
    kustomize::definition_file,
    sorted,
};

const MANIFESTS: &str = "bundle/manifests";

/// The bundle.
pub(crate) fn files(input: &Input) -> Result<Files, Error> {
    let mut files = Files::default();
    let inventory = sorted(input, csv::objects(input))?;
    let csv = csv::csv(input)?;
    files.marked(format!("{MANIFESTS}/{}.clusterserviceversion.yaml", input.name), &yaml(&csv)?);
    for definition in inventory.all(&Part::Definition) {
        let mut definition = definition.clone();
        // OLM leads them to the webhooks itself.
        if let Some(Value::Object(spec)) = definition.get_mut("spec")
            && spec.get("conversion").is_some_and(|conversion| conversion["strategy"] == "Webhook")
        {
            spec.remove("conversion");
        }
        if let Some(Value::Object(metadata)) = definition.get_mut("metadata") {
            metadata.remove("annotations");
        }
        files.marked(format!("{MANIFESTS}/{}", definition_file(&definition)), &yaml(&definition)?);
    }
    for (part, object) in inventory.iter() {
        let is_reader = *part == Part::Rbac("metrics-reader".to_owned());
        if is_reader || matches!(part, Part::MetricsService | Part::Other) {
            let mut object = object.clone();
            // A bundle has no namespace of its own: it is installed into that of the subscription.
            if let Some(Value::Object(metadata)) = object.get_mut("metadata")
                && metadata.get("namespace").and_then(Value::as_str) == Some(inventory.home())
            {
                metadata.remove("namespace");
            }
            let file = format!("{}_{}.yaml", name(&object), kind(&object).to_lowercase());
            files.marked(format!("{MANIFESTS}/{file}"), &yaml(&object)?);
        }
    }
    let annotations = annotations(input);
    files.marked("bundle/metadata/annotations.yaml", &yaml(&json!({"annotations": map(&annotations)}))?);
    files.marked("bundle/tests/scorecard/config.yaml", &yaml(&scorecard())?);
    files.raw("bundle.Dockerfile", dockerfile(&annotations));
    Ok(files)
}

/// What is wrong with it, or could be better.
pub(crate) fn findings(input: &Input) -> Result<Vec<Finding>, Error> {
    let inventory = sorted(input, csv::objects(input))?;
    Ok(findings::findings(&csv::csv(input)?, &inventory))
}

fn annotations(input: &Input) -> Vec<(String, String)> {
    let olm = &input.about.olm;
    let channels = if olm.channels.is_empty() { "alpha".to_owned() } else { olm.channels.join(",") };
    let default = olm.default_channel.clone().or_else(|| olm.channels.first().cloned());
    let bundle = "operators.operatorframework.io.bundle";
    let test = "operators.operatorframework.io.test";
    [
        (format!("{bundle}.mediatype.v1"), "registry+v1".to_owned()),
        (format!("{bundle}.manifests.v1"), "manifests/".to_owned()),
        (format!("{bundle}.metadata.v1"), "metadata/".to_owned()),
        (format!("{bundle}.package.v1"), input.name.clone()),
        (format!("{bundle}.channels.v1"), channels),
        (format!("{bundle}.channel.default.v1"), default.unwrap_or_else(|| "alpha".to_owned())),
        (format!("{test}.mediatype.v1"), "scorecard+v1".to_owned()),
        (format!("{test}.config.v1"), "tests/scorecard/".to_owned()),
    ]
    .into()
}

fn map(annotations: &[(String, String)]) -> Value {
    let pairs = annotations.iter().map(|(key, value)| (key.clone(), value.as_str().into()));
    Value::Object(pairs.collect())
}

/// What operator-sdk's scorecard does with it: the tests that need nothing but the bundle.
fn scorecard() -> Value {
    let test = |entry: &[&str], suite: &str| {
        json!({
            "entrypoint": entry,
            "image": "quay.io/operator-framework/scorecard-test:v1.42.3",
            "labels": {"suite": suite, "test": format!("{}-test", entry[1])},
        })
    };
    let olm = [
        "olm-bundle-validation",
        "olm-crds-have-validation",
        "olm-crds-have-resources",
        "olm-spec-descriptors",
        "olm-status-descriptors",
    ];
    let mut tests = vec![test(&["scorecard-test", "basic-check-spec"], "basic")];
    tests.extend(olm.map(|name| test(&["scorecard-test", name], "olm")));
    json!({
        "apiVersion": "scorecard.operatorframework.io/v1alpha3",
        "kind": "Configuration",
        "metadata": {"name": "config"},
        "stages": [{"parallel": true, "tests": tests}],
    })
}

fn dockerfile(annotations: &[(String, String)]) -> String {
    let labels: String = annotations.iter().map(|(key, value)| format!("LABEL {key}={value}\n")).collect();
    format!(
        "# {MARK}\nFROM scratch\n\n{labels}\nCOPY bundle/manifests /manifests/\nCOPY bundle/metadata /metadata/\n\
         COPY bundle/tests/scorecard /tests/scorecard/\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Format, generate, testing};

    fn read(files: &Files, path: &str) -> Value {
        serde_saphyr::from_str(files.get(path).unwrap_or_else(|| panic!("{path}"))).expect("YAML")
    }

    #[test]
    fn a_bundle_has_the_operator_its_rights_and_its_kinds() {
        let input = testing::whitelist();
        let files = generate(&input, &[Format::Olm]).expect("files");
        let csv = read(&files, "bundle/manifests/whitelist.clusterserviceversion.yaml");
        assert_eq!(csv["metadata"]["name"], "whitelist.v0.1.0");
        let install = &csv["spec"]["install"]["spec"];
        let program = sorted(&input, &input.installed.own).expect("manifests");
        assert_eq!(install["deployments"][0]["spec"], program.program().expect("a Deployment")["spec"]);
        let groups: Vec<&Value> = install["clusterPermissions"][0]["rules"]
            .as_array()
            .expect("rules")
            .iter()
            .map(|rule| &rule["apiGroups"][0])
            .collect();
        assert!(groups.contains(&&json!("sample.foo.bar")) && groups.contains(&&json!("apps")), "{groups:?}");
        let at_home = install["permissions"][0]["rules"].to_string();
        assert!(at_home.contains("coordination.k8s.io"), "{at_home}");
        let owned = &csv["spec"]["customresourcedefinitions"]["owned"][0];
        assert_eq!(
            (&owned["name"], &owned["displayName"]),
            (&json!("whitelists.sample.foo.bar"), &json!("White List"))
        );
        let examples: Value =
            serde_json::from_str(csv["metadata"]["annotations"]["alm-examples"].as_str().expect("examples"))
                .expect("JSON");
        assert_eq!(examples[0]["kind"], "WhiteList");
        assert!(files.get("bundle/manifests/sample.foo.bar_whitelists.yaml").is_some());
        let annotations = read(&files, "bundle/metadata/annotations.yaml");
        let package = "operators.operatorframework.io.bundle.package.v1";
        assert_eq!(annotations["annotations"][package], "whitelist");
        assert!(
            files.get("bundle.Dockerfile").expect("a file").contains(&format!("LABEL {package}=whitelist\n"))
        );
    }

    #[test]
    fn olm_sees_to_the_certificates_of_webhooks() {
        let files = generate(&testing::police(), &[Format::Olm]).expect("files");
        let csv = read(&files, "bundle/manifests/image-police.clusterserviceversion.yaml");
        let webhook = &csv["spec"]["webhookdefinitions"][0];
        assert_eq!(
            (&webhook["type"], &webhook["targetPort"]),
            (&json!("ValidatingAdmissionWebhook"), &json!(9443))
        );
        let program = &csv["spec"]["install"]["spec"]["deployments"][0]["spec"];
        let pod = &program["template"]["spec"];
        assert!(pod["volumes"].is_null() && pod["containers"][0]["volumeMounts"].is_null());
        let arguments = pod["containers"][0]["args"].to_string();
        assert!(arguments.contains("--webhook-registration=nothing"), "{arguments}");
        assert!(!arguments.contains("--webhook-service"), "{arguments}");
        let told = csv.to_string();
        assert!(!told.contains("webhook-ca"), "no Secret of its own");
    }

    #[test]
    fn what_a_catalog_wants_and_cargo_toml_lacks_is_told_with_the_remedy() {
        let mut input = testing::whitelist();
        input.samples.clear();
        input.about.authors = vec!["Jo".to_owned()];
        input.about.olm.capabilities = Some("Everything".to_owned());
        input.about.olm.min_kube_version = Some("1.30".to_owned());
        let told: Vec<String> = findings(&input).expect("findings").iter().map(ToString::to_string).collect();
        for wanted in [
            "error: csv.spec.minKubeVersion \"1.30\" is no version",
            "error: csv.Spec.Maintainers email \"\" of \"Jo\" is invalid",
            "error: csv.Metadata.Annotations.Capabilities \"Everything\" is not a valid capabilities level",
            "warning: csv.Spec.icon not specified (olm.icon)",
            "warning: whitelists.sample.foo.bar: provided API should have an example annotation",
        ] {
            assert!(told.iter().any(|line| line.starts_with(wanted)), "{wanted}: {told:#?}");
        }
        assert!(told.is_sorted_by_key(|line| line.starts_with("warning")), "{told:#?}");
    }

    #[test]
    fn rights_in_other_namespaces_are_refused_as_no_bundle_gives_them() {
        let mut input = testing::whitelist();
        input.installed.own.push(json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "metadata": {"name": "whitelist-operator", "namespace": "shop"}, "rules": [],
        }));
        let refused = files(&input).expect_err("refused").to_string();
        assert!(refused.contains("shop") && refused.contains("--namespace"), "{refused}");
    }
}
