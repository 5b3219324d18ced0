//! On the embedded control plane.

use kube::{
    Api,
    api::{ApiResource, GroupVersionKind, PostParams},
};
use kubewright_cluster::Cluster;
use serde_json::json;

use super::*;
use crate::access::{self, Applied, Others};

const NAME: &str = "webs.example.com";
const ASKED: StoredArgs = StoredArgs { yes: false };

async fn cluster() -> Cluster {
    Cluster::builder().controllers("").nodes(0).start().await.expect("a cluster")
}

/// A definition with these versions, the last of which is stored: their names, and the properties and rules of their spec.
fn definition(versions: &[(&str, Value)]) -> DynamicObject {
    let stored = versions.len() - 1;
    let versions: Vec<Value> = versions
        .iter()
        .enumerate()
        .map(|(at, (name, spec))| {
            let mut spec = spec.clone();
            spec["type"] = "object".into();
            let schema = json!({"type": "object", "properties": {"spec": spec}});
            json!({"name": name, "served": true, "storage": at == stored, "schema": {"openAPIV3Schema": schema}})
        })
        .collect();
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": NAME},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Web", "plural": "webs"},
            "scope": "Namespaced",
            "versions": versions,
        },
    });
    access::object(definition).expect("an object")
}

fn v1(spec: Value) -> DynamicObject {
    definition(&[("v1", spec)])
}

/// A size, at most so much.
fn at_most(most: i64) -> Value {
    json!({"properties": {"size": {"type": "integer", "maximum": most}, "host": {"type": "string"}}})
}

async fn apply(objects: &mut Objects, definition: &DynamicObject) {
    objects.apply(definition, Others::TakenOver).await.expect("applied");
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(10);
    objects.established(definition, deadline).await.expect("served");
}

fn webs(client: &Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("example.com", "v1", "Web");
    Api::namespaced_with(client.clone(), "default", &ApiResource::from_gvk_with_plural(&kind, "webs"))
}

fn web(name: &str, spec: &Value) -> DynamicObject {
    let web =
        json!({"apiVersion": "example.com/v1", "kind": "Web", "metadata": {"name": name}, "spec": spec});
    kubewright_objects::from_value(web).expect("an object")
}

async fn create(client: &Client, name: &str, spec: Value) {
    webs(client).create(&PostParams::default(), &web(name, &spec)).await.expect("created");
}

async fn refusal_of(objects: &mut Objects, definition: DynamicObject) -> String {
    let refused = check(objects, &[definition], ASKED).await.expect_err("something is in the way");
    format!("{refused:#}")
}

