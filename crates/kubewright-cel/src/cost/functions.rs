//! What calls are estimated to cost: by overload in cel-go's ext/lists.go and ext/sets.go, by function in
//! k8s.io/apiserver/pkg/cel/library/cost.go, and by overload in cel-go's checker/cost.go.

use super::costs_one;
use super::estimate::{Argument, CallEstimate};
use super::runtime::{CHECK, LIST, PATTERN, TRAVERSAL};
use super::sizes::{CostEstimate, Size};
use crate::syntax::ast::Literal;
use crate::types::{Type, names};

/// The largest pattern of a named format.
const FORMAT_PATTERN: f64 = 128.0;
/// The longest name of a format.
const FORMAT_NAME: u64 = 64;
/// The bytes of an address.
const ADDRESS: Size = Size { min: 4, max: 16 };

/// What the call costs besides its arguments.
pub(super) fn estimate(
    function: &str,
    overload: &str,
    target: Option<&Argument<'_>>,
    args: &[Argument<'_>],
) -> CallEstimate {
    of_lists(overload, target, args)
        .or_else(|| of_kubernetes(function, overload, target, args))
        .or_else(|| of_strings(function, overload, target, args))
        .or_else(|| standard(overload, target, args))
        .unwrap_or_else(|| only(CostEstimate::fixed(1)))
}

fn only(cost: CostEstimate) -> CallEstimate {
    CallEstimate { cost, size: None }
}

fn sized(cost: CostEstimate, size: Size) -> CallEstimate {
    CallEstimate { cost, size: Some(size) }
}

/// The size of an argument, by what it is or what is declared about it.
fn size(argument: &Argument<'_>) -> Size {
    argument.computed.or_else(|| argument.path.size()).unwrap_or(Size::UNKNOWN)
}

fn literal_int(argument: Option<&Argument<'_>>, otherwise: u64) -> u64 {
    match argument.and_then(|argument| argument.literal) {
        Some(Literal::Int(number)) => u64::try_from(*number).unwrap_or(0),
        _ => otherwise,
    }
}

fn new_list(factor: f64, items: Size) -> CallEstimate {
    sized(items.scale(factor).add(CostEstimate::fixed(1 + LIST)), items)
}

fn of_lists(overload: &str, target: Option<&Argument<'_>>, args: &[Argument<'_>]) -> Option<CallEstimate> {
    Some(match (overload, target, args) {
        ("list_slice", Some(target), [start, end]) => {
            let (start, end) = (literal_int(Some(start), 0), literal_int(Some(end), size(target).max));
            new_list(1.0, Size::fixed(end.wrapping_sub(start)))
        }
        ("list_flatten" | "list_flatten_int", Some(target), args) => {
            let depth = if args.is_empty() { 1 } else { literal_int(args.first(), u64::MAX) };
            new_list(depth as f64, size(target))
        }
        ("lists_range", None, [end]) => new_list(1.0, Size::fixed(literal_int(Some(end), u64::MAX))),
        ("list_reverse", Some(target), _) => new_list(1.0, size(target)),
        ("list_distinct", Some(target), _) => {
            let items = size(target);
            new_list(2.0, items.multiply(items))
        }
        (_, Some(target), []) if overload.ends_with("_sort") => sorted(target, overload),
        (_, Some(_), [keys]) if overload.ends_with("_sortByAssociatedKeys") => sorted(keys, overload),
        ("list_sets_contains_list" | "list_sets_intersects_list", None, [left, right]) => {
            sets(left, right, 1.0)
        }
        ("list_sets_equivalent_list", None, [left, right]) => sets(left, right, 2.0),
        _ => return None,
    })
}

fn sorted(keys: &Argument<'_>, overload: &str) -> CallEstimate {
    let of_text = overload.starts_with("list_string_") || overload.starts_with("list_bytes_");
    let items = size(keys);
    new_list(if of_text { 2.0 + TRAVERSAL } else { 2.0 }, items.multiply(items))
}

fn sets(left: &Argument<'_>, right: &Argument<'_>, factor: f64) -> CallEstimate {
    only(size(left).multiply(size(right)).scale(factor).add(CostEstimate::fixed(1)))
}

