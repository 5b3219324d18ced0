// SPDX-License-Identifier: MIT

//! The operator as a program.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    imported::operator().main().await
}
