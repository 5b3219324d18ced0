//! OpenAPI v3 documents, as `kubectl explain` and `kubectl apply` read them. Pure functions of [`Kinds`].
//!
//! A document is made when it is asked for and not kept: with all types of its group it is large, and few clients want it.

mod components;
mod elsewhere;
pub mod gnostic;
mod operation;
mod parameter;
mod paths;
mod swagger;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use components::Components;
use kubewright_kinds::{Kind, Kinds};
use kubewright_spec::Version;

pub use elsewhere::{add_to_index, add_to_swagger, part_of_swagger};
pub use swagger::swagger;

/// `/openapi/v3`: the list of documents, each with the hash of its content in its URL.
#[must_use]
pub fn index(kinds: &Kinds) -> Value {
    let mut versions: BTreeMap<(&str, &str), Vec<&Kind>> = BTreeMap::new();
    for kind in kinds.iter() {
        versions.entry((&kind.group, &kind.version)).or_default().push(kind);
    }
    let mut documents = Map::new();
    for ((group, version), kinds) in versions {
        let path =
            if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") };
        let hash = hash(&kinds);
        documents.insert(
            path.clone(),
            json!({"serverRelativeURL": format!("/openapi/v3/{path}?hash={hash:016X}")}),
        );
    }
    json!({"paths": documents})
}

/// The hash of a document, as [`index`] tells it. None for a version that is not served.
#[must_use]
pub fn hash_of(kinds: &Kinds, group: &str, version: &str) -> Option<String> {
    let kinds: Vec<&Kind> = kinds.in_version(group, version).map(Arc::as_ref).collect();
    (!kinds.is_empty()).then(|| format!("{:016X}", hash(&kinds)))
}

