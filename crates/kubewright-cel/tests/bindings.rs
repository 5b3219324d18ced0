//! What surrounds an expression: lazy variables, checks of authorization, objects that are made.

use std::sync::Mutex;

use kubewright_cel::{
    Attributes, Authorizer, Bindings, Decision, DeclField, DeclType, Environment, ResourceAttributes,
    Subject, Type, Value, limits::PER_CALL_LIMIT,
};
use serde_json::json;

#[test]
fn a_lazy_variable_is_evaluated_once_and_paid_for_by_whoever_asks_first() {
    let base = Environment::new().variable("object", DeclType::dynamic());
    let names = base.compile("object.items.map(i, i.name)").unwrap();
    let environment = base.lazy_variable("names", names.output_type().clone());
    let rule = environment.compile("variables.names.all(n, n != '') && variables.names.size() == 2").unwrap();
    let object = json!({"items": [{"name": "a"}, {"name": "b"}]});
    let mut bindings = Bindings::new();
    bindings.bind("object", Value::dynamic(&object)).define("names", &names);
    let alone = names.evaluate(&bindings, PER_CALL_LIMIT);
    let first = rule.evaluate(&bindings, PER_CALL_LIMIT);
    let second = rule.evaluate(&bindings, PER_CALL_LIMIT);
    assert_eq!(first.result.unwrap().as_bool(), Some(true));
    assert_eq!(second.result.unwrap().as_bool(), Some(true));
    assert_eq!(first.cost, second.cost + alone.cost);
}

#[test]
fn what_fails_in_a_lazy_variable_says_in_which() {
    let base = Environment::new().variable("object", DeclType::dynamic());
    let missing = base.compile("object.missing").unwrap();
    let environment = base.lazy_variable("missing", missing.output_type().clone());
    let rule = environment.compile("variables.missing == 1").unwrap();
    let object = json!({});
    let mut bindings = Bindings::new();
    bindings.bind("object", Value::dynamic(&object)).define("missing", &missing);
    let error = rule.evaluate(&bindings, PER_CALL_LIMIT).result.unwrap_err();
    assert_eq!(error.to_string(), "composited variable \"missing\" fails to evaluate: no such key: missing");
    assert_eq!(
        environment.compile("variables.other").unwrap_err().to_string(),
        "ERROR: <input>:1:10: undefined field 'other'\n | variables.other\n | .........^"
    );
}

/// Allows what is asked about the service account `ns:robot`, and remembers all that is asked.
#[derive(Default)]
struct Remembering(Mutex<Vec<(Subject, Attributes)>>);

impl Authorizer for Remembering {
    fn authorize(&self, subject: &Subject, attributes: &Attributes) -> Decision {
        self.0.lock().unwrap().push((subject.clone(), attributes.clone()));
        let allowed = matches!(subject, Subject::ServiceAccount { name, .. } if name == "robot");
        Decision { allowed, reason: "because".to_owned(), error: None }
    }
}

#[test]
fn an_expression_asks_the_authorizer_what_it_says() {
    let environment = Environment::new()
        .variable("authorizer", DeclType::of(Type::authorizer()))
        .variable("authorizer.requestResource", DeclType::of(Type::resource_check()));
    let remembering = Remembering::default();
    let mut bindings = Bindings::new();
    let requested =
        ResourceAttributes { resource: "pods".to_owned(), namespace: "ns".to_owned(), ..Default::default() };
    bindings.bind("authorizer", Value::authorizer(&remembering));
    bindings.bind("authorizer.requestResource", Value::request_resource(&remembering, requested.clone()));
    for (expression, expected) in [
        ("authorizer.path('/healthz').check('get').allowed()", "false"),
        ("authorizer.requestResource.check('delete').reason()", "\"because\""),
        (
            "authorizer.serviceAccount('ns', 'robot').group('apps').resource('deployments').subresource('scale').name('web').namespace('ns').check('update').allowed()",
            "true",
        ),
    ] {
        let program = environment.compile(expression).unwrap();
        let evaluation = program.evaluate(&bindings, PER_CALL_LIMIT);
        assert_eq!(evaluation.result.unwrap().to_json().unwrap().to_string(), expected, "{expression}");
        assert!(evaluation.cost >= 350_000);
    }
    let deployment = ResourceAttributes {
        group: "apps".to_owned(),
        version: "*".to_owned(),
        resource: "deployments".to_owned(),
        subresource: "scale".to_owned(),
        namespace: "ns".to_owned(),
        name: "web".to_owned(),
        ..Default::default()
    };
    let robot = Subject::ServiceAccount { namespace: "ns".to_owned(), name: "robot".to_owned() };
    let asked = remembering.0.into_inner().unwrap();
    assert_eq!(
        asked,
        [
            (Subject::Requester, Attributes::Path { path: "/healthz".to_owned(), verb: "get".to_owned() }),
            (Subject::Requester, Attributes::Resource { resource: requested, verb: "delete".to_owned() }),
            (robot, Attributes::Resource { resource: deployment, verb: "update".to_owned() }),
        ]
    );
}

#[test]
fn an_object_that_is_made_is_json() {
    let environment = Environment::new().variable("object", DeclType::dynamic()).patch_types();
    let object = json!({"spec": {"replicas": 2}});
    let mut bindings = Bindings::new();
    bindings.bind("object", Value::dynamic(&object));
    let made = |expression: &str| {
        let program = environment.compile(expression).unwrap();
        let evaluation = program.evaluate(&bindings, PER_CALL_LIMIT);
        evaluation.result.unwrap().to_json().unwrap()
    };
    assert_eq!(
        made(
            "Object{metadata: Object.metadata{labels: {'a': 'b'}}, spec: Object.spec{replicas: object.spec.replicas + 1}}"
        ),
        json!({"metadata": {"labels": {"a": "b"}}, "spec": {"replicas": 3}})
    );
    assert_eq!(
        made(
            "[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a/b'), value: object.spec}]"
        ),
        json!([{"op": "add", "path": "/metadata/labels/a~1b", "value": {"replicas": 2}}])
    );
}

#[test]
fn an_environment_without_patch_types_does_not_know_them() {
    let error = Environment::new().compile("Object{}").unwrap_err();
    assert!(error.to_string().contains("undeclared reference to 'Object'"));
    assert!(Environment::new().compile("jsonpatch.escapeKey('a') == 'a'").is_err());
}

#[test]
fn the_names_of_variables_are_known() {
    let schema = DeclType::object([DeclField::new("x", DeclType::integer(), true)]).named("selfType");
    let environment = Environment::new().variable("self", schema.clone()).variable("oldSelf", schema);
    assert!(environment.compile("oldSelf.x <= self.x").unwrap().references("oldSelf"));
    assert!(!environment.compile("[1].all(oldSelf, oldSelf == self.x)").unwrap().references("oldSelf"));
}
