//! The Memcached operator as a program.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    kubewright_memcached::operator().main().await
}
