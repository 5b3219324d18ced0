//! From text to a syntax tree, with the errors that cel-go's parser reports.

pub(crate) mod ast;
mod balance;
mod grammar;
mod lexer;
mod literals;
mod macros;
mod parser;
mod recovery;
mod two_variables;

pub(crate) use parser::{Parsed, parse};
