//! A private server that stands for Amazon SQS, SNS and S3: moto, a mock in Python.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use crate::error::Error;
use crate::folder::Folder;
use crate::pip;
use crate::ports::{STARTS_MAX, free_port};
use crate::server_process::{Kind, ServerProcess};

const SERVER: &str = "moto";
const VERSION: &str = "5.2.5";
/// Not `moto.py`: the program imports a module of that name.
const PROGRAM: &str = "serve.py";
const KIND: Kind = Kind { server: SERVER, log: "moto.log", start_patience: Duration::from_mins(1) };

/// A mock of Amazon SQS, SNS and S3 on a free port, empty, which accepts all credentials. It keeps everything in its memory.
///
/// It obeys groups, their order, visibility, redrive policies and the limits of batches and sizes. It does not refuse characters that
/// SQS does not carry, more than ten attributes, and handles that have expired.
#[derive(Debug)]
pub struct MotoServer {
    process: ServerProcess,
    port: u16,
}

impl MotoServer {
    /// Starts a server and waits until it answers. Where moto is not installed, it is first installed with pip into a folder of its
    /// own, `~/.cache/saga-servers/moto-VERSION`.
    ///
    /// # Errors
    /// There is no Python, moto cannot be installed, or it does not start; the error has the end of its log.
    ///
    /// # Cancel safety
    /// Dropped, what was started ends.
    pub async fn start() -> Result<Self, Error> {
        let python = pip::installed(SERVER, "moto[server]", VERSION).await?.join("bin/python");
        let folder = Folder::temporary(SERVER)?;
        let program = folder.write(PROGRAM, include_str!("moto.py"))?;
        let mut server = Self { process: ServerProcess::new(&KIND, folder), port: 0 };
        for _ in 1..STARTS_MAX {
            server.port = free_port()?;
            if server.run(&python, &program).await? {
                return Ok(server);
            }
        }
        Err(server.process.not_started("each port that was tried was taken meanwhile"))
    }

    /// The address, such as `http://127.0.0.1:5000`.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// What a program that uses an SDK of Amazon finds in its environment: this server, a region and credentials.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let given = [("AWS_REGION", "us-east-1"), ("AWS_ACCESS_KEY_ID", "moto"), ("AWS_SECRET_ACCESS_KEY", "moto")];
        let given = given.into_iter().map(|(name, value)| (name, value.to_owned()));
        given.chain([("AWS_ENDPOINT_URL", self.url())]).collect()
    }

    /// Makes a bucket of S3.
    ///
    /// # Errors
    /// The server does not answer, or refuses the name.
    ///
    /// # Cancel safety
    /// Dropped, the bucket may have been made.
    pub async fn create_bucket(&self, name: &str) -> Result<(), Error> {
        let answer = asked(self.port, &format!("PUT /{name}")).await;
        let answer = answer.map_err(Error::system("ask moto for a bucket"))?;
        if answer.contains(" 200 ") {
            return Ok(());
        }
        Err(Error::Refused { asked: format!("make the bucket {name}"), answer })
    }

    /// How many requests with messages came so far, by their names: `send_message_batch`, `receive_message`, `delete_message_batch`,
    /// `change_message_visibility_batch` and `publish_batch`.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn requests(&self) -> Result<BTreeMap<String, usize>, Error> {
        let mut requests = BTreeMap::new();
        for name in self.log()?.lines().filter_map(|line| line.strip_prefix("request: ")) {
            *requests.entry(name.to_owned()).or_default() += 1;
        }
        Ok(requests)
    }

    /// All that it logged.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn log(&self) -> Result<String, Error> {
        self.process.log()
    }

    /// Ends the server; all that it had is lost.
    ///
    /// # Errors
    /// The signal cannot be sent.
    ///
    /// # Cancel safety
    /// Dropped, the signal was sent all the same.
    pub async fn kill(&mut self) -> Result<(), Error> {
        self.process.kill().await
    }

    /// Whether it is ready; false if its port was taken.
    async fn run(&mut self, python: &Path, program: &Path) -> Result<bool, Error> {
        let mut call = Command::new(python);
        call.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        call.arg("-u").arg(program).args(["-H", "127.0.0.1", "-p", &self.port.to_string()]);
        let port = self.port;
        self.process.run(call, |_| Box::pin(answers(port))).await
    }
}

/// Whether a server answers there that is moto.
async fn answers(port: u16) -> bool {
    asked(port, "GET /moto-api/data.json").await.is_ok_and(|answer| answer.contains(" 200 "))
}

/// The first line of the answer to a request without a body.
async fn asked(port: u16, request: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    // Moto finds the service by the host and by how the request is signed.
    let text = format!("{request} HTTP/1.0\r\nHost: 127.0.0.1\r\nAuthorization: AWS a:b\r\nContent-Length: 0\r\n\r\n");
    stream.write_all(text.as_bytes()).await?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).await?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn it_answers_until_it_is_killed() {
        let mut server = MotoServer::start().await.expect("it starts");
        let address = server.url().strip_prefix("http://").expect("an address").to_owned();
        assert!(TcpStream::connect(&address).is_ok(), "it listens at its address");
        server.kill().await.expect("it can be killed");
        assert!(TcpStream::connect(&address).is_err(), "a killed server answers");
    }
}
