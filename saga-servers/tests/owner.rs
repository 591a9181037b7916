//! When the owner of a server dies by SIGKILL, the server and its folder go too.
#![allow(clippy::expect_used, reason = "a test says what it expects by failing")]

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use saga_servers::{PostgresServer, ProcessGroup, Signal};

/// Set, this program is the owner.
const OWNER: &str = "SAGA_SERVERS_TEST_OWNER";

const LOOKS_MAX: u32 = 3_000;

fn main() {
    if std::env::var_os(OWNER).is_some() {
        own();
    }
    let trial = Trial::test("what_a_killed_owner_had_started_ends", what_a_killed_owner_had_started_ends);
    libtest_mimic::run(&Arguments::from_args(), vec![trial]).exit();
}

/// Starts a server and another process, says where they are, and waits to be killed.
fn own() -> ! {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let server = runtime.block_on(PostgresServer::start()).expect("PostgreSQL starts");
    let mut command = Command::new("sh");
    command.args(["-c", "sleep 600 & wait"]);
    let group = ProcessGroup::spawn(command, Signal::Term).expect("a shell runs");
    println!("{} {} {}", server.port(), group.id(), server.folder().display());
    runtime.block_on(std::future::pending())
}

fn what_a_killed_owner_had_started_ends() -> Result<(), Failed> {
    let mut command = Command::new(std::env::current_exe()?);
    let mut owner = command.env(OWNER, "1").stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(owner.stdout.take().ok_or("no output")?).read_line(&mut line)?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let [port, group, folder] = words[..] else { return Err(format!("the owner said {line:?}").into()) };
    let port: u16 = port.parse()?;
    assert!(TcpStream::connect(("127.0.0.1", port)).is_ok(), "the server answers");
    assert!(group_is_there(group) && Path::new(folder).is_dir());

    owner.kill()?;
    owner.wait()?;
    let mut looks = 0;
    while TcpStream::connect(("127.0.0.1", port)).is_ok() || group_is_there(group) || Path::new(folder).exists() {
        looks += 1;
        assert!(looks < LOOKS_MAX, "something of {line:?} is still there");
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn group_is_there(group: &str) -> bool {
    let mut command = Command::new("sh");
    command.args(["-c", "kill -s 0 -- \"-$1\"", "kill", group]).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
