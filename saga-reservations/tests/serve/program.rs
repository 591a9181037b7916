//! The program as a process.

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// A running `saga-reservations serve`.
pub(crate) struct Program {
    pub(crate) child: Child,
    pub(crate) grpc: String,
    pub(crate) http: String,
    /// Standard output stays open.
    _lines: Lines<BufReader<ChildStdout>>,
}

/// The program with these arguments.
pub(crate) fn program(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_saga-reservations"));
    command.args(arguments).env_remove("SAGA_RESERVATIONS_STORE").kill_on_drop(true);
    command
}

impl Program {
    /// Serves a store on free ports.
    pub(crate) async fn serve(store: &str) -> Self {
        Self::serve_with(store, &[]).await
    }

    /// As [`serve`](Self::serve), with more arguments.
    pub(crate) async fn serve_with(store: &str, more: &[&str]) -> Self {
        let arguments = ["serve", "--store", store, "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"];
        Self::started(program(&[&arguments, more].concat())).await
    }

    /// The program of this command, which serves gRPC and HTTP.
    pub(crate) async fn started(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut addresses = Vec::new();
        for name in ["gRPC", "HTTP"] {
            let line = lines.next_line().await.unwrap().expect("the program ended");
            let address = line.strip_prefix(&format!("{name} listens on ")).unwrap_or_else(|| panic!("{line}"));
            addresses.push(format!("http://{address}"));
        }
        let [grpc, http] = addresses.try_into().unwrap();
        Self { child, grpc, http, _lines: lines }
    }
}
