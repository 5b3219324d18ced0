//! How much of a device that claims share a request takes (`consumable_capacity.go`).

use std::collections::BTreeMap;

use kubewright_meta::quantity::Quantity;
use serde_json::Value;

/// Amounts by the names of capacities.
pub(super) type Amounts = BTreeMap<String, Quantity>;

/// What a request takes of each capacity; nothing where it asks for one that is not there, or for what may not be asked for.
pub(super) fn consumed(request: &Value, device: &Value) -> Option<Amounts> {
    let wanted = request.pointer("/capacity/requests").and_then(Value::as_object);
    let capacities = device.get("capacity").and_then(Value::as_object);
    let has = |name: &String| capacities.is_some_and(|all| all.contains_key(name));
    if wanted.is_some_and(|wanted| !wanted.keys().all(has)) {
        return None;
    }
    let mut taken = Amounts::new();
    for (name, capacity) in capacities.into_iter().flatten() {
        let asked = wanted.and_then(|wanted| wanted.get(name)).and_then(Quantity::of);
        let amount = rounded(asked, capacity)?;
        if breaks_policy(amount, &capacity["requestPolicy"]) {
            return None;
        }
        taken.insert(name.clone(), amount);
    }
    Some(taken)
}

/// Whether there is room for what is taken beside what is used.
pub(super) fn fits(taken: &Amounts, used: &[&Amounts], device: &Value) -> bool {
    taken.iter().all(|(name, amount)| {
        let before = used.iter().filter_map(|used| used.get(name)).fold(*amount, |sum, more| sum + *more);
        Quantity::of(&device["capacity"][name.as_str()]["value"]).is_some_and(|room| before <= room)
    })
}

fn rounded(asked: Option<Quantity>, capacity: &Value) -> Option<Quantity> {
    let policy = &capacity["requestPolicy"];
    let Some(asked) = asked else {
        return Quantity::of(&policy["default"]).or_else(|| Quantity::of(&capacity["value"]));
    };
    if let Some(low) = Quantity::of(&policy["validRange"]["min"]) {
        if asked < low {
            return Some(low);
        }
        let Some(step) = Quantity::of(&policy["validRange"]["step"]).filter(|step| step.units() > 0) else {
            return Some(asked);
        };
        let more = asked.units() - low.units();
        let steps = more / step.units() + i128::from(more % step.units() != 0);
        let whole = low.units() + step.units() * steps;
        return Quantity::parse(&whole.to_string());
    }
    let values = policy["validValues"].as_array();
    let fitting = values.into_iter().flatten().filter_map(Quantity::of).find(|value| asked <= *value);
    Some(fitting.unwrap_or(asked))
}

fn breaks_policy(amount: Quantity, policy: &Value) -> bool {
    if Quantity::of(&policy["default"]) == Some(amount) {
        return false;
    }
    let range = &policy["validRange"];
    if range.is_object() {
        let is_over = Quantity::of(&range["max"]).is_some_and(|high| amount > high);
        let low = Quantity::of(&range["min"]).unwrap_or(Quantity::ZERO);
        let step = Quantity::of(&range["step"]).filter(|step| step.units() > 0);
        return is_over || step.is_some_and(|step| (amount.units() - low.units()) % step.units() != 0);
    }
    let values = policy["validValues"].as_array().map_or(&[][..], Vec::as_slice);
    !values.is_empty() && !values.iter().filter_map(Quantity::of).any(|value| value == amount)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_is_rounded_up_to_what_may_be_asked_for() {
        let device = json!({"capacity": {"memory": {"value": "10Gi", "requestPolicy": {
            "default": "1Gi", "validRange": {"min": "1Gi", "step": "1Gi"}}}}});
        let memory = |asked: Option<&str>| {
            let request = json!({"capacity": {"requests": asked.map(|asked| json!({"memory": asked}))}});
            consumed(&request, &device).and_then(|taken| taken.get("memory").copied())
        };
        assert_eq!(memory(None), Quantity::parse("1Gi"));
        assert_eq!(memory(Some("1536Mi")), Quantity::parse("2Gi"));
        assert_eq!(memory(Some("1Mi")), Quantity::parse("1Gi"));
        assert_eq!(consumed(&json!({"capacity": {"requests": {"none": "1"}}}), &device), None);
    }

    #[test]
    fn shares_of_a_device_are_no_more_than_the_device() {
        let device = json!({"capacity": {"memory": {"value": "10Gi"}}});
        let amount =
            |text: &str| Amounts::from([("memory".to_owned(), Quantity::parse(text).expect("a quantity"))]);
        assert!(fits(&amount("4Gi"), &[&amount("6Gi")], &device));
        assert!(!fits(&amount("4Gi"), &[&amount("6Gi"), &amount("1Mi")], &device));
    }
}
