//! Which requests a server is asked about: expressions over a SubjectAccessReview
//! (`k8s.io/apiserver/pkg/authorization/cel`).

use std::sync::LazyLock;

use kubewright_cel::limits::PER_CALL_LIMIT;
use kubewright_cel::{Bindings, DeclField, DeclType, Environment, ListKind, Program, Type, Value as Cel};
use serde_json::{Map, Value, json};

use super::selectors;
use crate::authn::User;
use crate::authz::Attributes;

/// Expressions that all must hold of a request.
#[derive(Debug, Default)]
pub struct MatchConditions(Vec<MatchCondition>);

/// An expression that says of a request whether a server is asked.
#[derive(Debug)]
pub struct MatchCondition {
    text: String,
    program: Program,
}

impl MatchCondition {
    /// Compiles an expression over `request`, the spec of a SubjectAccessReview in version `v1`.
    ///
    /// # Errors
    /// What is wrong with it, in the words of kube-apiserver.
    pub fn compile(text: &str) -> Result<Self, String> {
        static ENVIRONMENT: LazyLock<Environment> =
            LazyLock::new(|| Environment::new().variable("request", request_type()));
        let program = ENVIRONMENT.compile(text).map_err(|errors| errors.detail())?;
        let output = program.output_type();
        if *output != Type::Bool {
            return Err(format!("must evaluate to bool but got {output}"));
        }
        Ok(Self { text: text.to_owned(), program })
    }
}

impl MatchConditions {
    /// Whether all hold. One that does not hold decides, though others fail.
    ///
    /// # Errors
    /// Why it cannot be said.
    pub(super) fn hold(&self, user: &User, what: &Attributes<'_>) -> Result<bool, String> {
        if self.0.is_empty() {
            return Ok(true);
        }
        let request = request(user, what);
        let mut bindings = Bindings::new();
        bindings.bind("request", Cel::dynamic(&request));
        let mut errors = Vec::new();
        for MatchCondition { text, program } in &self.0 {
            match program.evaluate(&bindings, PER_CALL_LIMIT).result {
                Ok(value) if value.as_bool() == Some(false) => return Ok(false),
                Ok(_) => {}
                Err(why) => {
                    errors
                        .push(format!("cel evaluation error: expression '{text}' resulted in error: {why}"));
                }
            }
        }
        match errors.as_slice() {
            [] => Ok(true),
            [one] => Err(one.clone()),
            several => Err(format!("[{}]", several.join(", "))),
        }
    }
}

impl FromIterator<MatchCondition> for MatchConditions {
    fn from_iter<I: IntoIterator<Item = MatchCondition>>(conditions: I) -> Self {
        Self(conditions.into_iter().collect())
    }
}

/// A request as expressions see it: members that are texts are there although they are empty (`convertObjectToUnstructured`).
fn request(user: &User, what: &Attributes<'_>) -> Value {
    let mut request = Map::new();
    let (member, attributes) = match what.path {
        Some(path) => ("nonResourceAttributes", json!({"path": path, "verb": what.verb})),
        None => {
            let mut attributes = json!({
                "namespace": what.namespace, "verb": what.verb, "group": what.group, "version": what.version,
                "resource": what.resource, "subresource": what.subresource, "name": what.name,
            });
            for (member, selector) in selectors(what) {
                attributes[member] = selector;
            }
            ("resourceAttributes", attributes)
        }
    };
    request.insert(member.to_owned(), attributes);
    request.insert("user".to_owned(), json!(user.name));
    request.insert("groups".to_owned(), json!(user.groups));
    request.insert("uid".to_owned(), json!(user.uid));
    request.insert("extra".to_owned(), json!(user.extra));
    Value::Object(request)
}

/// The spec of a SubjectAccessReview (`buildRequestType`).
fn request_type() -> DeclType {
    let text = || DeclType::string(None);
    let list = |items| DeclType::list(items, ListKind::Atomic, None);
    let object = |name: &str, fields: Vec<(&str, DeclType)>| {
        let fields = fields.into_iter().map(|(name, of)| DeclField::new(name, of, false));
        DeclType::object(fields).named(&format!("kubernetes.{name}"))
    };
    let texts = |names: [&'static str; 7]| names.into_iter().map(|name| (name, text())).collect::<Vec<_>>();
    let requirement = || {
        let fields = vec![("key", text()), ("operator", text()), ("values", list(text()))];
        object("SelectorRequirement", fields)
    };
    let selector = |name| object(name, vec![("rawSelector", text()), ("requirements", list(requirement()))]);
    let mut of_resource = texts(["namespace", "verb", "group", "version", "resource", "subresource", "name"]);
    of_resource.push(("fieldSelector", selector("FieldSelectorAttributes")));
    of_resource.push(("labelSelector", selector("LabelSelectorAttributes")));
    object(
        "SubjectAccessReviewSpec",
        vec![
            ("resourceAttributes", object("ResourceAttributes", of_resource)),
            (
                "nonResourceAttributes",
                object("NonResourceAttributes", vec![("path", text()), ("verb", text())]),
            ),
            ("user", text()),
            ("groups", list(text())),
            ("extra", DeclType::map(list(text()), None)),
            ("uid", text()),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const GET: Attributes<'_> = Attributes {
        verb: "get",
        group: "",
        version: "v1",
        resource: "pods",
        subresource: "",
        namespace: "ns",
        name: "p",
        path: None,
        field_selector: "",
        label_selector: "app=a",
    };

    fn hold(expressions: &[&str], what: &Attributes<'_>) -> Result<bool, String> {
        let conditions = expressions.iter().map(|text| MatchCondition::compile(text).unwrap());
        let user =
            User { extra: [("s".to_owned(), vec!["x".to_owned()])].into(), ..User::new("alice", ["dev"]) };
        conditions.collect::<MatchConditions>().hold(&user, what)
    }

    #[test]
    fn conditions_see_who_asks_and_for_what() {
        for (expression, holds) in [
            ("request.user == 'alice' && 'dev' in request.groups", true),
            ("request.extra['s'] == ['x'] && request.uid == ''", true),
            ("has(request.resourceAttributes) && request.resourceAttributes.namespace == 'ns'", true),
            ("has(request.nonResourceAttributes)", false),
            (
                "request.resourceAttributes.subresource == '' && request.resourceAttributes.verb == 'get'",
                true,
            ),
            ("request.resourceAttributes.labelSelector.requirements[0].values == ['a']", true),
            ("has(request.resourceAttributes.fieldSelector)", false),
        ] {
            assert_eq!(hold(&[expression], &GET), Ok(holds), "{expression}");
        }
        let path = Attributes { verb: "get", path: Some("/healthz"), ..Attributes::default() };
        assert_eq!(hold(&["request.nonResourceAttributes.path.startsWith('/health')"], &path), Ok(true));
        assert_eq!(hold(&[], &path), Ok(true));
    }

    #[test]
    fn what_does_not_hold_decides_though_others_fail() {
        let fails = "request.nonResourceAttributes.path == '/'";
        assert_eq!(hold(&[fails, "request.user == 'bob'"], &GET), Ok(false));
        assert_eq!(
            hold(&[fails, "request.user == 'alice'"], &GET),
            Err(format!(
                "cel evaluation error: expression '{fails}' resulted in error: no such key: nonResourceAttributes"
            ))
        );
    }

    #[test]
    fn an_expression_is_checked_before_it_is_needed() {
        let wrong = |text| MatchCondition::compile(text).unwrap_err();
        assert_eq!(wrong("request.user"), "must evaluate to bool but got string");
        assert!(wrong("request.nobody == ''").contains("undefined field 'nobody'"));
    }
}
