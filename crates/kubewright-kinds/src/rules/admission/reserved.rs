//! What configurations of admission must not be called or ask for: names that belong to files of the server, and from v1.37 on
//! resources that no webhook sees.

use kubewright_meta::FieldError;
use serde_json::Value;

use super::super::at::At;
use super::super::version;
use super::super::warnings::WarningContext;

const SUFFIX: &str = ".static.k8s.io";
const RESERVED: &str = "names ending with \".static.k8s.io\" are reserved for static manifest-based configurations and cannot be managed via the API";
const MANIFESTS: &str = "ManifestBasedAdmissionControlConfig";

/// The group and the resources that no webhook sees (`pkg/kubeapiserver/admission/exclusion`).
const UNSEEN: [(&str, &[&str]); 2] = [
    ("authentication.k8s.io", &["selfsubjectreviews", "tokenreviews"]),
    (
        "authorization.k8s.io",
        &[
            "localsubjectaccessreviews",
            "selfsubjectaccessreviews",
            "selfsubjectrulesreviews",
            "subjectaccessreviews",
        ],
    ),
];

/// What is wrong with a new object, and with its name where the server can have files with such names (`ValidateStaticSuffix`).
pub(super) fn with_name(object: &Value, check: impl FnOnce(&Value) -> Vec<FieldError>) -> Vec<FieldError> {
    let mut found = check(object);
    let name = At::root(object).dig(&["metadata", "name"]);
    if version::has_feature(MANIFESTS) && name.text().ends_with(SUFFIX) {
        found.push(FieldError::invalid(&name.path, name.value.clone(), RESERVED));
    }
    found
}

/// Warns of a name that is reserved (`WarningsForStaticSuffix`; from v1.36 on).
pub(crate) fn of_name(subject: &WarningContext<'_>, out: &mut Vec<String>) {
    let is_refused = subject.is_new() && version::has_feature(MANIFESTS);
    let name = subject.new_object().dig(&["metadata", "name"]);
    if version::since(kubewright_spec::Version::V1_36) && !is_refused && name.text().ends_with(SUFFIX) {
        out.push(format!("metadata.name: {RESERVED}"));
    }
}

/// Warns of rules of webhooks that ask for what none sees (`WarningsForValidatingWebhookRules`).
pub(crate) fn of_webhooks(subject: &WarningContext<'_>, out: &mut Vec<String>) {
    of_name(subject, out);
    if !version::has_feature("ExcludeAdmissionWebhookVirtualResources") {
        return;
    }
    for rule in subject.new_object().get("webhooks").items().flat_map(|hook| hook.get("rules").items()) {
        let (groups, resources) = (rule.get("apiGroups"), rule.get("resources"));
        if groups.items().chain(resources.items()).any(|word| word.text() == "*") {
            continue;
        }
        let mut told = Vec::new();
        for group in groups.items() {
            let unseen = UNSEEN.iter().find(|(name, _)| *name == group.text());
            for resource in resources.items() {
                let name = (group.text(), resource.text());
                if unseen.is_some_and(|(_, unseen)| unseen.contains(&name.1)) && !told.contains(&name) {
                    told.push(name);
                }
            }
        }
        for (group, resource) in told {
            out.push(format!(
                "{}: {resource}.{group} is excluded from admission webhooks; this rule will have no effect",
                rule.path
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use kubewright_spec::Version;
    use serde_json::{Value, json};

    use crate::Kinds;

    fn judged(version: Version, object: &Value) -> (Vec<String>, Vec<String>) {
        let kinds = Kinds::of_version(version);
        let kind = kinds.get("admissionregistration.k8s.io", "v1", "validatingwebhookconfigurations");
        let rules = kind.expect("it is served").rules;
        let errors = rules.errors_on_create(object, false).iter().map(ToString::to_string).collect();
        (errors, rules.warnings(object, None))
    }

    #[test]
    fn a_name_that_is_reserved_is_warned_of_and_refused_from_v1_37_on() {
        let object = json!({"metadata": {"name": "a.static.k8s.io"}});
        let told = format!("metadata.name: {}", super::RESERVED);
        assert_eq!(judged(Version::V1_35, &object), (vec![], vec![]));
        assert_eq!(judged(Version::V1_36, &object), (vec![], vec![told]));
        let refused = format!("metadata.name: Invalid value: \"a.static.k8s.io\": {}", super::RESERVED);
        assert_eq!(judged(Version::V1_37, &object), (vec![refused], vec![]));
    }

    #[test]
    fn a_rule_that_asks_for_reviews_is_warned_of_from_v1_37_on() {
        let rule = json!({"apiGroups": ["authentication.k8s.io", ""], "resources": ["tokenreviews", "pods"]});
        let object = json!({"metadata": {"name": "a"}, "webhooks": [{"rules": [rule]}]});
        assert_eq!(judged(Version::V1_36, &object).1, Vec::<String>::new());
        let told = "webhooks[0].rules[0]: tokenreviews.authentication.k8s.io is excluded from admission webhooks; this rule will have no effect";
        assert_eq!(judged(Version::V1_37, &object).1, [told]);
    }
}
