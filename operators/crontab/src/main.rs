//! The CronTab operator as a program.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    kubewright_crontab::operator().main().await
}
