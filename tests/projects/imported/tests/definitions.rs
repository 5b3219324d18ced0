//! What `import crd` makes of a definition is compiled here, and the definition that its types give is compared with the one
//! that they were made of: but for the differences that are listed below they are the same, and a server takes it.

use std::collections::BTreeSet;

use imported::kinds::{
    certs_example_com::certificate::{Certificate, CertificateSpec, CertificateSpecIssuerRef},
    db_example_com::postgresql::{Postgresql, PostgresqlSpec},
    flow_example_com::workflow::Workflow,
    gateway_example_com::httproute::HTTPRoute,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResourceExt, ResourceExt};
use kubewright::testing::Cluster;
use serde_json::{Map, Value, json};

const CERTIFICATES: &str = include_str!("../crds/certificates.yaml");
const ROUTES: &str = include_str!("../crds/routes.yaml");
const POSTGRESQLS: &str = include_str!("../crds/postgresqls.yaml");
const WORKFLOWS: &str = include_str!("../crds/workflows.yaml");

/// How the schema of the types may differ from the one that was imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Difference {
    /// What may be left out may be null: kube says it of all `Option`s.
    OptionalIsNullable,
    /// The width of an integer without a format is said: `i64`.
    FormatOfInteger,
    /// The width of a number without a format is said: `f64`.
    FormatOfNumber,
    /// `x-kubernetes-int-or-string` says without `anyOf` that both are allowed.
    IntOrStringWithoutAnyOf,
    /// Branches of `anyOf` and `oneOf` that say more than which fields there must be are left out.
    BranchesLeftOut,
    /// Words are the same, but not the spaces between them, and fences of what is no Rust say so.
    SpacesOfDescription,
    /// An `IntOrString` says what it is, where nothing was said.
    DescriptionOfIntOrString,
    /// The description and the title of the whole kind are kube's.
    HeadOfKind,
    /// What every object has is not told.
    FieldsOfEveryObject,
    /// A spec must be there.
    SpecIsRequired,
}

/// Two schemas that are walked side by side.
struct Comparison {
    documented: BTreeSet<Difference>,
    others: Vec<String>,
}

impl Comparison {
    fn of(imported: &Value, generated: &Value) -> Self {
        let mut comparison = Self {
            documented: BTreeSet::new(),
            others: Vec::new(),
        };
        comparison.schema("", imported, generated, true);
        comparison
    }

    /// Compares two schemas, of something that must be there or that may be left out.
    fn schema(&mut self, path: &str, imported: &Value, generated: &Value, required: bool) {
        let empty = Map::new();
        let (one, other) = (
            imported.as_object().unwrap_or(&empty),
            generated.as_object().unwrap_or(&empty),
        );
        for keyword in one.keys().chain(other.keys()).collect::<BTreeSet<_>>() {
            let (a, b) = (&imported[keyword], &generated[keyword]);
            match keyword.as_str() {
                "properties" => self.fields(path, imported, generated),
                "items" | "additionalProperties" if a.is_object() && b.is_object() => {
                    self.schema(&format!("{path}.{keyword}"), a, b, true);
                }
                "required" if names(a) == names(b) => {}
                _ if a == b => {}
                keyword => match documented(path, keyword, imported, generated, required) {
                    Some(difference) => {
                        self.documented.insert(difference);
                    }
                    None => self
                        .others
                        .push(format!("{path}.{keyword}: {a} became {b}")),
                },
            }
        }
    }

    fn fields(&mut self, path: &str, imported: &Value, generated: &Value) {
        let properties = |schema: &Value| -> BTreeSet<String> {
            schema["properties"]
                .as_object()
                .into_iter()
                .flat_map(Map::keys)
                .cloned()
                .collect()
        };
        let required = |name: &str| {
            generated["required"]
                .as_array()
                .is_some_and(|names| names.contains(&json!(name)))
        };
        for name in properties(imported).union(&properties(generated)) {
            if path.is_empty() && ["apiVersion", "kind", "metadata"].contains(&name.as_str()) {
                self.documented.insert(Difference::FieldsOfEveryObject);
                continue;
            }
            let (a, b) = (
                &imported["properties"][name],
                &generated["properties"][name],
            );
            self.schema(&format!("{path}.{name}"), a, b, required(name));
        }
    }
}

