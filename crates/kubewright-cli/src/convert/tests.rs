//! What old manifests become, and that the embedded control plane takes it as strictly as any.

use kube::{
    Api, Client,
    api::{
        ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams, ValidationDirective,
    },
};
use kubewright_cluster::Cluster;
use serde_json::json;

use super::*;

fn converted(text: &str) -> Vec<Converted> {
    documents(&Source { name: "test.yaml".to_owned(), text: text.to_owned() }).expect("it is converted")
}

fn one(text: &str) -> (Value, Vec<String>) {
    let mut all = converted(text);
    assert_eq!(all.len(), 1);
    let converted = all.remove(0);
    (converted.object, converted.notes.iter().map(ToString::to_string).collect())
}

fn refused(text: &str) -> String {
    let source = Source { name: "test.yaml".to_owned(), text: text.to_owned() };
    format!("{:#}", documents(&source).expect_err("it is refused"))
}

/// Applies an object under strict validation, as `kubectl apply --server-side` does.
async fn apply(client: &Client, object: &Value) -> Result<Value, String> {
    let object: DynamicObject = kubewright_objects::from_value(object).expect("an object");
    let types = object.types.as_ref().expect("a kind");
    let kind = ApiResource::from_gvk(&GroupVersionKind::try_from(types).expect("a kind"));
    let namespaced = !matches!(kind.kind.as_str(), "CustomResourceDefinition");
    let api: Api<DynamicObject> = match namespaced {
        true => Api::namespaced_with(
            client.clone(),
            object.metadata.namespace.as_deref().unwrap_or("default"),
            &kind,
        ),
        false => Api::all_with(client.clone(), &kind),
    };
    let params =
        PatchParams { field_validation: Some(ValidationDirective::Strict), ..PatchParams::apply("test") };
    let name = object.metadata.name.clone().expect("a name");
    match api.patch(&name, &params, &Patch::Apply(&object)).await {
        Ok(stored) => Ok(json!(stored)),
        Err(kube::Error::Api(status)) => Err(status.message),
        Err(error) => Err(error.to_string()),
    }
}

/// The seed's own, as printed.
const CRON_TAB: &str = r#"
metadata:
  name: cron-tab.alpha.ianlewis.org
apiVersion: extensions/v1beta1
kind: ThirdPartyResource
description: "A specification of a Job to run on a cron style schedule"
versions:
  - name: v1
"#;

/// TP-01, TP-02, TP-06.
#[test]
fn tp_01_tp_02_tp_06_the_third_party_resource_of_the_seed_becomes_the_crd_of_today() {
    let (crd, notes) = one(CRON_TAB);
    assert_eq!(
        crd,
        json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "crontabs.alpha.ianlewis.org"},
            "spec": {
                "group": "alpha.ianlewis.org",
                "scope": "Namespaced",
                "names": {"kind": "CronTab", "listKind": "CronTabList", "plural": "crontabs", "singular": "crontab"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "description": "A specification of a Job to run on a cron style schedule",
                    "x-kubernetes-preserve-unknown-fields": true,
                }}}],
            },
        })
    );
    assert_eq!(
        notes,
        [
            "made of the ThirdPartyResource cron-tab.alpha.ianlewis.org: CronTab of alpha.ianlewis.org, served as crontabs"
        ]
    );
}

