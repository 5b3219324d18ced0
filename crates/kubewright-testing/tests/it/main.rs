//! The promises of the test harness.

mod attribute;
mod copier;
mod failures;
mod mutants;
mod operator;
mod time;
