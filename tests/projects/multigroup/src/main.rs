// Copyright 2026 Example.
// SPDX-License-Identifier: MIT

//! The operator as a program.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    multigroup::operator().main().await
}