/// `/openapi/v3/api/v1` (group empty), `/openapi/v3/apis/<group>/<version>`. None for a version that is not served.
#[must_use]
pub fn document(kinds: &Kinds, group: &str, version: &str) -> Option<Value> {
    let of_version: Vec<&Arc<Kind>> = kinds.in_version(group, version).collect();
    if of_version.is_empty() {
        return None;
    }
    let mut components = Components::of(kinds.version());
    let mut paths = Map::new();
    for kind in &of_version {
        paths::add(kind, &mut components, &mut paths);
    }
    let info = match of_version.iter().all(|kind| kind.custom.is_some()) {
        true => json!({"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}),
        false => json!({"title": "Kubernetes", "version": short(kinds.version())}),
    };
    Some(json!({
        "openapi": "3.0.0",
        "info": info,
        "paths": paths,
        "components": {"schemas": components.into_schemas()},
    }))
}

/// A version of Kubernetes without its last number, as documents name it.
fn short(version: Version) -> String {
    format!("1.{}", version.minor())
}

/// A number that changes with what the document says, told without making it: built-in types change with the program
/// only, custom ones with what their author wrote.
fn hash(kinds: &[&Kind]) -> u64 {
    let mut hasher = DefaultHasher::new();
    env!("CARGO_PKG_VERSION").hash(&mut hasher);
    for kind in kinds {
        (&kind.kind, &kind.list_kind, &kind.plural, kind.namespaced(), kind.verbs.names()).hash(&mut hasher);
        for subresource in &kind.subresources {
            subresource.name().hash(&mut hasher);
        }
        if let Some(custom) = &kind.custom {
            custom.selectable_fields.hash(&mut hasher);
            kind.schema().fingerprint().hash(&mut hasher);
        }
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use kubewright_kinds::{Custom, CustomParts, Scope, Subresource};
    use kubewright_schema::Schema;
    use kubewright_table::Columns;

    fn custom(schema: &Value) -> Kinds {
        let kind = Kind::custom(CustomParts {
            group: "stable.example.com".into(),
            version: "v1".into(),
            kind: "CronTab".into(),
            list_kind: "CronTabList".into(),
            plural: "crontabs".into(),
            singular: "crontab".into(),
            short_names: Vec::new(),
            categories: Vec::new(),
            scope: Scope::Namespaced,
            subresources: vec![Subresource::Status],
            columns: Columns::custom(&[]),
            schema: Schema::custom(schema),
            custom: Custom::default(),
        });
        Kinds::of([Arc::new(kind)])
    }

    fn operation<'a>(document: &'a Value, path: &str, method: &str) -> &'a Value {
        let operation = &document["paths"][path][method];
        assert!(operation.is_object(), "no {method} of {path}");
        operation
    }

    /// All references of a document.
    fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(members) => {
                found.extend(members.get("$ref").and_then(Value::as_str));
                members.values().for_each(|member| references(member, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }

    #[test]
    fn the_document_of_apps_describes_the_spec_of_a_deployment() {
        let document = document(&Kinds::built_in(), "apps", "v1").expect("apps is served");
        let schemas = &document["components"]["schemas"];
        let deployment = &schemas["io.k8s.api.apps.v1.Deployment"];
        let kind = json!([{"group": "apps", "version": "v1", "kind": "Deployment"}]);
        assert_eq!(deployment["x-kubernetes-group-version-kind"], kind);
        let spec = &schemas["io.k8s.api.apps.v1.DeploymentSpec"]["properties"];
        assert!(spec["replicas"]["description"].as_str().is_some_and(|text| text.contains("desired pods")));
        assert!(spec["template"]["description"].is_string());
        let list = &schemas["io.k8s.api.apps.v1.DeploymentList"];
        assert_eq!(list["x-kubernetes-group-version-kind"][0]["kind"], "DeploymentList");
    }

    #[test]
    fn kubectl_learns_from_patch_what_the_server_understands() {
        let document = document(&Kinds::built_in(), "apps", "v1").expect("apps is served");
        for path in ["", "/status"] {
            let path = format!("/apis/apps/v1/namespaces/{{namespace}}/deployments/{{name}}{path}");
            let patch = operation(&document, &path, "patch");
            let parameters = patch["parameters"].as_array().expect("a list");
            assert!(parameters.iter().any(|one| one["name"] == "fieldValidation" && one["in"] == "query"));
            assert!(patch["requestBody"]["content"]["application/strategic-merge-patch+json"].is_object());
            assert_eq!(
                patch["x-kubernetes-group-version-kind"],
                json!({"group": "apps", "version": "v1", "kind": "Deployment"})
            );
            assert_eq!(patch["x-kubernetes-action"], "patch");
        }
    }

    #[test]
    fn operations_are_named_as_in_kubernetes() {
        let kinds = Kinds::built_in();
        let apps = document(&kinds, "apps", "v1").expect("apps is served");
        let core = document(&kinds, "", "v1").expect("core is served");
        let reviews = document(&kinds, "authorization.k8s.io", "v1").expect("authorization is served");
        for (document, path, method, name) in [
            (&apps, "/apis/apps/v1/deployments", "get", "listAppsV1DeploymentForAllNamespaces"),
            (
                &apps,
                "/apis/apps/v1/namespaces/{namespace}/deployments",
                "post",
                "createAppsV1NamespacedDeployment",
            ),
            (
                &apps,
                "/apis/apps/v1/namespaces/{namespace}/deployments",
                "delete",
                "deleteAppsV1CollectionNamespacedDeployment",
            ),
            (
                &apps,
                "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale",
                "put",
                "replaceAppsV1NamespacedDeploymentScale",
            ),
            (&core, "/api/v1/nodes/{name}", "get", "readCoreV1Node"),
            (&core, "/api/v1/namespaces/{name}/finalize", "put", "replaceCoreV1NamespaceFinalize"),
            (
                &core,
                "/api/v1/namespaces/{namespace}/pods/{name}/eviction",
                "post",
                "createCoreV1NamespacedPodEviction",
            ),
            (
                &reviews,
                "/apis/authorization.k8s.io/v1/subjectaccessreviews",
                "post",
                "createAuthorizationV1SubjectAccessReview",
            ),
        ] {
            assert_eq!(operation(document, path, method)["operationId"], name);
        }
        assert_eq!(core["paths"]["/api/v1/namespaces"]["delete"], Value::Null);
        assert_eq!(
            reviews["paths"]["/apis/authorization.k8s.io/v1/subjectaccessreviews"]["get"],
            Value::Null
        );
        let scale = operation(&apps, "/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale", "get");
        assert_eq!(
            scale["x-kubernetes-group-version-kind"],
            json!({"group": "autoscaling", "version": "v1", "kind": "Scale"})
        );
    }

    #[test]
    fn every_reference_of_every_document_leads_somewhere() {
        let kinds = Kinds::built_in();
        let index = index(&kinds);
        for path in index["paths"].as_object().expect("an object").keys() {
            let (group, version) = path
                .trim_start_matches("apis/")
                .trim_start_matches("api/")
                .rsplit_once('/')
                .unwrap_or(("", "v1"));
            let document = document(&kinds, group, version).expect("what is listed is served");
            let mut found = Vec::new();
            references(&document, &mut found);
            assert!(!found.is_empty(), "{path}");
            for reference in found {
                let name = reference.strip_prefix("#/components/schemas/").expect("a reference to a schema");
                assert!(document["components"]["schemas"][name].is_object(), "{path}: {name}");
            }
        }
    }

    #[test]
    fn a_custom_kind_is_described_by_its_own_schema() {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "description": "what is wanted"}}});
        let document = document(&custom(&schema), "stable.example.com", "v1").expect("it is served");
        let kind = &document["components"]["schemas"]["com.example.stable.v1.CronTab"];
        assert_eq!(kind["properties"]["spec"]["description"], "what is wanted");
        let gvk = json!({"group": "stable.example.com", "version": "v1", "kind": "CronTab"});
        assert_eq!(kind["x-kubernetes-group-version-kind"], json!([gvk]));
        let path = "/apis/stable.example.com/v1/namespaces/{namespace}/crontabs/{name}";
        let patch = operation(&document, path, "patch");
        assert_eq!(patch["x-kubernetes-group-version-kind"], gvk);
        assert_eq!(patch["requestBody"]["content"]["application/strategic-merge-patch+json"], Value::Null);
        assert_eq!(patch["operationId"], "patchStableExampleComV1NamespacedCronTab");
    }

    #[test]
    fn the_hash_follows_the_schema() {
        let url = |schema: &Value| {
            index(&custom(schema))["paths"]["apis/stable.example.com/v1"]["serverRelativeURL"].clone()
        };
        let (one, other) = (json!({"type": "object"}), json!({"type": "object", "description": "x"}));
        assert_eq!(url(&one), url(&one));
        assert_ne!(url(&one), url(&other));
        assert!(
            url(&one)
                .as_str()
                .is_some_and(|url| url.starts_with("/openapi/v3/apis/stable.example.com/v1?hash="))
        );
    }

    #[test]
    fn what_is_not_served_has_no_document() {
        assert_eq!(document(&Kinds::built_in(), "apps", "v9"), None);
    }
}