/// TPR/CRD "Beyond" 6: what a stricter schema would make invalid is told in the API server's own words, and nothing is applied
/// unless that is wanted.
#[tokio::test(start_paused = true)]
async fn objects_in_the_way_of_a_stricter_schema_are_told_as_the_api_server_tells_them() {
    let cluster = cluster().await;
    let (client, mut objects) = (cluster.client(), Objects::new(&cluster.client()));
    apply(&mut objects, &v1(at_most(100))).await;
    create(&client, "small", json!({"size": 3})).await;
    create(&client, "large", json!({"size": 30, "host": "a"})).await;

    let mut strict = at_most(10);
    strict["required"] = json!(["size"]);
    strict["x-kubernetes-validations"] = json!([{"rule": "!has(self.host)", "message": "hosts are gone"}]);
    let strict = v1(strict);
    let refused = refusal_of(&mut objects, strict.clone()).await;
    let size = "spec.size: Invalid value: 30: spec.size in body should be less than or equal to 10";
    let line = format!("  default/large: {size}, spec: Invalid value: hosts are gone\n");
    assert!(
        refused.contains(&format!("{NAME}: 1 of 2 objects would not be valid in v1:\n{line}")),
        "{refused}"
    );
    assert!(refused.contains("nothing was applied") && refused.contains("--yes"), "{refused}");

    check(&mut objects, std::slice::from_ref(&strict), StoredArgs { yes: true }).await.expect("it is wanted");
    apply(&mut objects, &strict).await;
    let again = web("again", &json!({"size": 30, "host": "a"}));
    let said = webs(&client).create(&PostParams::default(), &again).await.expect_err("refused").to_string();
    for words in [size, "hosts are gone"] {
        assert!(said.contains(words), "{said}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_schema_that_stored_objects_are_valid_under_is_applied() {
    let cluster = cluster().await;
    let mut objects = Objects::new(&cluster.client());
    check(&mut objects, &[v1(at_most(100))], ASKED).await.expect("a definition that is new");
    apply(&mut objects, &v1(at_most(100))).await;
    create(&cluster.client(), "one", json!({"size": 30})).await;
    let mut wider = at_most(30);
    wider["properties"]["more"] = json!({"type": "string", "default": "x"});
    wider["required"] = json!(["more"]);
    for definition in [v1(at_most(100)), v1(wider)] {
        check(&mut objects, &[definition], ASKED).await.expect("nothing is in the way");
    }
}

#[tokio::test(start_paused = true)]
async fn a_field_that_would_be_lost_is_told() {
    let cluster = cluster().await;
    let mut objects = Objects::new(&cluster.client());
    apply(&mut objects, &v1(at_most(100))).await;
    create(&cluster.client(), "one", json!({"size": 30, "host": "a"})).await;
    let smaller = json!({"properties": {"size": {"type": "integer"}}});
    let refused = refusal_of(&mut objects, v1(smaller)).await;
    assert!(refused.contains("  default/one: unknown field \"spec.host\"\n"), "{refused}");
}

/// What is wrong under the schema of before, too, is no reason against the next.
#[tokio::test(start_paused = true)]
async fn what_was_wrong_before_is_not_told_again() {
    let cluster = cluster().await;
    let mut objects = Objects::new(&cluster.client());
    apply(&mut objects, &v1(at_most(100))).await;
    create(&cluster.client(), "one", json!({"size": 30})).await;
    apply(&mut objects, &v1(at_most(10))).await;
    let mut other = at_most(10);
    other["properties"]["more"] = json!({"type": "string"});
    check(&mut objects, &[v1(other)], ASKED).await.expect("it was wrong before");
    assert!(refusal_of(&mut objects, v1(at_most(5))).await.contains("less than or equal to 5"));
}

#[tokio::test(start_paused = true)]
async fn of_many_objects_the_first_ten_are_told_and_how_many_there_are() {
    let cluster = cluster().await;
    let mut objects = Objects::new(&cluster.client());
    apply(&mut objects, &v1(at_most(100))).await;
    for number in 0..230 {
        create(&cluster.client(), &format!("web-{number:03}"), json!({"size": number % 2 * 50})).await;
    }
    let refused = refusal_of(&mut objects, v1(at_most(10))).await;
    assert!(refused.contains("115 of 230 objects would not be valid"), "{refused}");
    assert_eq!(refused.matches("default/web-").count(), TOLD, "{refused}");
    assert!(refused.contains("  and 105 more\n"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_version_does_not_go_away_while_objects_may_be_stored_in_it() {
    let cluster = cluster().await;
    let mut objects = Objects::new(&cluster.client());
    let both = definition(&[("v1", at_most(100)), ("v2", at_most(100))]);
    let only_v2 = definition(&[("v2", at_most(100))]);
    let mut unserved = both.clone();
    unserved.data["spec"]["versions"][0]["served"] = false.into();
    apply(&mut objects, &v1(at_most(100))).await;
    check(&mut objects, std::slice::from_ref(&only_v2), ASKED).await.expect("nothing is stored");
    create(&cluster.client(), "one", json!({"size": 30})).await;
    check(&mut objects, std::slice::from_ref(&both), ASKED).await.expect("v1 is served");
    apply(&mut objects, &both).await;
    let refused = refusal_of(&mut objects, only_v2).await;
    assert!(refused.contains(&format!("{NAME}: version v1 would go away")), "{refused}");
    check(&mut objects, &[unserved], ASKED).await.expect("it can be read, and is retired so");
}

/// Where nobody converts, objects are shown in a new version as they are.
#[tokio::test(start_paused = true)]
async fn a_new_version_that_nobody_converts_for_has_to_take_the_objects_that_are_there() {
    let cluster = cluster().await;
    let mut objects = Objects::new(&cluster.client());
    apply(&mut objects, &v1(at_most(100))).await;
    create(&cluster.client(), "one", json!({"size": 30})).await;
    let mut further = definition(&[("v1", at_most(100)), ("v2", at_most(10))]);
    let refused = refusal_of(&mut objects, further.clone()).await;
    assert!(
        refused.contains("1 of 1 objects would not be valid in v2:\n  default/one: spec.size"),
        "{refused}"
    );
    further.data["spec"]["conversion"] = json!({"strategy": "Webhook"});
    check(&mut objects, &[further], ASKED).await.expect("the operator makes of them what is valid");
}

#[tokio::test(start_paused = true)]
async fn who_may_not_look_is_told_what_to_do() {
    let cluster = cluster().await;
    let mut objects = Objects::new(&cluster.client());
    apply(&mut objects, &v1(at_most(100))).await;
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "installer"},
        "rules": [{"apiGroups": ["apiextensions.k8s.io"], "resources": ["customresourcedefinitions"], "verbs": ["*"]}]});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "installer"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "installer"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": "installer"}]});
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"namespace": "default", "name": "installer"}});
    for object in [account, role, binding] {
        objects.apply(&access::object(object).expect("an object"), Others::TakenOver).await.expect("applied");
    }
    let mut theirs = Objects::new(&cluster.client_of_service_account("default", "installer"));
    let refused = refusal_of(&mut theirs, v1(at_most(10))).await;
    for words in ["cannot tell whether", "cannot list resource \"webs\"", "kubewright doctor", "--yes"] {
        assert!(refused.contains(words), "{refused}");
    }
    let applied = theirs.apply(&v1(at_most(10)), Others::TakenOver).await;
    assert_eq!(applied.expect("they may apply it"), Applied::Configured);
}
