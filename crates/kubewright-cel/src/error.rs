//! What can be wrong with an expression, and what can go wrong while it runs.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// Why an expression does not compile. Displayed as kube-apiserver prints it: each issue with the line that it is in.
///
/// kube-apiserver says `compilation failed: ` before issues, and `program instantiation failed: ` before the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompileErrors {
    /// The expression is wrong.
    Issues {
        /// The expression.
        source: Arc<str>,
        /// What is wrong with it, by position.
        issues: Vec<Issue>,
    },
    /// A constant in it cannot be made (`int('x')`), or a pattern is none.
    Instantiation(String),
}

/// One thing that is wrong with an expression.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Issue {
    /// The line, from 1; -1 if the issue has no place.
    pub line: i64,
    /// The column in code points, from 0; -1 if the issue has no place.
    pub column: i64,
    /// What is wrong.
    pub message: String,
}

/// The most issues that are shown; the rest is counted.
const SHOWN: usize = 100;

/// The longest line that is shown with an issue.
const LONGEST_LINE: usize = 16_384;

impl CompileErrors {
    /// The issues, by position; none if the expression is right, but no program can be made of it.
    #[must_use]
    pub fn issues(&self) -> &[Issue] {
        match self {
            Self::Issues { issues, .. } => issues,
            Self::Instantiation(_) => &[],
        }
    }

    /// What kube-apiserver says of a rule or policy with this expression: `compilation failed: ...` or
    /// `program instantiation failed: ...`.
    #[must_use]
    pub fn detail(&self) -> String {
        match self {
            Self::Issues { .. } => format!("compilation failed: {self}"),
            Self::Instantiation(_) => format!("program instantiation failed: {self}"),
        }
    }
}

impl std::error::Error for CompileErrors {}

impl fmt::Display for CompileErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (source, issues) = match self {
            Self::Issues { source, issues } => (source, issues),
            Self::Instantiation(why) => return f.write_str(why),
        };
        for (index, issue) in issues.iter().take(SHOWN).enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            issue.show(source, f)?;
        }
        match issues.len().checked_sub(SHOWN) {
            Some(more) if more > 0 => write!(f, "\n{more} more errors were truncated"),
            _ => Ok(()),
        }
    }
}

impl Issue {
    /// Writes the issue with its line and a mark below the column. A wide character gets a wide dot, so that marks line up.
    fn show(&self, source: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ERROR: <input>:{}:{}: {}", self.line, self.column + 1, self.message)?;
        let Ok(index) = usize::try_from(self.line - 1) else { return Ok(()) };
        if source.is_empty() {
            return Ok(());
        }
        let Some(line) = source.split('\n').nth(index).filter(|line| line.len() <= LONGEST_LINE) else {
            return Ok(());
        };
        write!(f, "\n | {}\n | ", line.replace('\t', " "))?;
        let mut characters = line.chars();
        for character in characters.by_ref().take(usize::try_from(self.column).unwrap_or(0)) {
            f.write_str(if character.len_utf8() > 1 { "．" } else { "." })?;
        }
        f.write_str(if characters.next().is_some_and(|at| at.len_utf8() > 1) { "＾" } else { "^" })
    }
}

/// Why an evaluation gave no value. Displayed in cel-go's words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvaluationError {
    /// The expression failed.
    Failed(Cow<'static, str>),
    /// It cost more than it may.
    CostLimitExceeded,
}

impl EvaluationError {
    /// An expression that failed with `message`.
    pub(crate) fn new(message: impl Into<Cow<'static, str>>) -> Self {
        Self::Failed(message.into())
    }

    /// A function was called with types that it has no overload for.
    pub(crate) const fn no_such_overload() -> Self {
        Self::Failed(Cow::Borrowed("no such overload"))
    }
}

impl std::error::Error for EvaluationError {}

impl fmt::Display for EvaluationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(message) => f.write_str(message),
            Self::CostLimitExceeded => f.write_str("operation cancelled: actual cost limit exceeded"),
        }
    }
}
