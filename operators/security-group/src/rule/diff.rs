//! From the rules that are there to the rules that are wanted: a pure function.

use std::collections::BTreeMap;

use super::{Rule, WantedRule};
use crate::cloud::FoundRule;

/// What is to be done with a group's rules, in this order: so an open port never closes for a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// To be made.
    pub add: Vec<WantedRule>,
    /// To be deleted and made anew at once: all that differs is what is said of it, which Neutron never changes, and it
    /// takes no second one beside.
    pub replace: Vec<(FoundRule, WantedRule)>,
    /// To be deleted.
    pub delete: Vec<FoundRule>,
}

impl Difference {
    /// Whether nothing is to be done.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.add.is_empty() && self.replace.is_empty() && self.delete.is_empty()
    }
}

/// What makes the rules `found` into those `wanted`. The rules that OpenStack gives each new group are left alone with
/// `keep_default_egress`.
#[must_use]
pub fn difference(wanted: &[WantedRule], found: &[FoundRule], keep_default_egress: bool) -> Difference {
    let mut missing: BTreeMap<&Rule, &WantedRule> = BTreeMap::new();
    for one in wanted {
        missing.entry(&one.rule).or_insert(one);
    }
    let mut result = Difference::default();
    let mut differing: BTreeMap<Rule, &FoundRule> = BTreeMap::new();
    for one in found {
        let Some(rule) = Rule::found(one) else {
            result.delete.push(one.clone());
            continue;
        };
        match missing.get(&rule) {
            Some(wanted) if wanted.description == one.description.as_deref().unwrap_or_default() => {
                missing.remove(&rule);
                // One that only differed in what is said of it is surplus beside this one.
                result.delete.extend(differing.remove(&rule).cloned());
            }
            Some(_) if !differing.contains_key(&rule) => drop(differing.insert(rule, one)),
            None if keep_default_egress && rule.is_default_egress() => {}
            _ => result.delete.push(one.clone()),
        }
    }
    for (rule, found) in differing {
        if let Some(wanted) = missing.remove(&rule) {
            result.replace.push((found.clone(), wanted.clone()));
        }
    }
    // In the order in which they are written.
    for one in wanted {
        if missing.remove(&one.rule).is_some() {
            result.add.push(one.clone());
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn wanted(value: Value, description: &str) -> WantedRule {
        let spec = kubewright::object::from_value(value).expect("a rule of a spec");
        let rule = Rule::of(&spec, |name| Some(name.to_owned())).expect("it makes sense");
        WantedRule { rule, description: description.to_owned() }
    }

    fn tcp(port: u16) -> WantedRule {
        wanted(json!({"portRangeMin": port, "portRangeMax": port, "remoteIpPrefix": "10.0.0.0/8"}), "")
    }

    fn found(id: &str, wanted: &WantedRule) -> FoundRule {
        let mut body = wanted.rule.body("group", &wanted.description)["security_group_rule"].take();
        body["id"] = id.into();
        kubewright::object::from_value(body).expect("a rule of Neutron")
    }

    fn default_egress(id: &str, ethertype: &str) -> FoundRule {
        kubewright::object::from_value(json!({"id": id, "direction": "egress", "ethertype": ethertype}))
            .expect("a rule of Neutron")
    }

    fn ids(rules: &[FoundRule]) -> Vec<&str> {
        rules.iter().map(|rule| rule.id.as_str()).collect()
    }

    /// SG-01: the two rules that Neutron gives to a new group go, as they are not in the spec.
    #[test]
    fn sg_01_the_rules_of_a_new_group_go_unless_they_are_kept() {
        let fresh = [default_egress("4", "IPv4"), default_egress("6", "IPv6")];
        let plan = difference(&[tcp(8888)], &fresh, false);
        assert_eq!((plan.add, ids(&plan.delete)), (vec![tcp(8888)], vec!["4", "6"]));
        let plan = difference(&[tcp(8888)], &fresh, true);
        assert_eq!((plan.add, ids(&plan.delete)), (vec![tcp(8888)], vec![]));
    }

    /// SG-05. A change of the protocol or the direction alone is a change too.
    #[test]
    fn sg_05_only_what_differs_is_made_and_deleted() {
        let there = [found("a", &tcp(80)), found("b", &tcp(443))];
        let udp = wanted(
            json!({"portRangeMin": 443, "portRangeMax": 443, "remoteIpPrefix": "10.0.0.0/8", "protocol": "udp"}),
            "",
        );
        let plan = difference(&[tcp(80), udp.clone()], &there, false);
        assert_eq!((plan.add, plan.replace, ids(&plan.delete)), (vec![udp], vec![], vec!["b"]));
        let out = wanted(
            json!({"portRangeMin": 80, "portRangeMax": 80, "remoteIpPrefix": "10.0.0.0/8", "direction": "egress"}),
            "",
        );
        let plan = difference(std::slice::from_ref(&out), &there[..1], false);
        assert_eq!((plan.add, ids(&plan.delete)), (vec![out], vec!["a"]));
    }

    #[test]
    fn another_description_replaces_the_rule_as_neutron_takes_no_second_one() {
        let new = WantedRule { description: "for the load balancer".to_owned(), ..tcp(80) };
        let plan = difference(std::slice::from_ref(&new), &[found("a", &tcp(80))], false);
        assert_eq!((plan.replace.len(), plan.add.len(), plan.delete.len()), (1, 0, 0));
        assert_eq!(plan.replace[0].1, new);
    }

    #[test]
    fn of_two_rules_that_are_the_same_one_stays() {
        let mut twin = found("b", &tcp(80));
        twin.remote_ip_prefix = Some("10.9.9.9/8".to_owned());
        for (there, surplus) in
            [([found("a", &tcp(80)), twin.clone()], "b"), ([twin, found("a", &tcp(80))], "a")]
        {
            let plan = difference(&[tcp(80)], &there, false);
            assert_eq!((plan.add.len(), plan.replace.len(), ids(&plan.delete)), (0, 0, vec![surplus]));
        }
    }

    #[test]
    fn a_rule_of_an_unknown_kind_goes() {
        let mut odd = found("a", &tcp(80));
        odd.protocol = Some("quic".to_owned());
        assert_eq!(ids(&difference(&[], &[odd], true).delete), ["a"]);
    }

    proptest! {
        /// Whatever is there and wanted: one pass leads to what is wanted, and a second one finds nothing to do.
        #[test]
        fn one_pass_is_enough(have in proptest::collection::vec((1..6u16, "[ab]?"), 0..8), want in proptest::collection::vec((1..6u16, "[ab]?"), 0..8), keep: bool) {
            let rule = |(port, text): &(u16, String)| WantedRule { description: text.clone(), ..tcp(*port) };
            let wanted: Vec<_> = want.iter().map(rule).collect();
            let mut there: Vec<_> = have.iter().enumerate().map(|(at, one)| found(&at.to_string(), &rule(one))).collect();
            there.push(default_egress("e", "IPv4"));
            let plan = difference(&wanted, &there, keep);
            let gone: Vec<_> = plan.delete.iter().chain(plan.replace.iter().map(|(old, _)| old)).map(|rule| &rule.id).collect();
            let mut after: Vec<_> = there.iter().filter(|rule| !gone.contains(&&rule.id)).cloned().collect();
            after.extend(plan.add.iter().chain(plan.replace.iter().map(|(_, new)| new)).map(|rule| found("new", rule)));
            prop_assert!(difference(&wanted, &after, keep).is_empty());
        }
    }
}
