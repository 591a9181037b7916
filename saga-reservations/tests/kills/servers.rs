//! The servers: processes with addresses that stay.

use std::net::TcpListener;
use std::process::{Command, Stdio};

use saga_servers::{ProcessGroup, Signal};

/// How far the clock of the last server is ahead.
const CLOCK_AHEAD: &str = "+3600s";

/// The servers.
pub(crate) struct Servers {
    url: String,
    /// Where the holds are, if not in the database.
    redis: Option<String>,
    addresses: Vec<String>,
    processes: Vec<ProcessGroup>,
}

impl Servers {
    /// Starts three servers over a database.
    pub(crate) async fn start(url: &str, redis: Option<String>) -> Self {
        // The ports are free until the servers take them.
        let listeners: Vec<_> = (0..3).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let addresses: Vec<_> = listeners.iter().map(|listener| listener.local_addr().unwrap().to_string()).collect();
        drop(listeners);
        let mut servers = Self { url: url.to_owned(), redis, addresses, processes: Vec::new() };
        for number in 0..3 {
            let process = servers.process(number);
            servers.processes.push(process);
        }
        for number in 0..3 {
            servers.wait_for(number).await;
        }
        servers
    }

    pub(crate) fn addresses(&self) -> Vec<String> {
        self.addresses.iter().map(|address| format!("http://{address}")).collect()
    }

    pub(crate) fn signal(&mut self, number: usize, signal: Signal) {
        self.processes[number].signal(signal).unwrap();
    }

    /// SIGKILL, and a new process.
    pub(crate) async fn kill(&mut self, number: usize) {
        self.processes[number].kill().await.unwrap();
        self.restart(number).await;
    }

    /// Starts those again that ended because PostgreSQL did not answer when they started.
    pub(crate) async fn revive(&mut self) {
        for number in 0..self.processes.len() {
            if self.processes[number].ended().unwrap().is_some() {
                self.restart(number).await;
            }
        }
    }

    async fn restart(&mut self, number: usize) {
        self.processes[number] = self.process(number);
        self.wait_for(number).await;
    }

    fn process(&self, number: usize) -> ProcessGroup {
        let mut command = Command::new(env!("CARGO_BIN_EXE_saga-reservations"));
        command.args(["serve", "--store", &self.url, "--grpc", &self.addresses[number], "--sweep-interval", "50"]);
        if let Some(redis) = &self.redis {
            command.args(["--redis", redis]);
        }
        command.stdout(Stdio::null()).stderr(Stdio::null());
        if number == 2 {
            let library = saga_servers::libfaketime().expect("it is installed");
            command.env("LD_PRELOAD", library).env("FAKETIME", CLOCK_AHEAD).env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        }
        ProcessGroup::spawn(command, Signal::Kill).unwrap()
    }

    /// Waits until a server listens, or has ended.
    async fn wait_for(&mut self, number: usize) {
        while tokio::net::TcpStream::connect(&self.addresses[number]).await.is_err() {
            if self.processes[number].ended().unwrap().is_some() {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }
}