fn of_kubernetes(
    function: &str,
    overload: &str,
    target: Option<&Argument<'_>>,
    args: &[Argument<'_>],
) -> Option<CallEstimate> {
    let first = args.first();
    Some(match function {
        "check" => only(CostEstimate::fixed(CHECK)),
        name if costs_one(name, overload) => only(CostEstimate::fixed(1)),
        "fieldSelector" | "labelSelector" => only(selector(size(first?))),
        "isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf" => only(traversed(target?)),
        "cidr" | "isIP" | "isCIDR" | "ip" | "quantity" | "isQuantity" | "semver" | "isSemver" => {
            only(size(first?).scale(TRAVERSAL))
        }
        "ip.isCanonical" => only(size(first?).scale(2.0 * TRAVERSAL)),
        "containsIP" => {
            let cost = ADDRESS.add(ADDRESS).scale(TRAVERSAL);
            only(cost.add(parsed(overload == "cidr_contains_ip_string", first?)))
        }
        "containsCIDR" => {
            let compared = ADDRESS.add(ADDRESS).scale(TRAVERSAL);
            let cost = compared.add(ADDRESS.scale(TRAVERSAL)).add(CostEstimate::fixed(1));
            only(cost.add(parsed(overload == "cidr_contains_cidr_string", first?)))
        }
        "validate" => only(size(first?).scale(TRAVERSAL).scale(FORMAT_PATTERN * PATTERN)),
        "_==_" => only(equality(args)?),
        _ => return None,
    })
}

fn parsed(from_text: bool, argument: &Argument<'_>) -> CostEstimate {
    if from_text { size(argument).scale(TRAVERSAL) } else { CostEstimate::default() }
}

fn selector(length: Size) -> CostEstimate {
    let requirements = length.scale(0.5).scale(50.0);
    CostEstimate::fixed(LIST).add(length.scale(TRAVERSAL)).add(requirements)
}

/// Looking at all items of a list once; or at the characters of text.
fn traversed(target: &Argument<'_>) -> CostEstimate {
    let Type::List(element) = target.r#type else { return size(target).scale(TRAVERSAL) };
    let mut each = CostEstimate::fixed(1);
    if matches!(**element, Type::String | Type::Bytes) {
        each = each.add(target.path.items().size().unwrap_or(Size::UNKNOWN).scale(TRAVERSAL));
    }
    size(target).multiply(each)
}

/// Comparing two values of one of Kubernetes' own types.
fn equality(args: &[Argument<'_>]) -> Option<CostEstimate> {
    let [left, right] = args else { return None };
    if left.r#type != right.r#type {
        return None;
    }
    match left.r#type {
        Type::Opaque(_) => Some(CostEstimate::fixed(1)),
        Type::Object(object) => match &*object.name {
            names::QUANTITY
            | names::SEMVER
            | names::AUTHORIZER
            | names::PATH_CHECK
            | names::GROUP_CHECK
            | names::RESOURCE_CHECK
            | names::DECISION => Some(CostEstimate::fixed(1)),
            names::NAMED_FORMAT => Some(CostEstimate { min: 1, max: FORMAT_NAME }.scale(TRAVERSAL)),
            names::URL => {
                let max = right.computed.map_or(1, |size| size.max);
                Some(CostEstimate { min: 1, max }.scale(TRAVERSAL))
            }
            _ => None,
        },
        _ => None,
    }
}

