//! What a call costs while an expression runs: by function in k8s.io/apiserver/pkg/cel/library/cost.go, by overload in cel-go's
//! interpreter/runtimecost.go, ext/lists.go and ext/sets.go.

use super::costs_one;
use super::sizes::scale;
use crate::value::{List, Value};

/// What traversing a character of text costs.
pub(super) const TRAVERSAL: f64 = 0.1;
/// What a character of a pattern costs.
pub(super) const PATTERN: f64 = 0.25;
/// What making a list costs.
pub(super) const LIST: u64 = 10;
/// What a check of authorization costs: so much that an expression can make two.
pub(super) const CHECK: u64 = 350_000;

/// How the cost of a call is found.
#[derive(Clone, Copy, Debug)]
pub(crate) enum CallCost {
    Fixed(u64),
    /// By the length of the first argument, times this.
    First(f64),
    /// By the length of the second argument.
    Second,
    /// By the lengths of the first two, added.
    Sum,
    /// By the lengths of the first two, multiplied.
    Product,
    /// By the shorter of the first two.
    Shorter,
    /// Matching the first with the pattern that the second is.
    Pattern,
    /// By the length of the result, times this.
    Result(f64),
    /// Looking at all there is in the first.
    Traverse,
    /// Parsing a selector.
    Selector,
    /// Comparing with a network; of which the second has to be parsed or not, and whether it is a network.
    Network {
        parsed: bool,
        network: bool,
    },
    /// Validating with a named format.
    Format,
    /// Making a list of the size of the result.
    NewList,
    /// Flattening lists.
    Flatten,
    /// Comparing all items of a list with each other: of the argument with this index.
    SelfCompare(usize),
    /// Comparing all items of two lists, so often.
    Sets(u64),
    /// Making numbers up to the first argument.
    Range,
}

impl CallCost {
    /// The rule for an overload; the id is empty if there is more than one that it may be.
    pub(crate) fn new(function: &str, overload: &str) -> Self {
        by_library(overload)
            .or_else(|| by_function(function, overload))
            .unwrap_or_else(|| by_overload(overload))
    }

