//! The macros with two variables: index and element of a list, key and value of a map (cel-go's ext/comprehensions.go).

use std::sync::Arc;

use super::ast::{ACCUMULATOR, Comprehension, Expr, Id, Literal, operators};
use super::macros::{Builder, Expanded, Misused};

/// What the macro makes of the call, if `function` is one of these.
pub(super) fn expand(
    builder: &mut Builder<'_>,
    function: &str,
    range: Id,
    variables: (Id, Id),
    rest: &[Id],
) -> Expanded {
    let (filter, last) = match (function, rest) {
        ("all" | "exists" | "exists_one" | "existsOne", [predicate]) => (None, *predicate),
        ("transformList" | "transformMap" | "transformMapEntry", [transform]) => (None, *transform),
        ("transformList" | "transformMap" | "transformMapEntry", [filter, transform]) => {
            (Some(*filter), *transform)
        }
        _ => return Ok(None),
    };
    let (first, second) = names(builder, variables)?;
    let fold = match function {
        "all" => builder.all_fold(range, first, Some(second), last),
        "exists" => builder.exists_fold(range, first, Some(second), last),
        "exists_one" | "existsOne" => builder.exists_one_fold(range, first, Some(second), last),
        "transformList" => builder.list_fold(range, first, Some(second), filter, last),
        "transformMap" => {
            let key = builder.ident(&first);
            map_fold(builder, range, (first, second), filter, &[key, last])
        }
        _ => map_fold(builder, range, (first, second), filter, &[last]),
    };
    Ok(Some(builder.node(fold)))
}

fn names(builder: &Builder<'_>, (first, second): (Id, Id)) -> Result<(Arc<str>, Arc<str>), Misused> {
    let name = |id| builder.name(id).ok_or_else(|| Misused(id, "argument must be a simple name".to_owned()));
    let names = (name(first)?, name(second)?);
    if names.0 == names.1 {
        return Err(Misused(second, format!("duplicate variable name: {}", names.0)));
    }
    Builder::check_variable(first, &names.0)?;
    Builder::check_variable(second, &names.1)?;
    Ok(names)
}

/// A loop that gathers a map, into which each round puts `added`.
fn map_fold(
    builder: &mut Builder<'_>,
    range: Id,
    (variable, second): (Arc<str>, Arc<str>),
    filter: Option<Id>,
    added: &[Id],
) -> Expr {
    let init = builder.node(Expr::Map(Vec::new()));
    let condition = builder.literal(Literal::Bool(true));
    let mut args = vec![builder.accumulator()];
    args.extend_from_slice(added);
    let mut step = builder.call(operators::MAP_INSERT, args);
    if let Some(filter) = filter {
        let same = builder.accumulator();
        step = builder.call(operators::CONDITIONAL, vec![filter, step, same]);
    }
    let result = builder.accumulator();
    Expr::Comprehension(Box::new(Comprehension {
        range,
        variable,
        second_variable: Some(second),
        accumulator: ACCUMULATOR.into(),
        init,
        condition,
        step,
        result,
    }))
}
