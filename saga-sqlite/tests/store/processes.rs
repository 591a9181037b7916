//! Several processes and one file: who waits, who reads, and what is left of one that was killed.
//!
//! A test starts this binary again with `SAGA_SQLITE_ROLE` set, and filters for [`child`].

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::{assert_integrity, begun, complete, definition, notes, status};
use saga_core::store::{ClaimRequest, Lease, Members as _, RetryClass, Status, StoreErrorKind, Work as _};
use saga_sqlite::{SqliteOptions, SqliteStore};

const ROLE: &str = "SAGA_SQLITE_ROLE";
const PATH: &str = "SAGA_SQLITE_PATH";
const HOUR: Duration = Duration::from_hours(1);

/// Not a test of its own: what the other processes do.
#[tokio::test]
async fn child() {
    let (Ok(role), Ok(path)) = (std::env::var(ROLE), std::env::var(PATH)) else { return };
    match role.as_str() {
        "hold" => hold(path.as_ref()).await,
        "write" => write(path.as_ref()).await,
        "fail" => fail(path.as_ref()).await,
        other => panic!("there is no role {other}"),
    }
}

/// Leases two commands and holds the file until the process ends.
async fn hold(path: &Path) {
    let store = SqliteStore::open(path).await.unwrap();
    for key in ["k-1", "k-2"] {
        begun(&store, key).await;
    }
    claim(&store).await;
    say("ready");
    std::future::pending::<()>().await;
}

/// Completes sagas, says so of each, and never ends.
async fn write(path: &Path) {
    let store = SqliteStore::open(path).await.unwrap();
    crate::support::create_notes(&store).await;
    for number in 0.. {
        let key: &'static str = format!("k-{number}").leak();
        complete(&store, key).await.unwrap();
        say(key);
    }
}

/// Writes until the system refuses to let a file grow, and says what it was told.
async fn fail(path: &Path) {
    let store = SqliteStore::open(path).await.unwrap();
    crate::support::create_notes(&store).await;
    let error = loop {
        let written = store
            .write(|conn| -> Result<(), crate::support::Error> {
                crate::support::write_note(conn, &"x".repeat(2000))?;
                Ok(())
            })
            .await;
        match written {
            Ok(()) => say("written"),
            Err(error) => break error,
        }
    };
    let error = error.downcast::<saga_core::store::StoreError>().unwrap();
    say(&format!("{:?} {:?}", error.kind(), error.class()));
    // What is committed can still be read.
    say(&notes(&store).await.len().to_string());
    std::process::exit(0);
}

async fn claim(store: &SqliteStore) -> Vec<bool> {
    let owner = store.join(HOUR).await.unwrap().member;
    let lease = Lease { owner, ttl: HOUR };
    let request = ClaimRequest { lease, limit: 10, definitions: [definition()].into(), takes_over: true };
    store.claim(request).await.unwrap().work.into_iter().map(|work| work.recovered).collect()
}

fn say(line: &str) {
    println!("\n> {line}");
    std::io::stdout().flush().unwrap();
}

/// Another process in a role.
struct Other {
    process: Child,
    lines: Box<dyn Iterator<Item = String>>,
}

impl Other {
    fn start(role: &str, path: &Path) -> Self {
        Self::run(Command::new(std::env::current_exe().unwrap()), role, path)
    }

    fn run(mut command: Command, role: &str, path: &Path) -> Self {
        let command = command.args(["--exact", "processes::child", "--nocapture", "--test-threads=1"]);
        let mut process = command.env(ROLE, role).env(PATH, path).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
        let said = lines.filter_map(|line| line.strip_prefix("> ").map(str::to_owned));
        Self { process, lines: Box::new(said) }
    }

    fn next(&mut self) -> Option<String> {
        self.lines.next()
    }

    /// SIGKILL, and everything it had said.
    fn kill(mut self) -> Vec<String> {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        self.lines.by_ref().collect()
    }
}

impl Drop for Other {
    /// A test that fails leaves no process behind.
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

#[tokio::test]
async fn a_second_process_waits_until_the_first_is_dead_and_finds_its_leases_free() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("orders.db");
    let mut first = Other::start("hold", &path);
    assert_eq!(first.next().as_deref(), Some("ready"));

    let error =
        crate::support::refused(SqliteStore::open_with(SqliteOptions::new(&path).wait_for_lock(Duration::ZERO)).await);
    assert_eq!((error.kind(), error.class()), (StoreErrorKind::Unavailable, RetryClass::Transient));
    assert!(error.to_string().contains(&format!("process {} works on", first.process.id())), "{error}");

    let reader = SqliteStore::read_only(&path).await.unwrap();
    assert_eq!(status(&reader, "k-1").await, Some(Status::Running));
    drop(reader);

    let (waits, waiting) = std::sync::mpsc::channel();
    let options = SqliteOptions::new(&path).on_wait(move |_| waits.send(()).unwrap());
    let opening = tokio::spawn(SqliteStore::open_with(options));
    tokio::task::spawn_blocking(move || waiting.recv().unwrap()).await.unwrap();
    first.kill();
    let store = opening.await.unwrap().unwrap();
    // Leased for an hour, by an owner that vanished.
    assert_eq!(claim(&store).await, [true, true]);
}

#[tokio::test]
async fn g6_what_was_acknowledged_before_a_kill_is_there_and_the_file_is_sound() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..3 {
        let path = folder.path().join(format!("{round}.db"));
        let mut writer = Other::start("write", &path);
        let wanted = 20 * (round + 1);
        let mut acknowledged: Vec<String> = (0..wanted).filter_map(|_| writer.next()).collect();
        assert_eq!(acknowledged.len(), wanted);
        acknowledged.extend(writer.kill());
        let store = SqliteStore::open(&path).await.unwrap();
        let kept = notes(&store).await;
        for key in &acknowledged {
            assert_eq!(status(&store, key).await, Some(Status::Completed), "{key}");
            assert!(kept.contains(key), "{key}");
        }
        // One more may have been committed and not acknowledged.
        assert!(kept.len() <= acknowledged.len() + 1);
        store.close().await;
        assert_integrity(&path);
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_commit_that_the_disk_refused_is_unknown_and_what_was_acknowledged_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("orders.db");
    // No file may grow beyond 512 kB or so; a write that would fails as it does on a broken disk.
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; ulimit -f 1024; exec \"$0\" \"$@\""]).arg(std::env::current_exe().unwrap());
    let mut other = Other::run(command, "fail", &path);
    let mut said: Vec<String> = Vec::new();
    while let Some(line) = other.next() {
        said.push(line);
    }
    assert!(other.process.wait().unwrap().success(), "{said:?}");
    let written = said.iter().filter(|line| *line == "written").count();
    assert_eq!(said[written], "UnknownCommit Unknown", "{said:?}");
    let readable: usize = said[written + 1].parse().unwrap();
    assert!(readable == written || readable == written + 1, "{readable} of {written}");
    let store = SqliteStore::open(&path).await.unwrap();
    let kept = notes(&store).await.len();
    assert!(kept == written || kept == written + 1, "{kept} of {written}");
    store.close().await;
    assert_integrity(&path);
}
