//! The service in Python.

use std::process::Stdio;

use saga_amqp::AmqpTransport;
use saga_servers::shared::{Vhost, vhost};
use saga_tests::eventually;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// It ends with this value.
pub(crate) struct Participant {
    _process: Child,
    tasks: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
}

impl Participant {
    pub(crate) async fn start(vhost: &Vhost, service: &str) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/wire/participant.py");
        let mut command = Command::new(saga_servers::python_with_pika().unwrap());
        command.arg(script).args([vhost.url(), service]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.kill_on_drop(true).spawn().unwrap();
        let tasks = process.stdin.take().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap()).lines();
        Self { _process: process, tasks, answers }
    }

    /// Has it do a task: a list of the task's name and its arguments.
    pub(crate) async fn run(&mut self, task: Value) -> Value {
        self.tasks.write_all(format!("{task}\n").as_bytes()).await.unwrap();
        let answer = self.answers.next_line().await.unwrap();
        let answer = answer.unwrap_or_else(|| panic!("it ended with {task}, and said why on standard error"));
        serde_json::from_str(&answer).unwrap()
    }
}

/// A virtual host, and the service in Python on it, whose queue is there and takes these events.
pub(crate) async fn start(service: &str, topics: &[&str]) -> (Vhost, Participant) {
    let vhost = vhost("wire").await.unwrap();
    let mut participant = Participant::start(&vhost, service).await;
    participant.run(serde_json::json!(["declare", topics])).await;
    (vhost, participant)
}

/// Waits until what is addressed to the services of this transport arrives.
pub(crate) async fn receives(transport: &AmqpTransport) {
    let look = async || {
        let health = transport.health();
        (health.is_healthy() && !health.subscriptions.is_empty()).then_some(())
    };
    eventually("the queue of a service", look).await;
}
