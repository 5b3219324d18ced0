//! Types from definitions.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn definition(schema: &Value) -> String {
    let version = |name: &str, storage: bool| json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": schema}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "certificates.cert-manager.io"},
        "spec": {
            "group": "cert-manager.io", "scope": "Namespaced",
            "names": {"kind": "Certificate", "plural": "certificates"},
            "versions": [version("v1alpha2", false), version("v1", true)],
        },
    })
    .to_string()
}

fn of_spec(properties: &Value) -> String {
    let spec = json!({"type": "object", "required": ["secretName"], "properties": properties});
    definition(&json!({"type": "object", "properties": {"spec": spec}}))
}

fn refusal(text: &str, version: Option<&str>) -> String {
    let version = version.map(|version| Version::new(version).expect("a version"));
    read(text, version.as_ref()).expect_err("refused").to_string()
}

#[test]
fn fields_have_the_types_that_the_schema_says() {
    let text = of_spec(&json!({
        "secretName": {"type": "string", "description": "Where it is\nkept."},
        "dnsNames": {"type": "array", "items": {"type": "string"}},
        "type": {"type": "string", "enum": ["A", "B"]},
        "port": {"x-kubernetes-int-or-string": true},
        "size": {"type": "integer", "format": "int32"},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        "issuerRef": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}},
        "rules": {"type": "array", "items": {"type": "object", "properties": {"on": {"type": "boolean"}}}},
    }));
    let imported = read(&text, None).expect("imported");
    assert_eq!((imported.group.as_str(), imported.version.as_str()), ("cert-manager.io", "v1"));
    syn::parse_file(&imported.text).expect("Rust");
    for line in [
        "    /// Where it is\n    /// kept.\n    #[serde(rename = \"secretName\")]\n    pub secret_name: String,\n",
        "    pub dns_names: Option<Vec<String>>,\n",
        "    #[schemars(extend(\"enum\" = [\"A\", \"B\"]))]\n",
        "    pub type_: Option<String>,\n",
        "    pub port: Option<IntOrString>,\n",
        "    pub size: Option<i32>,\n",
        "    pub labels: Option<BTreeMap<String, String>>,\n",
        "    pub any: Option<serde_json::Value>,\n",
        "    pub issuer_ref: Option<CertificateSpecIssuerRef>,\n",
        "pub struct CertificateSpecIssuerRef {\n    pub name: String,\n}\n",
        "    pub rules: Option<Vec<CertificateSpecRulesItem>>,\n",
    ] {
        assert!(imported.text.contains(line), "{line} is missing: {}", imported.text);
    }
}

/// The definition says what a server calls the kind, Rust says what the type is called.
#[test]
fn a_kind_that_is_no_name_of_rust_is_kept_as_it_is() {
    let text = of_spec(&json!({"secretName": {"type": "string"}}));
    let text = text.replace("\"kind\":\"Certificate\"", "\"kind\":\"my-certificate\"");
    let imported = read(&text, None).expect("imported");
    assert_eq!((imported.kind.as_str(), imported.plural.as_str()), ("MyCertificate", "certificates"));
    for line in [
        "    kind = \"my-certificate\",\n    root = \"MyCertificate\",\n",
        "pub struct MyCertificateSpec {\n",
    ] {
        assert!(imported.text.contains(line), "{line} is missing: {}", imported.text);
    }
    assert!(
        refusal(&text.replace("my-certificate", "my certificate"), None).contains("(was \"my certificate\")")
    );
}

#[test]
fn a_version_is_chosen_by_its_name_or_because_it_is_stored() {
    let text = of_spec(&json!({"secretName": {"type": "string"}}));
    let old = Version::new("v1alpha2").expect("a version");
    assert_eq!(read(&text, Some(&old)).expect("imported").version, old);
    assert!(refusal(&text, Some("v2")).ends_with("its versions are: v1alpha2, v1"));
}

#[test]
fn what_is_no_definition_is_told() {
    assert!(refusal("kind: Pod", None).contains("one CustomResourceDefinition"));
    assert!(refusal("{", None).contains("no YAML"));
    assert!(
        refusal("kind: CustomResourceDefinition\napiVersion: apiextensions.k8s.io/v1beta1", None)
            .contains("kubewright convert")
    );
    assert!(refusal(&definition(&json!({"type": "object"})), None).contains("has no spec"));
}

#[test]
fn a_schema_without_end_is_refused() {
    let mut schema = json!({"type": "string"});
    for _ in 0..26 {
        schema = json!({"type": "object", "properties": {"a": schema}});
    }
    let message = refusal(&of_spec(&json!({"secretName": schema})), None);
    assert!(message.contains("too large"), "{message}");
}

proptest! {
    /// Whatever fields are called, what comes is Rust.
    #[test]
    fn names_of_fields_become_those_of_rust(names in prop::collection::btree_set("[a-zA-Z0-9_$-]{1,10}", 1..8)) {
        let field = |name: &String| (name.clone(), json!({"type": "object", "properties": {"x": {"type": "string"}}}));
        let properties: serde_json::Map<String, Value> = names.iter().map(field).collect();
        let imported = read(&of_spec(&Value::Object(properties)), None).expect("imported");
        prop_assert!(syn::parse_file(&imported.text).is_ok(), "{}", imported.text);
    }
}
