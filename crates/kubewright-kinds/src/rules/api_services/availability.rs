//! The condition `Available` of an APIService (`k8s.io/kube-aggregator/pkg/controllers/status`).

use serde_json::{Value, json};

/// The name of the condition.
const AVAILABLE: &str = "Available";

/// What the condition may say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It serves.
    True,
    /// It does not.
    False,
    /// Nobody has found out yet.
    Unknown,
}

/// What was found out about an API server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Whether it serves.
    pub is_available: bool,
    /// Why, in a word.
    pub reason: &'static str,
    /// Why, in a sentence.
    pub message: String,
}

impl Finding {
    fn missing(reason: &'static str, message: String) -> Self {
        Self { is_available: false, reason, message }
    }

    /// It answers.
    #[must_use]
    pub fn passed() -> Self {
        Self { is_available: true, reason: "Passed", message: "all checks passed".to_owned() }
    }

    /// It does not answer well.
    #[must_use]
    pub fn failed(why: impl Into<String>) -> Self {
        Self::missing("FailedDiscoveryCheck", why.into())
    }

    /// It is this API server.
    #[must_use]
    pub fn local() -> Self {
        let message = "Local APIServices are always available".to_owned();
        Self { is_available: true, reason: "Local", message }
    }
}

/// The condition of an APIService that this server serves, since a time.
pub(super) fn local(since: &Value) -> Value {
    let finding = Finding::local();
    json!({
        "type": AVAILABLE,
        "status": "True",
        "lastTransitionTime": since,
        "reason": finding.reason,
        "message": finding.message,
    })
}

/// What can be said of a Service and its EndpointSlices alone; none where the API server has to be asked.
#[must_use]
pub fn behind_service(
    (namespace, name, port): (&str, &str, u16),
    service: Option<&Value>,
    slices: &[Value],
) -> Option<Finding> {
    let Some(service) = service else {
        let message = format!("service/{name} in {namespace:?} is not present");
        return Some(Finding::missing("ServiceNotFound", message));
    };
    if service["spec"]["type"].as_str().unwrap_or("ClusterIP") != "ClusterIP" {
        return None;
    }
    let ports = service["spec"]["ports"].as_array().map_or(&[][..], Vec::as_slice);
    let Some(found) = ports.iter().find(|one| one["port"] == port) else {
        let message = format!("service/{name} in {namespace:?} is not listening on port {port}");
        return Some(Finding::missing("ServicePortError", message));
    };
    if slices.is_empty() {
        let message = format!("cannot find endpointslices for service/{name} in {namespace:?}");
        return Some(Finding::missing("EndpointsNotFound", message));
    }
    let port = found["name"].as_str().unwrap_or_default();
    if !slices.iter().any(|slice| is_ready(slice, port)) {
        let message = format!(
            "endpointslices for service/{name} in {namespace:?} have no addresses with port name {port:?}"
        );
        return Some(Finding::missing("MissingEndpoints", message));
    }
    None
}

/// Whether a slice has an endpoint that is ready, and the port.
fn is_ready(slice: &Value, port: &str) -> bool {
    let mut endpoints = slice["endpoints"].as_array().into_iter().flatten();
    let mut ports = slice["ports"].as_array().into_iter().flatten();
    endpoints.any(|one| one["conditions"]["ready"] != false)
        && ports.any(|one| one["name"].as_str().unwrap_or_default() == port && one["port"].is_number())
}

/// What the condition of an object says.
#[must_use]
pub fn status(object: &Value) -> Status {
    match find(object).and_then(|condition| condition["status"].as_str()) {
        Some("True") => Status::True,
        Some("False") => Status::False,
        _ => Status::Unknown,
    }
}

fn find(object: &Value) -> Option<&Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == AVAILABLE)
}

/// Whether the condition of an object says what was found.
#[must_use]
pub fn says(object: &Value, finding: &Finding) -> bool {
    let status = if finding.is_available { "True" } else { "False" };
    find(object).is_some_and(|condition| {
        condition["status"] == status
            && condition["reason"] == finding.reason
            && condition["message"].as_str().unwrap_or_default() == finding.message
    })
}

/// Has the condition say what was found; its time is that of the last change of its status.
pub fn set(object: &mut Value, finding: &Finding, now: Value) {
    let status = if finding.is_available { "True" } else { "False" };
    let since = match find(object) {
        Some(condition) if condition["status"] == status => condition["lastTransitionTime"].clone(),
        _ => now,
    };
    let mut condition = json!({"type": AVAILABLE, "status": status, "lastTransitionTime": since});
    condition["reason"] = finding.reason.into();
    condition["message"] = finding.message.as_str().into();
    if !object["status"].is_object() {
        object["status"] = json!({});
    }
    let conditions = &mut object["status"]["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(conditions) = conditions.as_array_mut() else { return };
    match conditions.iter_mut().find(|condition| condition["type"] == AVAILABLE) {
        Some(there) => *there = condition,
        None => conditions.push(condition),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: (&str, &str, u16) = ("ns", "api", 443);

    fn reason(service: Option<&Value>, slices: &[Value]) -> Option<(&'static str, String)> {
        behind_service(PLACE, service, slices).map(|finding| (finding.reason, finding.message))
    }

    #[test]
    fn a_service_needs_the_port_and_endpoints_that_are_ready() {
        let found = |reason, message: &str| Some((reason, message.to_owned()));
        assert_eq!(reason(None, &[]), found("ServiceNotFound", "service/api in \"ns\" is not present"));
        let service =
            |port: u16| json!({"spec": {"type": "ClusterIP", "ports": [{"name": "https", "port": port}]}});
        assert_eq!(
            reason(Some(&service(80)), &[]),
            found("ServicePortError", "service/api in \"ns\" is not listening on port 443")
        );
        let service = service(443);
        assert_eq!(
            reason(Some(&service), &[]),
            found("EndpointsNotFound", "cannot find endpointslices for service/api in \"ns\"")
        );
        let slice = |ready: bool, port: &str| json!({"endpoints": [{"conditions": {"ready": ready}}], "ports": [{"name": port, "port": 8443}]});
        let missing = found(
            "MissingEndpoints",
            "endpointslices for service/api in \"ns\" have no addresses with port name \"https\"",
        );
        assert_eq!(reason(Some(&service), &[slice(false, "https"), slice(true, "other")]), missing);
        assert_eq!(reason(Some(&service), &[slice(true, "https")]), None);
        let outside = json!({"spec": {"type": "ExternalName", "externalName": "example.com"}});
        assert_eq!(reason(Some(&outside), &[]), None);
    }

    #[test]
    fn a_condition_keeps_its_time_while_it_keeps_its_status() {
        let mut object = json!({});
        set(&mut object, &Finding::failed("no"), json!("1"));
        assert_eq!(status(&object), Status::False);
        set(&mut object, &Finding::failed("not yet"), json!("2"));
        assert_eq!(object["status"]["conditions"][0]["lastTransitionTime"], "1");
        assert!(says(&object, &Finding::failed("not yet")) && !says(&object, &Finding::passed()));
        set(&mut object, &Finding::passed(), json!("3"));
        assert_eq!(object["status"]["conditions"][0]["lastTransitionTime"], "3");
        assert_eq!(status(&object), Status::True);
    }
}
