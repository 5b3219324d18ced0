//! What the SDK promises, on the embedded control plane in virtual time; or, where `KUBEWRIGHT_TEST_KUBECONFIG` names one,
//! on a real Kubernetes (`cargo xtask test --real KUBECONFIG`).

mod alike;
mod applies;
mod cache;
mod children;
mod client;
mod clusters;
mod days;
mod errors;
mod events;
mod failures;
mod guards;
mod harness;
mod kube_rs;
mod lab;
mod leader;
mod ledger;
mod lines;
mod link;
mod namespaces;

mod operations;
mod own;
mod parts;
mod probes;
mod reconciles;
mod scopes;
mod shard;
mod shutdown;
mod sources;
mod storms;
mod stream;
mod why;
mod workers;
mod writes;
