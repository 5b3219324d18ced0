//! From text to a program.

use std::sync::Arc;

use crate::check;
use crate::cost;
use crate::environment::Declarations;
use crate::error::CompileErrors;
use crate::eval;
use crate::program::Program;
use crate::syntax;

/// Parses, checks, estimates and plans an expression.
pub(crate) fn compile(declarations: &Declarations, expression: &str) -> Result<Program, CompileErrors> {
    let parsed = syntax::parse(expression, declarations.bindings)?;
    let source = Arc::clone(&parsed.source.text);
    let checked = check::check(declarations, parsed).map_err(|mut issues| {
        issues.sort_by_key(|issue| (issue.line, issue.column));
        CompileErrors::Issues { source, issues }
    })?;
    let estimate = cost::estimate(declarations, &checked);
    let plan = eval::plan(&checked).map_err(|error| CompileErrors::Instantiation(error.to_string()))?;
    Ok(Program::new(checked.type_of(checked.parsed.root).clone(), estimate, checked.variables(), plan))
}
