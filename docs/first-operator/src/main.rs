//! The operator as a program.

#[tokio::main]
async fn main() -> std::process::ExitCode {
    website_operator::operator().main().await
}
