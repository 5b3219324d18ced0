//! The promises of the test harness.

mod attribute;
mod copier;
mod examples;
mod failing;
mod failures;
mod guide;
mod ledger;
mod mutants;
mod operator;
mod time;
mod twins;
