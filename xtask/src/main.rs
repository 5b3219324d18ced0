//! What a contributor runs: `cargo xtask test`, `cargo xtask ci`, `cargo xtask alone`, `cargo xtask acceptance`,
//! `cargo xtask operators`, `cargo xtask projects`, `cargo xtask versions`, `cargo xtask spec`,
//! `cargo xtask golden`, `cargo xtask book`, `cargo xtask parts`, `cargo xtask conformance`, `cargo xtask crds`,
//! `cargo xtask differ`, `cargo xtask bench`, `cargo xtask release`,
//! `cargo xtask dist`, `cargo xtask recording`,
//! `cargo xtask bindings`.
//!
//! It needs a Rust toolchain. What else the tasks need they install into `target/tools`, or they say plainly what they
//! leave out.

mod acceptance;
mod bench;
mod bindings;
mod book;
mod check;
mod conformance;
mod crds;
mod differ;
mod dist;
mod envtest;
#[cfg(test)]
mod features;
#[cfg(test)]
mod fidelity;
mod golden;
mod kubectl;
mod openstack;
mod operators;
mod page;
#[cfg(test)]
mod pages;
mod parts;
mod projects;
mod recording;
mod release;
mod run;
mod running;
mod spec;
mod summary;
mod test;
mod times;
mod tools;
mod versions;
#[cfg(test)]
mod words;

use std::process::ExitCode;

use clap::Parser;

/// What a contributor of Kubewright runs
#[derive(Parser)]
#[command(name = "cargo xtask")]
enum Task {
    /// Run all the tests; installs what they need
    Test(test::Options),
    /// Everything that a change must pass: format, lints, licences and advisories, documentation, tests
    Ci,
    /// Check each crate as it is built by itself, with the features of its dependencies that it asks for
    Alone,
    /// Write docs/acceptance.md: which test shows which promise
    Acceptance,
    /// Run the tests of the packages for other languages, on the debug build
    Bindings,
    /// Build the book of the pages in docs, with mdBook, into target/book
    Book,
    /// Run every operator beside a real Kubernetes, and write that section of docs/real-kubernetes.md
    Operators(operators::Options),
    /// Deploy what the scaffold makes to a real Kubernetes, and write that section of docs/real-kubernetes.md
    Projects(projects::Options),
    /// Test what the scaffold makes with each version of the Kubernetes types that k8s-openapi has
    Versions(versions::Options),
    /// Write what Kubewright knows of a version of Kubernetes, from that version itself, or compare two of them
    Spec(spec::Options),
    /// Hold all recorded conversations with each version of Kubernetes
    Golden,
    /// Hold what the controllers of Kubernetes were recorded to do with parts of it in the place of ours, and ours in the place of theirs
    Parts(parts::Options),
    /// Run the conformance tests of Kubernetes, and write docs/conformance.md
    Conformance(conformance::Options),
    /// Apply a folder of CustomResourceDefinitions twice in both ways, and compare with another cluster if one is given
    Crds(crds::Options),
    /// Compare a release build with a real Kubernetes by conversations made from seeds
    Differ(differ::Options),
    /// Run the first commands of the README and the sample operators, and write the pictures of both in docs
    Recording(recording::Options),
    /// Make what a release offers for download: static programs, images, a Debian package, a bill of materials
    Dist(dist::Options),
    /// Make a release: its version, change log, commit and tag; or check that all crates can be published
    Release(release::Options),
    /// Measure a release build, and compare it with a real Kubernetes if one is given
    Bench(bench::Options),
}

fn main() -> ExitCode {
    let ran = match Task::parse() {
        Task::Test(options) => test::test(&options),
        Task::Ci => check::ci(),
        Task::Alone => check::each_crate_alone(),
        Task::Acceptance => acceptance::write(),
        Task::Bindings => bindings::bindings(),
        Task::Book => book::build(),
        Task::Operators(options) => operators::operators(&options),
        Task::Projects(options) => projects::projects(&options),
        Task::Versions(options) => versions::versions(&options),
        Task::Spec(options) => spec::spec(&options),
        Task::Golden => golden::golden(),
        Task::Parts(options) => parts::parts(&options),
        Task::Conformance(options) => conformance::conformance(&options),
        Task::Crds(options) => crds::crds(&options),
        Task::Differ(options) => differ::differ(&options),
        Task::Recording(options) => recording::record(&options),
        Task::Dist(options) => dist::dist(&options),
        Task::Release(options) => release::release(&options),
        Task::Bench(options) => bench::bench(&options),
    };
    times::print();
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
