//! Rights that were never used.

use serde_json::Value;

use crate::{
    finding::{Check, Finding},
    story::{Request, resource},
};

/// One right: a verb on a resource of a group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rule {
    /// Such as `apps`, or `*`.
    pub group: String,
    /// Such as `deployments/status`, or `*`.
    pub resource: String,
    /// Such as `update`, or `*`.
    pub verb: String,
}

impl Rule {
    /// The rights that roles give: the `rules` of Roles and ClusterRoles.
    #[must_use]
    pub fn of(roles: &[&Value]) -> Vec<Self> {
        let texts = |value: &Value| -> Vec<String> {
            value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let mut all = Vec::new();
        for rule in roles.iter().filter_map(|role| role["rules"].as_array()).flatten() {
            for group in texts(&rule["apiGroups"]) {
                for resource in texts(&rule["resources"]) {
                    let verbs = texts(&rule["verbs"]).into_iter();
                    all.extend(verbs.map(|verb| Self {
                        group: group.clone(),
                        resource: resource.clone(),
                        verb,
                    }));
                }
            }
        }
        all.sort();
        all.dedup();
        all
    }

    fn allows(&self, request: &Request) -> bool {
        let (group, plural) = request.collection.split_once('/').unwrap_or(("", &request.collection));
        let whole = if request.subresource.is_empty() {
            plural.to_owned()
        } else {
            format!("{plural}/{}", request.subresource)
        };
        let is = |wanted: &str, text: &str| wanted == "*" || wanted == text;
        is(&self.group, group) && is(&self.resource, &whole) && is(&self.verb, &request.verb)
    }
}

/// Rights that no request of any run needed. What is written for the garbage collector's sake (`finalizers`) is used without a
/// request; leases, Events and the
/// reviews of who asks for metrics are upkeep.
#[must_use]
pub fn unused(rules: &[Rule], requests: &[Request]) -> Vec<Finding> {
    let mut by_resource: std::collections::BTreeMap<String, Vec<&str>> = std::collections::BTreeMap::new();
    for rule in rules {
        let name = resource(&format!("{}/{}", rule.group, rule.resource));
        let is_upkeep = matches!(&*rule.resource, "leases" | "events")
            || rule.resource.ends_with("/finalizers")
            || rule.resource.ends_with("reviews");
        if !is_upkeep && !requests.iter().any(|request| rule.allows(request)) {
            by_resource.entry(name).or_default().push(&rule.verb);
        }
    }
    let told = by_resource.into_iter().map(|(resource, verbs)| Finding {
        check: Check::UnusedRights,
        subject: resource.clone(),
        message: format!("its role allows {} {resource}, and no run needed it", verbs.join(", ")),
        differences: Vec::new(),
        timeline: Vec::new(),
        steps: None,
    });
    told.collect()
}
