//! The operator of `docs/first-operator.md`.
#![expect(missing_docs, reason = "as an author writes it who has just begun")]

pub mod plan;
pub mod reconciler;
pub mod types;

use kubewright::command::Operator;

pub fn operator() -> Operator {
    Operator::new("website", env!("CARGO_PKG_VERSION"))
        .definition::<types::Website>()
        .controller(reconciler::controller)
}
