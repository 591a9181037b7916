//! The program `saga-reservations`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use saga_reservations::serve::Serve;

/// Reservations of limited quantities, over gRPC and HTTP.
#[derive(Debug, Parser)]
#[command(name = "saga-reservations", version)]
struct Program {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serves reservations until SIGTERM or SIGINT.
    Serve(Serve),
}

#[tokio::main]
async fn main() -> ExitCode {
    let Program { command: Command::Serve(serve) } = Program::parse();
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    match serve.run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