/// TP-03, TP-04, TP-05, TP-06, TP-09: it is served, keeps any field, does nothing by itself, and shows name and age. The
/// old manifest itself finds nobody.
#[tokio::test(start_paused = true)]
async fn tp_03_tp_04_tp_05_tp_09_the_converted_kind_stores_arbitrary_json() {
    let cluster = Cluster::start().await.expect("the cluster starts");
    let client = cluster.client();
    let old: Value = serde_saphyr::from_str(CRON_TAB).expect("YAML");
    let nobody = apply(&client, &old).await.expect_err("nobody knows the kind");
    assert!(
        nobody.contains("could not find the requested resource") || nobody.contains("not found"),
        "{nobody}"
    );
    apply(&client, &one(CRON_TAB).0).await.expect("the definition is taken");

    let path = "/apis/alpha.ianlewis.org/v1/namespaces/default/crontabs";
    let get = |path: &str, accept: &str| {
        http::Request::get(path).header("accept", accept).body(Vec::new()).expect("a request")
    };
    let empty: Value = client.request(get(path, "application/json")).await.expect("it answers");
    assert_eq!((&empty["kind"], &empty["items"]), (&json!("CronTabList"), &json!([])));

    let anything = json!({"apiVersion": "alpha.ianlewis.org/v1", "kind": "CronTab", "metadata": {"name": "any"},
        "spec": {"deep": [{"a": 1.5}, null, "b"]}, "beside": {"x": true}, "number": 7});
    apply(&client, &anything).await.expect("it is taken under strict validation");
    cluster.settle().await;
    let kept: Value =
        client.request(get(&format!("{path}/any"), "application/json")).await.expect("it is there");
    for field in ["spec", "beside", "number"] {
        assert_eq!(kept[field], anything[field]);
    }
    assert_eq!(kept.get("status"), None, "nothing else happens");
    let jobs: Value = client.request(get("/apis/batch/v1/jobs", "application/json")).await.expect("Jobs");
    assert_eq!(jobs["items"], json!([]));
    let table: Value =
        client.request(get(path, "application/json;as=Table;v=v1;g=meta.k8s.io")).await.expect("a table");
    let columns: Vec<&Value> = table["columnDefinitions"]
        .as_array()
        .expect("columns")
        .iter()
        .map(|column| &column["name"])
        .collect();
    assert_eq!(columns, ["Name", "Age"]);
}

const V1BETA1: &str = r#"
apiVersion: apiextensions.k8s.io/v1beta1
kind: CustomResourceDefinition
metadata:
  name: ats.cnat.programming-kubernetes.info
spec:
  group: cnat.programming-kubernetes.info
  version: v1alpha1
  names: {kind: At, plural: ats}
  scope: Namespaced
  preserveUnknownFields: false
  subresources: {status: {}}
  additionalPrinterColumns:
    - {name: phase, type: string, JSONPath: .status.phase}
  validation:
    openAPIV3Schema:
      properties:
        spec:
          required: [schedule]
          properties:
            schedule: {type: string}
            port: {anyOf: [{type: integer}, {type: string}]}
            tags: {type: array, uniqueItems: true, items: {type: string}}
        status:
          type: object
          properties: {phase: {enum: [PENDING, DONE]}}
status: {conditions: []}
"#;

/// TP-07: the author's three notes. TP-08, TP-11: and the server then refuses what it should.
#[tokio::test(start_paused = true)]
async fn tp_07_tp_08_tp_11_a_v1beta1_definition_becomes_v1_and_structural() {
    let (crd, notes) = one(V1BETA1);
    let version = &crd["spec"]["versions"][0];
    assert_eq!(
        (crd["spec"].get("version"), crd["spec"].get("validation"), crd.get("status")),
        (None, None, None)
    );
    assert_eq!(
        (&version["name"], &version["served"], &version["storage"]),
        (&json!("v1alpha1"), &json!(true), &json!(true))
    );
    assert_eq!(version["subresources"], json!({"status": {}}));
    assert_eq!(
        version["additionalPrinterColumns"],
        json!([{"name": "phase", "type": "string", "jsonPath": ".status.phase"}])
    );
    let schema = &version["schema"]["openAPIV3Schema"];
    assert_eq!(
        (&schema["type"], &schema["properties"]["spec"]["type"]),
        (&json!("object"), &json!("object"))
    );
    let port = json!({"x-kubernetes-int-or-string": true});
    assert_eq!(schema["properties"]["spec"]["properties"]["port"], port);
    assert_eq!(schema["properties"]["status"]["properties"]["phase"]["type"], "string");
    assert!(
        notes.contains(&"not carried over: uniqueItems in the schema of v1alpha1.spec.tags".to_owned()),
        "{notes:?}"
    );

    let cluster = Cluster::start().await.expect("the cluster starts");
    let client = cluster.client();
    apply(&client, &crd).await.expect("the definition is taken");
    let at = |name: &str, spec: Value| json!({"apiVersion": "cnat.programming-kubernetes.info/v1alpha1", "kind": "At", "metadata": {"name": name}, "spec": spec});
    apply(&client, &at("good", json!({"schedule": "x", "port": "http", "tags": ["a"]})))
        .await
        .expect("a good one");
    let missing = apply(&client, &at("missing", json!({}))).await.expect_err("a bad one");
    assert!(missing.contains("spec.schedule: Required value"), "{missing}");
    let unknown = apply(&client, &at("unknown", json!({"schedule": "x", "foo": "bar"})))
        .await
        .expect_err("an unknown field");
    assert!(
        unknown.contains(".spec.foo: field not declared in schema")
            || unknown.contains("unknown field \"spec.foo\""),
        "{unknown}"
    );
}

