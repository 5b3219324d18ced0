//! Several versions of a kind in one definition.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

/// Puts the versions of `other` into `known`, which keeps the one that it stores. Short names and categories are those of
/// `known`: a definition has them once.
///
/// # Errors
/// Why they are no versions of one kind.
pub(super) fn add(
    known: &mut CustomResourceDefinition,
    other: CustomResourceDefinition,
) -> Result<(), String> {
    let name = known.metadata.name.as_deref().unwrap_or_default();
    if (&known.spec.names.kind, &known.spec.scope) != (&other.spec.names.kind, &other.spec.scope) {
        let of = |definition: &CustomResourceDefinition| {
            format!("{} ({})", definition.spec.names.kind, definition.spec.scope)
        };
        return Err(format!("{name} is {} in one version and {} in another", of(known), of(&other)));
    }
    for mut version in other.spec.versions {
        if known.spec.versions.iter().any(|there| there.name == version.name) {
            return Err(format!("{name} has the version {} twice", version.name));
        }
        version.storage = false;
        known.spec.versions.push(version);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::Operator;

    mod kinds {
        use kube::CustomResource;
        use serde::{Deserialize, Serialize};

        #[derive(CustomResource, Clone, Debug, Deserialize, Serialize)]
        #[kube(group = "example.com", version = "v1", kind = "Job", root = "Old", schema = "disabled")]
        pub(super) struct OldSpec {}

        #[derive(CustomResource, Clone, Debug, Deserialize, Serialize)]
        #[kube(group = "example.com", version = "v2", kind = "Job", root = "Current", schema = "disabled")]
        pub(super) struct CurrentSpec {}

        #[derive(CustomResource, Clone, Debug, Deserialize, Serialize)]
        #[kube(group = "example.com", version = "v3", kind = "Job", root = "Elsewhere", schema = "disabled")]
        #[kube(namespaced)]
        pub(super) struct ElsewhereSpec {}
    }

    #[test]
    fn versions_of_a_kind_are_one_definition_that_stores_the_first() {
        let operator = Operator::new("web", "1").definition::<kinds::Current>().definition::<kinds::Old>();
        operator.check().expect("no mistake");
        assert_eq!(operator.definitions().len(), 1);
        let versions = &operator.definitions()[0].spec.versions;
        let versions: Vec<_> =
            versions.iter().map(|version| (version.name.as_str(), version.served, version.storage)).collect();
        assert_eq!(versions, [("v2", true, true), ("v1", true, false)]);
    }

    #[test]
    fn what_is_no_other_version_is_a_mistake() {
        let twice = Operator::new("web", "1").definition::<kinds::Current>().definition::<kinds::Current>();
        let error = twice.check().expect_err("twice").to_string();
        assert!(error.contains("jobs.example.com has the version v2 twice"), "{error}");

        let scopes =
            Operator::new("web", "1").definition::<kinds::Current>().definition::<kinds::Elsewhere>();
        let error = scopes.check().expect_err("two scopes").to_string();
        assert!(error.contains("is Job (Cluster) in one version and Job (Namespaced) in another"), "{error}");
    }
}
