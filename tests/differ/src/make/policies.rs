//! Admission policies that hold in the conversation's namespace alone.

use rand::RngExt;
use rand::seq::IndexedRandom;
use serde_json::{Value, json};

use super::Making;
use crate::conversation::{Ask, Place};
use crate::schema::Resource;

/// How long servers take to learn of a policy, in milliseconds.
const LEARNED: u64 = 2500;
/// The same of the schemas by which policies change custom objects, which they ask for every five seconds.
const SCHEMAS_LEARNED: u64 = 6000;

impl Making<'_> {
    /// A policy and its binding, and writes that they judge or change.
    pub(super) fn policy(&mut self, at: usize) {
        let resource = self.known[at].place.resource.clone();
        if !resource.namespaced || self.judged {
            return;
        }
        self.judged = true;
        let changing = self.rng.random_bool(0.4);
        let (kind, plural) = if changing {
            ("MutatingAdmissionPolicy", "mutatingadmissionpolicies")
        } else {
            ("ValidatingAdmissionPolicy", "validatingadmissionpolicies")
        };
        let operations = json!(
            [
                json!(["CREATE", "UPDATE"]),
                json!(["CREATE", "UPDATE"]),
                json!(["UPDATE"]),
                json!(["*"]),
                json!(["DELETE", "CONNECT"]),
            ]
            .choose(&mut self.rng)
        );
        let operations = if changing { json!(["CREATE", "UPDATE"]) } else { operations };
        let rule = json!({"apiGroups": [resource.group], "apiVersions": [*["*", &resource.version].choose(&mut self.rng).unwrap_or(&"*")],
            "operations": operations, "resources": [resource.plural.clone()]});
        let mut spec = json!({
            "failurePolicy": (["Fail", "Fail", "Ignore"].choose(&mut self.rng)),
            "matchConstraints": {"resourceRules": [rule],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "@ns@"}}},
        });
        if changing {
            spec["reinvocationPolicy"] = json!(["Never", "IfNeeded"].choose(&mut self.rng));
            spec["mutations"] = self.mutations();
        } else {
            spec["validations"] = self.validations();
        }
        if self.rng.random_bool(0.3) {
            spec["variables"] = json!([{"name": "named", "expression": "has(object.metadata.labels) ? object.metadata.labels : {}"}]);
        }
        if self.rng.random_bool(0.25) {
            spec["matchConditions"] = json!([{"name": "only", "expression": *[
                "request.operation == 'CREATE'",
                "object.metadata.name.startsWith('a')",
                "!has(object.metadata.annotations)",
                "request.userInfo.username == 'nobody'",
                "object.spec.nowhere == 1",
            ].choose(&mut self.rng).unwrap_or(&"true")}]);
        }
        let group = "admissionregistration.k8s.io";
        let policy = of_policies(kind, plural);
        self.asks.push(Ask::new("create/policy", "POST", &policy).collection().body(json!({
            "apiVersion": format!("{group}/v1"), "kind": kind, "metadata": {"name": policy.name}, "spec": spec})));
        let mut bound = json!({"policyName": policy.name});
        if !changing {
            bound["validationActions"] = json!(
                [
                    json!(["Deny"]),
                    json!(["Deny"]),
                    json!(["Warn"]),
                    json!(["Warn", "Audit"]),
                    json!(["Deny", "Audit"]),
                ]
                .choose(&mut self.rng)
            );
        }
        if self.rng.random_bool(0.2) {
            bound["matchResources"] = json!({"objectSelector": {"matchLabels": {"a": "b"}}});
        }
        let (kind, plural) =
            (format!("{kind}Binding"), format!("{}policybindings", plural.trim_end_matches("policies")));
        let binding = of_policies(&kind, &plural);
        let mut ask = Ask::new("create/policy", "POST", &binding).collection().body(json!({
            "apiVersion": format!("{group}/v1"), "kind": kind, "metadata": {"name": binding.name}, "spec": bound}));
        ask.pause = if kind.starts_with("Mutating") { SCHEMAS_LEARNED } else { LEARNED };
        self.asks.push(ask);
        for _ in 0..self.rng.random_range(2..6) {
            match self.rng.random_range(0..5) {
                0 => self.create(at, false),
                1 => self.put(at),
                2 => self.apply(at),
                3 => self.patch(at),
                _ => self.delete(at),
            }
        }
    }

    fn validations(&mut self) -> Value {
        let one = json!([
            json!({"expression": "object.metadata.name != 'a'", "message": "not a"}),
            json!({"expression": "has(object.metadata.labels) && 'a' in object.metadata.labels"}),
            json!({"expression": "!has(object.metadata.annotations)", "reason": "Forbidden", "messageExpression": "'annotations of ' + object.metadata.name"}),
            json!({"expression": "oldObject == null || object.metadata.labels == oldObject.metadata.labels", "reason": "Unauthorized"}),
            json!({"expression": "object.metadata.nowhere == 1"}),
            json!({"expression": "request.namespace == namespaceObject.metadata.name", "reason": "RequestEntityTooLarge"}),
            json!({"expression": "size(request.userInfo.groups) > 100", "message": "few groups", "reason": "Invalid"}),
            json!({"expression": "authorizer.group('').resource('pods').namespace('default').check('get').allowed()"}),
            json!({"expression": "request.dryRun", "message": "not in earnest"}),
            json!({"expression": "object.apiVersion == 'v2'", "messageExpression": "object.nowhere"}),
        ]
        .choose(&mut self.rng));
        json!([one])
    }

    fn mutations(&mut self) -> Value {
        let apply = |expression: &str| json!({"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": expression}});
        let patch =
            |expression: &str| json!({"patchType": "JSONPatch", "jsonPatch": {"expression": expression}});
        let one = json!([
            apply("Object{metadata: Object.metadata{labels: {'set': 'by-policy'}}}"),
            apply("Object{metadata: Object.metadata{annotations: {'note': object.metadata.name}}}"),
            apply("Object{metadata: Object.metadata{name: 'other'}}"),
            patch("[JSONPatch{op: 'add', path: '/metadata/labels', value: {'set': 'by-patch'}}]"),
            patch("[JSONPatch{op: 'test', path: '/metadata/name', value: 'b'}]"),
            patch("[JSONPatch{op: 'add', path: '/metadata/annotations/' + jsonpatch.escapeKey('example.com/x'), value: 'y'}]"),
            patch("has(object.metadata.labels) ? [JSONPatch{op: 'remove', path: '/metadata/labels'}] : []"),
            patch("[JSONPatch{op: 'replace', path: '/kind', value: 'Other'}]"),
        ]
        .choose(&mut self.rng));
        json!([one])
    }
}

fn of_policies(kind: &str, plural: &str) -> Place {
    Place {
        resource: Resource {
            group: "admissionregistration.k8s.io".into(),
            version: "v1".into(),
            plural: plural.into(),
            kind: kind.into(),
            namespaced: false,
            verbs: Vec::new(),
            subresources: Vec::new(),
        },
        name: "@run@-policy".into(),
    }
}