    /// What has to be paid before: for what could get too large otherwise.
    pub(crate) fn before(self, args: &[Value<'_>]) -> u64 {
        match (self, args.first()) {
            (CallCost::Range, Some(Value::Int(end))) => {
                u64::try_from(*end).unwrap_or(0).saturating_add(1 + LIST)
            }
            _ => 0,
        }
    }

    /// What the call cost, now that the result is there.
    pub(crate) fn after(self, args: &[Value<'_>], result: Option<&Value<'_>>) -> u64 {
        let first = || args.first().map_or(1, size);
        let second = || args.get(1).map_or(1, size);
        match self {
            CallCost::Fixed(cost) => cost,
            CallCost::First(factor) => scale(first(), factor),
            CallCost::Second => second(),
            CallCost::Sum => scale(first() + second(), TRAVERSAL),
            CallCost::Product => scale(first(), TRAVERSAL) * scale(second(), TRAVERSAL),
            CallCost::Shorter => scale(first().min(second()), TRAVERSAL),
            CallCost::Pattern => matching(first(), second()),
            CallCost::Result(factor) => scale(result.map_or(1, size), factor),
            CallCost::Traverse => args.first().map_or(0, traversal),
            CallCost::Selector => LIST + scale(second(), TRAVERSAL) + scale(scale(second(), 0.5), 50.0),
            CallCost::Network { parsed, network } => {
                let compared = scale(first() * 2, TRAVERSAL);
                let masked = if network { scale(first(), TRAVERSAL) + 1 } else { 0 };
                compared + masked + if parsed { scale(second(), TRAVERSAL) } else { 0 }
            }
            CallCost::Format => match args.first() {
                Some(Value::Opaque(crate::value::Opaque::Format(format))) => {
                    matching(second(), format.pattern_size())
                }
                _ => 1,
            },
            CallCost::NewList => new_list(1.0, result.map_or(1, size)),
            CallCost::Flatten => {
                let depth = match args.get(1) {
                    Some(Value::Int(depth)) => *depth as f64,
                    _ => 1.0,
                };
                new_list(depth, first())
            }
            CallCost::SelfCompare(index) => args.get(index).map_or(1, self_compare),
            CallCost::Sets(factor) => 1 + first().saturating_mul(second()).saturating_mul(factor),
            CallCost::Range => 0,
        }
    }
}

fn new_list(factor: f64, items: u64) -> u64 {
    ((items as f64 * factor) as u64).saturating_add(1 + LIST)
}

fn self_compare(list: &Value<'_>) -> u64 {
    let items = size(list);
    let of_text = match list {
        Value::List(list) => matches!(list.get(0), Some(Ok(Value::String(_) | Value::Bytes(_)))),
        _ => false,
    };
    new_list(if of_text { 2.0 + TRAVERSAL } else { 2.0 }, items.saturating_mul(items))
}

/// What `==` costs.
pub(crate) fn equality(left: &Value<'_>, right: &Value<'_>) -> u64 {
    match left {
        Value::Opaque(_) => 1,
        _ => scale(size(left).min(size(right)), TRAVERSAL),
    }
}

/// What it costs to match text of a length with a pattern of a length.
pub(crate) fn matching(text: u64, pattern: u64) -> u64 {
    scale(text + 1, TRAVERSAL).saturating_mul(scale(pattern, PATTERN))
}

/// The size of a value: characters, bytes, items, entries; 1 for what has none.
fn size(value: &Value<'_>) -> u64 {
    match value {
        Value::String(text) => text.chars().count() as u64,
        Value::Bytes(bytes) => bytes.len() as u64,
        Value::List(list) => list.len() as u64,
        Value::Map(map) => map.len() as u64,
        Value::Optional(Some(value)) => size(value),
        Value::Opaque(opaque) => opaque.size(),
        _ => 1,
    }
}

/// What it costs to look at all there is in a value.
fn traversal(value: &Value<'_>) -> u64 {
    match value {
        Value::String(text) => (text.len() as f64 * TRAVERSAL) as u64,
        Value::Bytes(bytes) => (bytes.len() as f64 * TRAVERSAL) as u64,
        Value::List(list) => traversal_of_list(list),
        Value::Map(map) => {
            let keys = map.keys();
            keys.iter()
                .map(|key| traversal(key) + map.get(key).ok().flatten().map_or(1, |value| traversal(&value)))
                .sum()
        }
        _ => 1,
    }
}

fn traversal_of_list(list: &List<'_>) -> u64 {
    list.iter().map(|item| item.map_or(1, |item| traversal(&item))).sum()
}

/// The extensions of cel-go that say it for overloads.
fn by_library(overload: &str) -> Option<CallCost> {
    Some(match overload {
        "list_slice" | "list_reverse" => CallCost::NewList,
        "lists_range" => CallCost::Range,
        "list_flatten" | "list_flatten_int" => CallCost::Flatten,
        "list_distinct" => CallCost::SelfCompare(0),
        "list_sets_contains_list" | "list_sets_intersects_list" => CallCost::Sets(1),
        "list_sets_equivalent_list" => CallCost::Sets(2),
        _ if overload.ends_with("_sortByAssociatedKeys") => CallCost::SelfCompare(1),
        _ if overload.ends_with("_sort") => CallCost::SelfCompare(0),
        _ => return None,
    })
}

/// Kubernetes' own.
fn by_function(function: &str, overload: &str) -> Option<CallCost> {
    Some(match function {
        "check" => CallCost::Fixed(CHECK),
        name if costs_one(name, overload) => CallCost::Fixed(1),
        "fieldSelector" | "labelSelector" => CallCost::Selector,
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => CallCost::Traverse,
        "url"
        | "lowerAscii"
        | "upperAscii"
        | "substring"
        | "trim"
        | "jsonpatch.escapeKey"
        | "cidr"
        | "isIP"
        | "isCIDR"
        | "ip"
        | "quantity"
        | "isQuantity"
        | "semver"
        | "isSemver" => CallCost::First(TRAVERSAL),
        "replace" | "split" | "ip.isCanonical" => CallCost::First(2.0 * TRAVERSAL),
        "join" => CallCost::Result(2.0 * TRAVERSAL),
        "find" | "findAll" => CallCost::Pattern,
        "containsIP" => CallCost::Network { parsed: overload == "cidr_contains_ip_string", network: false },
        "containsCIDR" => {
            CallCost::Network { parsed: overload == "cidr_contains_cidr_string", network: true }
        }
        "validate" => CallCost::Format,
        _ => return None,
    })
}

/// The standard functions.
fn by_overload(overload: &str) -> CallCost {
    match overload {
        "starts_with_string" | "ends_with_string" | "string_to_bytes" | "bytes_to_string"
        | "strings_quote" | "string_format" => CallCost::First(TRAVERSAL),
        "in_list" => CallCost::Second,
        "less_string"
        | "greater_string"
        | "less_equals_string"
        | "greater_equals_string"
        | "less_bytes"
        | "greater_bytes"
        | "less_equals_bytes"
        | "greater_equals_bytes" => CallCost::Shorter,
        "add_string" | "add_bytes" => CallCost::Sum,
        "matches_string" => CallCost::Pattern,
        "contains_string" => CallCost::Product,
        _ => CallCost::Fixed(1),
    }
}