fn of_strings(
    function: &str,
    overload: &str,
    target: Option<&Argument<'_>>,
    args: &[Argument<'_>],
) -> Option<CallEstimate> {
    Some(match (function, target, args) {
        ("url" | "jsonpatch.escapeKey", None, [text]) => sized(size(text).scale(TRAVERSAL), size(text)),
        ("lowerAscii" | "upperAscii" | "substring" | "trim", Some(text), _) => {
            sized(size(text).scale(TRAVERSAL), size(text))
        }
        ("replace", Some(text), [old, new, ..]) => {
            sized(size(text).scale(2.0 * TRAVERSAL), replaced(size(text), size(old), size(new)))
        }
        ("split", Some(text), args) => {
            let most = match args.get(1).and_then(|limit| limit.literal) {
                Some(Literal::Int(limit)) => *limit as u64,
                _ => size(text).max,
            };
            sized(size(text).scale(2.0 * TRAVERSAL), Size { min: 0, max: most })
        }
        ("join", Some(list), args) => {
            let joined = joined(list, args.first());
            sized(joined.scale(TRAVERSAL), joined)
        }
        ("find" | "findAll", Some(text), [pattern, ..]) => {
            let cost = matching(size(text), size(pattern));
            sized(cost, Size { min: 0, max: size(text).max })
        }
        _ if overload == "string_format" => only(target?.size_or_unknown().scale(TRAVERSAL)),
        _ => return None,
    })
}

fn matching(text: Size, pattern: Size) -> CostEstimate {
    text.add(Size::fixed(1)).scale(TRAVERSAL).multiply(pattern.scale(PATTERN))
}

fn joined(list: &Argument<'_>, separator: Option<&Argument<'_>>) -> Size {
    let items = size(list);
    let mut joined = match list.r#type {
        Type::List(_) => items.multiply(list.path.items().size().unwrap_or(Size::UNKNOWN)),
        _ => Size::default(),
    };
    if let Some(separator) = separator {
        let between = Size { min: items.min.saturating_sub(1), max: items.max.saturating_sub(1) };
        joined = joined.add(size(separator).multiply(between));
    }
    joined
}

/// The size of text in which something is replaced: by the longest and the shortest replacement.
fn replaced(text: Size, old: Size, new: Size) -> Size {
    let mut count = Size::default();
    let mut kept = Size::default();
    if old.min == 0 {
        count.max = text.max.saturating_add(1);
        kept.max = text.max;
    } else if new.max <= old.min {
        kept.max = text.max;
    } else {
        count.max = (text.max as f64 / old.min as f64).ceil() as u64;
    }
    if old.max == 0 {
        count.min = text.min.saturating_add(1);
        kept.min = text.min;
    } else if old.max <= new.min {
        kept.min = text.min;
    } else {
        count.min = (text.min as f64 / old.max as f64).ceil() as u64;
    }
    count.multiply(new).add(kept)
}

fn standard(overload: &str, target: Option<&Argument<'_>>, args: &[Argument<'_>]) -> Option<CallEstimate> {
    Some(match (overload, target, args) {
        ("string_to_bytes", None, [text]) => {
            let size = text.size_or_unknown();
            sized(size.scale(TRAVERSAL), Size { min: size.min, max: size.max.wrapping_mul(4) })
        }
        ("bytes_to_string", None, [bytes]) => {
            let size = bytes.size_or_unknown();
            sized(size.scale(TRAVERSAL), Size { min: size.min / 4, max: size.max })
        }
        ("strings_quote", None, [text]) => {
            let size = text.size_or_unknown();
            let quoted =
                Size { min: size.min.wrapping_add(2), max: size.max.wrapping_mul(2).wrapping_add(2) };
            sized(size.scale(TRAVERSAL), quoted)
        }
        ("starts_with_string" | "ends_with_string", Some(_), [part]) => {
            only(part.size_or_unknown().scale(TRAVERSAL))
        }
        ("in_list", None, [_, list]) => only(list.size_or_unknown()),
        ("matches_string", Some(text), [pattern]) => {
            only(matching(text.size_or_unknown(), pattern.size_or_unknown()))
        }
        ("contains_string", Some(text), [part]) => {
            only(text.size_or_unknown().scale(TRAVERSAL).multiply(part.size_or_unknown().scale(TRAVERSAL)))
        }
        ("add_list", None, [left, right]) => {
            sized(CostEstimate::fixed(1), left.size_or_unknown().add(right.size_or_unknown()))
        }
        ("add_string" | "add_bytes", None, [left, right]) => {
            let size = left.size_or_unknown().add(right.size_or_unknown());
            sized(size.scale(TRAVERSAL), size)
        }
        (_, None, [left, right]) if compares_sizes(overload) => {
            let max = left.size_or_unknown().max.min(right.size_or_unknown().max);
            only(CostEstimate { min: max.min(1), max }.scale(TRAVERSAL))
        }
        _ => return None,
    })
}

fn compares_sizes(overload: &str) -> bool {
    matches!(
        overload,
        "less_string"
            | "greater_string"
            | "less_equals_string"
            | "greater_equals_string"
            | "less_bytes"
            | "greater_bytes"
            | "less_equals_bytes"
            | "greater_equals_bytes"
            | "equals"
            | "not_equals"
    )
}
