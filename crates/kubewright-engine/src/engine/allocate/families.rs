//! IP families of a service: what follows from what it says, and from the networks of the cluster (`initIPFamilyFields`).

use kubewright_meta::FieldError;
use kubewright_meta::cidr::{Family, ServiceCidrs};
use serde_json::{Map, Value, json};

use super::{has_addresses, text, texts};

const PREFER: &str = "PreferDualStack";
const REQUIRE: &str = "RequireDualStack";
const SINGLE: &str = "SingleStack";

/// Whether an update leaves a service that takes what families there are as it was: it gets and loses nothing when the
/// cluster's networks have become others.
pub(super) fn both_prefer(spec: &Value, before: &Value) -> bool {
    spec["ipFamilyPolicy"] == PREFER
        && (before["ipFamilyPolicy"].is_null() || before["ipFamilyPolicy"] == PREFER)
        && spec["type"] == before["type"]
        && spec["type"].as_str().is_some_and(has_addresses)
        && ["clusterIPs", "ipFamilies"].iter().all(|field| texts(&spec[*field]).eq(texts(&before[*field])))
}

/// Sets the policy of a service that does not say.
pub(super) fn choose_policy(spec: &mut Map<String, Value>, before: Option<&Value>) {
    if !has_addresses(text(spec, "type")) || spec.get("ipFamilyPolicy").is_some_and(Value::is_string) {
        return;
    }
    let kept = before.and_then(|before| before["ipFamilyPolicy"].as_str());
    let own = if is_free(spec) { REQUIRE } else { SINGLE };
    spec.insert("ipFamilyPolicy".into(), kept.unwrap_or(own).into());
}

/// Whether nothing is to be chosen for it: neither addresses nor pods.
fn is_free(spec: &Map<String, Value>) -> bool {
    let selects =
        spec.get("selector").and_then(Value::as_object).is_some_and(|selector| !selector.is_empty());
    text(spec, "clusterIP") == "None" && !selects
}

/// Completes the families of a service whose policy and addresses make sense.
///
/// # Errors
/// What the cluster has against them.
pub(super) fn complete(
    spec: &mut Map<String, Value>,
    before: Option<&Value>,
    cidrs: &ServiceCidrs,
) -> Result<(), Vec<FieldError>> {
    if !has_addresses(text(spec, "type")) {
        return Ok(());
    }
    let mut errors = Vec::new();
    let policy = text(spec, "ipFamilyPolicy").to_owned();
    if let Some(before) = before {
        follow_change(spec, before, &policy, &mut errors);
    }
    let mut families: Vec<String> = list(spec, "ipFamilies");
    let addresses: Vec<String> = list(spec, "clusterIPs");
    if policy == SINGLE {
        let why = |what| {
            format!("must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified")
        };
        if addresses.len() == 2 {
            errors.push(FieldError::invalid("spec.ipFamilyPolicy", policy.as_str(), why("cluster IPs")));
        }
        if families.len() == 2 {
            errors.push(FieldError::invalid("spec.ipFamilyPolicy", policy.as_str(), why("IP families")));
        }
    }
    for (at, address) in addresses.iter().enumerate() {
        let Ok(address) = address.parse() else { break };
        let family = Family::of(address);
        if at < families.len() {
            continue;
        }
        if cidrs.of(family).is_some() {
            families.push(family.name().to_owned());
        } else {
            let why = format!("{} is not configured on this cluster", family.name());
            errors.push(FieldError::invalid(format!("spec.clusterIPs[{at}]"), json!(addresses), why));
        }
    }
    if errors.is_empty() && !is_free(spec) {
        check_configured(&families, &policy, cidrs, &mut errors);
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    if families.is_empty() {
        families.push(cidrs.first().family().name().to_owned());
    }
    let more = policy != SINGLE && (is_free(spec) || cidrs.iter().count() == 2);
    if more && families.len() == 1 {
        families.push(if families[0] == "IPv4" { "IPv6" } else { "IPv4" }.to_owned());
    }
    spec.insert("ipFamilies".into(), json!(families));
    Ok(())
}

/// Who asks for one stack and touches nothing else lets the second go; who asks for more does not lose it silently.
fn follow_change(spec: &mut Map<String, Value>, before: &Value, policy: &str, errors: &mut Vec<FieldError>) {
    for (field, what) in [("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")] {
        let (now, then) = (list(spec, field), texts(&before[field]).map(str::to_owned).collect::<Vec<_>>());
        if policy == SINGLE {
            if now == then && now.len() > 1 {
                spec.insert(field.into(), json!([now[0]]));
            }
        } else if !now.is_empty() && now.len() < then.len() {
            let why = format!("must be 'SingleStack' to release the secondary {what}");
            errors.push(FieldError::invalid("spec.ipFamilyPolicy", policy, why));
        }
    }
}

/// What is asked for has to be there.
fn check_configured(families: &[String], policy: &str, cidrs: &ServiceCidrs, errors: &mut Vec<FieldError>) {
    if policy == REQUIRE && cidrs.iter().count() < 2 {
        let why = "this cluster is not configured for dual-stack services";
        errors.push(FieldError::invalid("spec.ipFamilyPolicy", policy, why));
    }
    for (at, family) in families.iter().enumerate() {
        if Family::named(family).is_none_or(|family| cidrs.of(family).is_none()) {
            let field = format!("spec.ipFamilies[{at}]");
            errors.push(FieldError::invalid(field, family.as_str(), "not configured on this cluster"));
        }
    }
}

fn list(spec: &Map<String, Value>, field: &str) -> Vec<String> {
    spec.get(field).map(|list| texts(list).map(str::to_owned).collect()).unwrap_or_default()
}