/// TP-11: what strict validation says of an unknown field, and that without it the field is pruned.
#[tokio::test(start_paused = true)]
async fn tp_11_unknown_fields_are_refused_or_pruned() {
    let cluster = Cluster::start().await.expect("the cluster starts");
    let client = cluster.client();
    apply(&client, &one(V1BETA1).0).await.expect("the definition is taken");
    let create = |validation: &str| {
        let at = json!({"apiVersion": "cnat.programming-kubernetes.info/v1alpha1", "kind": "At", "metadata": {"name": "a"},
            "spec": {"schedule": "x", "foo": "bar"}});
        let path = format!(
            "/apis/cnat.programming-kubernetes.info/v1alpha1/namespaces/default/ats?fieldValidation={validation}"
        );
        http::Request::post(path)
            .header("content-type", "application/json")
            .body(at.to_string().into_bytes())
            .expect("a request")
    };
    let strict = client.request::<Value>(create("Strict")).await.expect_err("it is refused").to_string();
    assert!(strict.contains("strict decoding error: unknown field \"spec.foo\""), "{strict}");
    let pruned: Value = client.request(create("Warn")).await.expect("it is taken");
    assert_eq!(pruned["spec"], json!({"schedule": "x"}));
}

/// TP-10: nobody's word but the author's own approves of a group of Kubernetes.
#[tokio::test(start_paused = true)]
async fn tp_10_a_protected_group_is_told_of_and_refused_by_the_server() {
    let (crd, notes) = one(&CRON_TAB.replace("alpha.ianlewis.org", "police.k8s.io"));
    assert!(
        notes
            .iter()
            .any(|note| note.starts_with("not carried over: the group police.k8s.io is Kubernetes' own")),
        "{notes:?}"
    );
    let cluster = Cluster::start().await.expect("the cluster starts");
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(
        "apiextensions.k8s.io",
        "v1",
        "CustomResourceDefinition",
    ));
    let api: Api<DynamicObject> = Api::all_with(cluster.client(), &kind);
    let object: DynamicObject = kubewright_objects::from_value(crd).expect("an object");
    let error = api.create(&PostParams::default(), &object).await.expect_err("it is refused").to_string();
    assert!(error.contains("metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval annotation"), "{error}");
}

/// The seeds' other manifests: SC-02, SC-04 (the Deployment) and CT-14 (the Job).
#[tokio::test(start_paused = true)]
async fn sc_04_old_workloads_get_what_apps_v1_asks_for() {
    let deployment = r#"
apiVersion: extensions/v1beta1
kind: Deployment
metadata: {name: cron-controller}
spec:
  rollbackTo: {revision: 1}
  template:
    metadata: {labels: {name: cron-controller}}
    spec: {containers: [{name: cron, image: "my.registry.com/cron-controller:0.0.1"}]}
---
apiVersion: batch/v1beta1
kind: CronJob
metadata: {name: tick}
spec:
  schedule: "@daily"
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}}
---
apiVersion: extensions/v1beta1
kind: Job
metadata: {name: backup-8dasy}
spec:
  autoSelector: true
  selector: {matchLabels: {name: backup-8dasy}}
  template:
    metadata: {labels: {name: backup-8dasy}}
    spec: {restartPolicy: Never, containers: [{name: backup, image: "mybackupscript:v9"}]}
