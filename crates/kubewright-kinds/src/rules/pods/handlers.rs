//! What is run in a container by the kubelet: probes and lifecycle hooks.

use super::super::at::At;
use super::super::errors::Errors;
use super::super::text;

/// The three probes of a container.
pub(super) fn check_probes(container: &At<'_>, grace: Option<i64>, errors: &mut Errors) {
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let probe = container.get(name);
        if !probe.is_set() {
            continue;
        }
        check_probe(&probe, grace, errors);
        let threshold = probe.get("successThreshold");
        let period = probe.get("terminationGracePeriodSeconds");
        if name == "readinessProbe" {
            if period.is_set() {
                errors.invalid(&period, "must not be set for readinessProbes");
            }
        } else if threshold.number() != Some(1) {
            errors.invalid_as(&threshold, threshold.number().unwrap_or_default(), "must be 1");
        }
    }
}

fn check_probe(probe: &At<'_>, grace: Option<i64>, errors: &mut Errors) {
    check_handler(probe, &["exec", "httpGet", "tcpSocket", "grpc"], grace, errors);
    let numbers =
        ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"];
    for field in numbers {
        errors.non_negative(&probe.get(field));
    }
    errors.positive(&probe.get("terminationGracePeriodSeconds"));
}

/// `lifecycle` of a container. `os` is the name of the pod's operating system, when it has one.
pub(super) fn check_lifecycle(lifecycle: &At<'_>, grace: Option<i64>, os: Option<&str>, errors: &mut Errors) {
    for name in ["postStart", "preStop"] {
        let hook = lifecycle.get(name);
        if hook.is_set() {
            check_handler(&hook, &["exec", "httpGet", "tcpSocket", "sleep"], grace, errors);
        }
    }
    let signal = lifecycle.get("stopSignal");
    if signal.is_set() {
        match os {
            None => errors.forbidden(&signal, "may not be set for containers with empty `spec.os.name`"),
            Some("windows") => errors.one_of(&signal, &["SIGKILL", "SIGTERM"]),
            Some(_) => {}
        }
    }
}

fn check_handler(handler: &At<'_>, kinds: &[&str], grace: Option<i64>, errors: &mut Errors) {
    let mut given = kinds.iter().map(|kind| (*kind, handler.get(kind))).filter(|(_, action)| action.is_set());
    let Some((kind, action)) = given.next() else {
        errors.required(handler, "must specify a handler type");
        return;
    };
    match kind {
        "exec" => {
            errors.need(&action.get("command"));
        }
        "httpGet" => check_http_get(&action, errors),
        "tcpSocket" | "grpc" => check_port(&action.get("port"), errors),
        _ => check_sleep(&action, grace, errors),
    }
    for (_, other) in given {
        errors.forbidden(&other, "may not specify more than 1 handler type");
    }
}

fn check_http_get(http: &At<'_>, errors: &mut Errors) {
    errors.need(&http.get("path"));
    check_port(&http.get("port"), errors);
    errors.one_of(&http.get("scheme"), &["HTTP", "HTTPS"]);
    let headers = http.get("httpHeaders");
    for name in headers.items().map(|header| header.get("name").text()) {
        for message in text::header_name(name) {
            errors.invalid_as(&headers, name, message);
        }
    }
}

/// A port by number or name (`ValidatePortNumOrName`).
pub(crate) fn check_port(port: &At<'_>, errors: &mut Errors) {
    if port.value.is_string() { errors.text(port, text::port_name) } else { errors.port(port) }
}

fn check_sleep(sleep: &At<'_>, grace: Option<i64>, errors: &mut Errors) {
    let seconds = sleep.get("seconds").number().unwrap_or_default();
    if let Some(grace) = grace
        && !(0..=grace).contains(&seconds)
    {
        let detail = format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
        errors.invalid_as(sleep, seconds, detail);
    }
}
