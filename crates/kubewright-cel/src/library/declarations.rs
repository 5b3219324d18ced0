//! The declared functions: names, overloads, types of parameters and results, in the order in which cel-go tries them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::types::{Param, Type, names};

/// A function, or an operator.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) overloads: Vec<Overload>,
}

/// One way to call a function.
#[derive(Debug)]
pub(crate) struct Overload {
    /// cel-go's id for it, by which the implementation and the costs are found.
    pub(crate) id: &'static str,
    /// Whether it is called on its first argument (`text.contains(part)`).
    pub(crate) member: bool,
    pub(crate) parameters: Vec<Type>,
    pub(crate) result: Type,
}

/// The declarations of Kubernetes v1.36: `name|overload|m (of a value) or f|types of the parameters|type of the result`.
const TABLE: &str = include_str!("declarations.txt");

static FUNCTIONS: LazyLock<BTreeMap<&'static str, Function>> = LazyLock::new(|| {
    let mut functions: BTreeMap<&'static str, Function> = BTreeMap::new();
    for line in TABLE.lines() {
        // From the right: the name of `||` has the separator in it.
        let mut columns = line.rsplitn(5, '|');
        let mut column = || columns.next().unwrap_or_default();
        let (result, parameters, member, id, name) = (column(), column(), column(), column(), column());
        let parameters = split(parameters).into_iter().map(parse).collect();
        let overload = Overload { id, member: member == "m", parameters, result: parse(result) };
        functions
            .entry(name)
            .or_insert_with(|| Function { name, overloads: Vec::new() })
            .overloads
            .push(overload);
    }
    functions
});

/// The function of that name.
pub(crate) fn function(name: &str) -> Option<&'static Function> {
    FUNCTIONS.get(name)
}

/// All functions.
#[cfg(test)]
pub(crate) fn all() -> impl Iterator<Item = &'static Function> {
    FUNCTIONS.values()
}

/// Splits at the commas that are in no parentheses.
fn split(list: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (index, character) in list.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(list[start..index].trim());
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(list[start..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

fn parse(text: &'static str) -> Type {
    if let Some((name, rest)) = text.split_once('(') {
        let mut parameters = split(rest.strip_suffix(')').unwrap_or(rest)).into_iter();
        let mut parameter = || parameters.next().map_or(Type::Dyn, parse);
        return match name {
            "list" => Type::list(parameter()),
            "map" => Type::map(parameter(), parameter()),
            "type" => Type::Type(Some(parameter().into())),
            _ => Type::optional(parameter()),
        };
    }
    match text {
        "dyn" => Type::Dyn,
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "timestamp" => Type::Timestamp,
        "duration" => Type::Duration,
        names::IP => Type::Opaque(names::IP),
        names::CIDR => Type::Opaque(names::CIDR),
        name => match name.as_bytes() {
            [letter] => Type::Param(Param::Declared(char::from(*letter))),
            _ => Type::hidden(name),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_a_declaration() {
        let overloads: usize = FUNCTIONS.values().map(|function| function.overloads.len()).sum();
        assert_eq!(overloads, TABLE.lines().count());
        for line in TABLE.lines() {
            let shown = FUNCTIONS.values().flat_map(|function| {
                function.overloads.iter().map(|overload| {
                    let parameters: Vec<String> =
                        overload.parameters.iter().map(ToString::to_string).collect();
                    let member = if overload.member { "m" } else { "f" };
                    format!(
                        "{}|{}|{member}|{}|{}",
                        function.name,
                        overload.id,
                        parameters.join(", "),
                        overload.result
                    )
                })
            });
            assert!(shown.into_iter().any(|shown| shown == line), "{line}");
        }
    }
}
