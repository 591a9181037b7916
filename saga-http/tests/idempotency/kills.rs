//! Processes that are killed at every statement of a request. What comes after has one effect, and one response.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};
use std::time::Duration;

use http::StatusCode;
use saga_core::memory::MemoryStore;
use saga_http::Idempotency;
use saga_postgres::PostgresStore;
use saga_servers::{Cut, Direction, FaultProxy, ProcessGroup, Signal};
use saga_sqlite::SqliteStore;

use crate::child::{ADDRESS, Point, STOP_AT};
use crate::support::application::{routes, user};
use crate::support::{Application, Ledger, Order, request, send};

/// A process that serves payments.
struct Server {
    process: ProcessGroup,
    lines: BufReader<ChildStdout>,
    address: SocketAddr,
}

impl Server {
    /// Starts one on the store at this address.
    fn start(store: &str, stop_at: Option<Point>) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["child::serves_until_it_is_killed", "--exact", "--nocapture"]).env(ADDRESS, store);
        if let Some(point) = stop_at {
            command.env(STOP_AT, point.name());
        }
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = ProcessGroup::spawn(command, Signal::Kill).unwrap();
        let mut lines = BufReader::new(process.take_stdout().unwrap());
        let address = line_after(&mut lines, "listening on ").parse().unwrap();
        Self { process, lines, address }
    }

    /// Sends a payment, without waiting for its response.
    fn pay(&self, name: &str) -> TcpStream {
        let body = Order::of(name).text();
        let mut stream = TcpStream::connect(self.address).unwrap();
        let request = format!(
            "POST /payments HTTP/1.1\r\nhost: shop\r\nx-user: ada\r\nidempotency-key: {name}\r\nconnection: close\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }
}

/// What follows this text on the first line that has it.
fn line_after(lines: &mut BufReader<ChildStdout>, text: &str) -> String {
    let mut line = String::new();
    loop {
        line.clear();
        assert_ne!(lines.read_line(&mut line).unwrap(), 0, "the server ended");
        if let Some((_, rest)) = line.split_once(text) {
            return rest.trim().to_owned();
        }
    }
}

/// The same request at the next process: it is answered, and had one effect.
async fn check<S: Ledger>(store: &S, name: &str) {
    let shop = Application::<MemoryStore>::start().await.shop;
    let idempotency = Idempotency::of_store(store.clone()).principal(user).required();
    let app = routes(&idempotency, &shop.on());
    let answer = loop {
        let answer = send(&app, request("/payments", name), Order::of(name).text()).await;
        // The server of the database may not know yet that the process is dead.
        if answer.status != StatusCode::CONFLICT {
            break answer;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!((answer.status, String::from_utf8(answer.body).unwrap()), (StatusCode::OK, format!("1 of {name}")));
    assert_eq!(store.payments(name).await, 1, "{name}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_on_sqlite_may_be_killed_at_every_statement() {
    let (store, folder) = SqliteStore::fresh().await;
    store.close().await;
    let path = folder.path().join("shop.db");
    for point in Point::ALL {
        kill_at(&path, point).await;
        let store = SqliteStore::open(&path).await.unwrap();
        check(&store, point.name()).await;
        store.close().await;
    }
}

async fn kill_at(path: &Path, point: Point) {
    let mut server = Server::start(path.to_str().unwrap(), Some(point));
    let _request = server.pay(point.name());
    assert_eq!(line_after(&mut server.lines, "stopped at "), point.name());
    server.process.kill().await.unwrap();
}

/// How long a request may take until it sends a statement.
const SENT_WITHIN: Duration = Duration::from_mins(1);

/// The statements of a request, by what is in their text when they are sent first, and whether the connection has served a
/// request before.
const STATEMENTS: [(&str, bool); 7] = [
    ("PREPARE saga_lock_", false),
    ("EXECUTE saga_lock_", true),
    ("EXECUTE saga_look_", true),
    ("INSERT INTO payments", false),
    ("SELECT count(*) FROM payments", false),
    ("EXECUTE saga_keep_", true),
    ("COMMIT", true),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_process_on_postgres_may_be_killed_at_every_statement() {
    let (store, database) = PostgresStore::fresh().await;
    for (number, (statement, is_used)) in STATEMENTS.into_iter().enumerate() {
        let name = format!("killed-{number}");
        let proxy = FaultProxy::start(database.url()).await.unwrap();
        let mut server = Server::start(proxy.url(), None);
        if is_used {
            server.pay(&format!("before-{number}")).read_to_string(&mut String::new()).unwrap();
        }
        // The server of the database runs the statement, and its process never hears of it.
        proxy.cut(Cut::after(Direction::ToClient, 0).seeing(Direction::ToServer, statement.as_bytes()));
        let _request = server.pay(&name);
        let is_cut = async {
            while proxy.counts().cuts == 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(SENT_WITHIN, is_cut).await.unwrap_or_else(|_| panic!("no request sends {statement}"));
        server.process.kill().await.unwrap();
        check(&store, &name).await;
    }
}

/// Without a kill the response arrives.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_not_killed_answers() {
    let (store, database) = PostgresStore::fresh().await;
    let server = Server::start(database.url(), None);
    let mut response = String::new();
    server.pay("rent").read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 200 OK") && response.ends_with("1 of rent"), "{response}");
    check(&store, "rent").await;
}
