// Copyright 2026 TakanariKo.
// SPDX-License-Identifier: Apache-2.0

//! The operator as a program.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    foo_bar::operator().main().await
}