"#;
    let all = converted(deployment);
    let cluster = Cluster::start().await.expect("the cluster starts");
    for converted in &all {
        apply(&cluster.client(), &converted.object)
            .await
            .unwrap_or_else(|error| panic!("{}: {error}", converted.what));
    }
    assert_eq!(all[0].object["spec"]["selector"], json!({"matchLabels": {"name": "cron-controller"}}));
    assert_eq!(
        all[0].object["spec"]["strategy"]["rollingUpdate"],
        json!({"maxSurge": 1, "maxUnavailable": 1})
    );
    let lost: Vec<String> = all
        .iter()
        .flat_map(|one| &one.notes)
        .filter(|note| note.is_loss())
        .map(ToString::to_string)
        .collect();
    assert_eq!(lost, ["not carried over: spec.rollbackTo, which apps/v1 does not have"]);
    assert_eq!(all[2].object["spec"].get("selector"), None);
}

#[test]
fn what_is_of_today_is_passed_on_and_lists_are_taken_apart() {
    let list = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {k: v}}\n- {apiVersion: v1, kind: Secret, metadata: {name: b}}\n---\n# nothing\n---\n{\"apiVersion\": \"x.y/v1\", \"kind\": \"Z\", \"metadata\": {\"name\": \"c\"}, \"items\": [1]}\n";
    let all = converted(list);
    let whats: Vec<&str> = all.iter().map(|one| one.what.as_str()).collect();
    assert_eq!(whats, ["ConfigMap a", "Secret b", "Z c"]);
    assert!(all.iter().all(|one| one.notes.is_empty()));
    assert_eq!(all[2].object["items"], json!([1]));
    let text = written(&all[0]).expect("YAML");
    assert!(text.starts_with("---\napiVersion: v1\n"), "{text}");
}

#[test]
fn notes_stand_in_front_of_their_document() {
    let text = written(&converted(CRON_TAB)[0]).expect("YAML");
    assert!(
        text.starts_with("---\n# made of the ThirdPartyResource cron-tab.alpha.ianlewis.org: "),
        "{text}"
    );
    assert_eq!(converted(&text)[0].object, converted(CRON_TAB)[0].object, "what is written can be read");
}

#[test]
fn what_cannot_be_converted_is_told() {
    for (text, message) in [
        ("a: [", "test.yaml: no YAML: "),
        ("", "test.yaml: there is no object in it"),
        ("just text", "a document is no object: \"just text\""),
        ("{kind: A}", "an object has no apiVersion"),
        ("{apiVersion: 1, kind: A}", "apiVersion is no text: 1"),
        (
            "{apiVersion: extensions/v1beta1, kind: ThirdPartyResource, metadata: {name: nodots}, versions: [{name: v1}]}",
            "says no kind and group",
        ),
        (
            "{apiVersion: extensions/v1beta1, kind: ThirdPartyResource, metadata: {name: a.b.c}}",
            "versions names none",
        ),
        (
            "{apiVersion: apiextensions.k8s.io/v1beta1, kind: CustomResourceDefinition, spec: {}}",
            "spec.version and spec.versions are both missing",
        ),
        ("{apiVersion: extensions/v1beta1, kind: PodSecurityPolicy}", "is not served any more"),
        (
            "{apiVersion: apps/v1beta1, kind: Deployment, metadata: {name: a}, spec: {}}",
            "Deployment a: spec.selector is missing",
        ),
    ] {
        let refused = refused(text);
        assert!(refused.contains(message), "{text}: {refused}");
    }
}

#[test]
fn a_conversion_webhook_is_said_one_level_deeper() {
    let (crd, _) = one(
        "{apiVersion: apiextensions.k8s.io/v1beta1, kind: CustomResourceDefinition, metadata: {name: a}, spec: {group: x.y, names: {kind: A, plural: as}, versions: [{name: v1, served: true, storage: true}], conversion: {strategy: Webhook, webhookClientConfig: {url: 'https://a'}}}}",
    );
    assert_eq!(
        crd["spec"]["conversion"],
        json!({"strategy": "Webhook", "webhook": {"clientConfig": {"url": "https://a"}, "conversionReviewVersions": ["v1beta1"]}})
    );
    assert_eq!(
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["x-kubernetes-preserve-unknown-fields"],
        true
    );
}