/// Names in whichever order they are.
fn names(list: &Value) -> BTreeSet<&str> {
    list.as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect()
}

/// The documented difference that this is one of.
fn documented(
    path: &str,
    keyword: &str,
    imported: &Value,
    generated: &Value,
    required: bool,
) -> Option<Difference> {
    let (a, b) = (&imported[keyword], &generated[keyword]);
    let words = |text: &Value| -> Vec<String> {
        text.as_str()
            .unwrap_or_default()
            .replace("```text", "```")
            .split_whitespace()
            .map(str::to_owned)
            .collect()
    };
    let found = match keyword {
        "nullable" if a.is_null() && *b == true && !required => Difference::OptionalIsNullable,
        "format" if a.is_null() && *b == "int64" => Difference::FormatOfInteger,
        "format" if a.is_null() && *b == "double" => Difference::FormatOfNumber,
        "anyOf" if b.is_null() && imported["x-kubernetes-int-or-string"] == true => {
            Difference::IntOrStringWithoutAnyOf
        }
        "anyOf" | "oneOf" if b.is_null() => Difference::BranchesLeftOut,
        "description" if a.is_null() && generated["x-kubernetes-int-or-string"] == true => {
            Difference::DescriptionOfIntOrString
        }
        "description" | "title" if path.is_empty() => Difference::HeadOfKind,
        "description" if words(a) == words(b) => Difference::SpacesOfDescription,
        "required" if path.is_empty() && *b == json!(["spec"]) => Difference::SpecIsRequired,
        _ => return None,
    };
    Some(found)
}

/// The schema of the version `version` of a definition.
fn schema(definition: &CustomResourceDefinition, version: &str) -> Value {
    let found = definition
        .spec
        .versions
        .iter()
        .find(|other| other.name == version)
        .expect("the version");
    kubewright::object::to_value(&found.schema).expect("JSON")["openAPIV3Schema"].clone()
}

/// Compares what the types give with what they were made of; gives the differences.
async fn compared<K: CustomResourceExt>(
    cluster: &Cluster,
    text: &str,
    version: &str,
) -> Vec<Difference> {
    let imported: CustomResourceDefinition = cluster.apply(text).await;
    let generated = K::crd();
    assert_eq!(imported.name_any(), generated.name_any());
    assert_eq!(imported.spec.scope, generated.spec.scope);
    assert_eq!(imported.spec.names.plural, generated.spec.names.plural);
    let comparison = Comparison::of(&schema(&imported, version), &schema(&generated, version));
    assert_eq!(
        comparison.others,
        Vec::<String>::new(),
        "differences that are not documented"
    );

    // A server takes it in the place of the one that it was made of.
    cluster
        .delete::<CustomResourceDefinition>(&imported.name_any())
        .await;
    cluster.settle().await;
    cluster.create(&generated).await;
    cluster.settle().await;
    comparison.documented.into_iter().collect()
}

#[kubewright::test]
async fn certificates_are_the_same(cluster: Cluster) {
    let differences = compared::<Certificate>(&cluster, CERTIFICATES, "v1").await;
    let expected = [
        Difference::OptionalIsNullable,
        Difference::FormatOfInteger,
        Difference::SpacesOfDescription,
        Difference::HeadOfKind,
        Difference::FieldsOfEveryObject,
    ];
    assert_eq!(differences, expected);
}

#[kubewright::test]
async fn routes_are_the_same(cluster: Cluster) {
    let differences = compared::<HTTPRoute>(&cluster, ROUTES, "v1beta1").await;
    let expected = [
        Difference::OptionalIsNullable,
        Difference::FormatOfNumber,
        Difference::DescriptionOfIntOrString,
        Difference::HeadOfKind,
        Difference::SpecIsRequired,
    ];
    assert_eq!(differences, expected);
}

