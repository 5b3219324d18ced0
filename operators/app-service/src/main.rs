//! The AppService operator as a program.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    kubewright_app_service::operator().main().await
}
