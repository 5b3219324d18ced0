//! The promises of the test harness.

mod attribute;
mod copier;
mod failures;
mod mutants;
mod guide;
mod operator;
mod time;
