//! kube-apiserver and etcd for envtest: called by one of these names this is that program, and by its own it puts itself where
//! suites look for them.

use std::{env, io::Write, process::ExitCode};

use clap::Parser;
use kubewright_envtest::{
    called_as,
    install::{self, EnvtestCommand},
    run,
};
use mimalloc::MiMalloc;

/// What a server allocates is small, short-lived and freed on other threads: the C library's allocator takes a third of
/// the time of a write.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// kube-apiserver and etcd in memory, for suites that start the two
#[derive(Debug, Parser)]
#[command(name = "kubewright-envtest", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: EnvtestCommand,
}

fn main() -> ExitCode {
    if let Some((program, arguments)) = called_as(env::args_os()) {
        return run(program, arguments, None);
    }
    match install::run(&Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