#[kubewright::test]
async fn workflows_are_the_same_but_for_branches_that_say_more(cluster: Cluster) {
    let differences = compared::<Workflow>(&cluster, WORKFLOWS, "v2").await;
    let expected = [
        Difference::OptionalIsNullable,
        Difference::IntOrStringWithoutAnyOf,
        Difference::BranchesLeftOut,
        Difference::DescriptionOfIntOrString,
        Difference::HeadOfKind,
        Difference::SpecIsRequired,
    ];
    assert_eq!(differences, expected);
}

#[kubewright::test]
async fn kinds_in_lower_case_are_the_same_and_served_as_they_are_called(cluster: Cluster) {
    let differences = compared::<Postgresql>(&cluster, POSTGRESQLS, "v1").await;
    let expected = [
        Difference::OptionalIsNullable,
        Difference::FormatOfInteger,
        Difference::HeadOfKind,
        Difference::FieldsOfEveryObject,
        Difference::SpecIsRequired,
    ];
    assert_eq!(differences, expected);
    let spec = PostgresqlSpec {
        team_id: "acid".to_owned(),
        number_of_instances: 2,
    };
    let made = kubewright::object::to_value(&cluster.create(&Postgresql::new("one", spec)).await);
    assert_eq!(made.expect("JSON")["kind"], "postgresql");
}

/// What a server has of somebody else's kind is read and written back without a loss.
#[kubewright::test]
async fn objects_are_read_and_written_as_they_are(cluster: Cluster) {
    let _: CustomResourceDefinition = cluster.apply(WORKFLOWS).await;
    cluster.settle().await;
    let spec = json!({
        "$schema": "s", "as": "a", "crate": "c", "match": true, "ref": "r", "self": "s", "type": "t", "9lives": 9,
        "a-b": {"x": "one"}, "a_b": {"x": 2}, "aB": {"x": true},
        "deadline": null, "maxUnavailable": "30%", "limits": {"cpu": 2, "memory": "1Gi"}, "steps": ["a", null],
        "parameters": {"any": [1, {"thing": null}]}, "anything": [1, "two"],
        "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "inner"}, "data": {"a": "b"}},
        "template": {"image": "nginx", "other_fields": "mine", "more": {"of": ["it"]}},
        "plugin": {"exec": {"command": "ls"}},
        "deep": [{"deeper": {"k": [{"name": "n", "values": {"on": true}}]}}],
    });
    let object = json!({"apiVersion": "flow.example.com/v2", "kind": "Workflow", "metadata": {"name": "hard"}, "spec": spec});
    let read: Workflow = cluster.apply(&object.to_string()).await;
    assert_eq!(
        kubewright::object::to_value(&read.spec).expect("JSON"),
        spec
    );
    assert_eq!(
        read.spec.template.expect("a template").other_fields_["more"],
        json!({"of": ["it"]})
    );
}

#[kubewright::test]
async fn objects_are_made_of_what_is_needed(cluster: Cluster) {
    let _: CustomResourceDefinition = cluster.apply(CERTIFICATES).await;
    cluster.settle().await;
    let issuer_ref = CertificateSpecIssuerRef {
        name: "ca".to_owned(),
        ..Default::default()
    };
    let spec = CertificateSpec {
        secret_name: "web".to_owned(),
        issuer_ref,
        ..Default::default()
    };
    let made = cluster.create(&Certificate::new("web", spec)).await;
    // What was left out, the server has filled in.
    assert_eq!(made.spec.duration.as_deref(), Some("2160h"));
    assert_eq!(made.spec.issuer_ref.kind.as_deref(), Some("Issuer"));
    assert_eq!(made.spec.private_key.and_then(|key| key.size), Some(2048));
}
