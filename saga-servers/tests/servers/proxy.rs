//! The proxy breaks connections where it is told to, and nowhere else.

use std::time::Duration;

use saga_servers::{Cut, Direction, FaultProxy, Traffic};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Says everything back, and returns what it heard on its first connection.
async fn echo() -> (String, JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("echo://{}/path", listener.local_addr().expect("an address"));
    let heard = tokio::spawn(async move {
        let mut first = None;
        loop {
            let (mut stream, _) = listener.accept().await.expect("a connection");
            let mut heard = Vec::new();
            let mut piece = [0; 1024];
            while let Ok(length @ 1..) = stream.read(&mut piece).await {
                heard.extend_from_slice(&piece[..length]);
                if stream.write_all(&piece[..length]).await.is_err() {
                    break;
                }
            }
            let heard = first.get_or_insert(heard);
            if heard.ends_with(b"!") {
                return heard.clone();
            }
        }
    });
    (url, heard)
}

async fn connect(proxy: &FaultProxy) -> TcpStream {
    TcpStream::connect(proxy.address()).await.expect("the proxy takes connections")
}

async fn said_back(stream: &mut TcpStream, text: &[u8]) -> Vec<u8> {
    stream.write_all(text).await.expect("it can be written");
    let mut back = vec![0; text.len()];
    stream.read_exact(&mut back).await.expect("it is said back");
    back
}

async fn until_closed(stream: &mut TcpStream) -> Vec<u8> {
    let mut rest = Vec::new();
    let mut piece = [0; 1024];
    while let Ok(length @ 1..) = stream.read(&mut piece).await {
        rest.extend_from_slice(&piece[..length]);
    }
    rest
}

#[tokio::test]
async fn exactly_so_many_bytes_reach_the_server() {
    let (server, heard) = echo().await;
    let proxy = FaultProxy::start(&server).await.expect("a proxy");
    assert!(proxy.url().ends_with("/path"), "{}", proxy.url());
    let mut stream = connect(&proxy).await;
    assert_eq!(said_back(&mut stream, b"hello").await, b"hello");
    proxy.cut(Cut::after(Direction::ToServer, 4));
    stream.write_all(b"one!two").await.expect("it can be written");
    until_closed(&mut stream).await;
    assert_eq!(heard.await.expect("the server heard"), b"helloone!");
    let counts = proxy.counts();
    assert_eq!((counts.bytes_to_server, counts.cuts, counts.connections), (9, 1, 1));
    assert!(!proxy.disarm(), "a cut is used up");
}

/// The server has the question at once; only the answer takes its time.
#[tokio::test]
async fn an_answer_is_held_for_as_long_as_was_said() {
    const DELAY: Duration = Duration::from_secs(3);
    let (server, _heard) = echo().await;
    let proxy = FaultProxy::start(&server).await.expect("a proxy");
    let mut stream = connect(&proxy).await;
    proxy.set_traffic(Traffic::SlowAnswers(DELAY));
    let begin = tokio::time::Instant::now();
    stream.write_all(b"hello").await.expect("it can be written");
    while proxy.counts().bytes_to_server < 5 {
        tokio::task::yield_now().await;
    }
    assert_eq!(proxy.counts().bytes_to_client, 0, "the answer is held");
    let mut back = [0; 5];
    stream.read_exact(&mut back).await.expect("it is said back");
    assert!(back == *b"hello" && begin.elapsed() >= DELAY, "{:?}", begin.elapsed());
}

#[tokio::test]
async fn an_answer_is_withheld_and_the_next_connection_works() {
    let (server, heard) = echo().await;
    let proxy = FaultProxy::start(&server).await.expect("a proxy");
    let mut stream = connect(&proxy).await;
    proxy.cut(Cut::after(Direction::ToClient, 2).seeing(Direction::ToServer, b"COMMIT"));
    assert_eq!(said_back(&mut stream, b"BEGIN").await, b"BEGIN");
    stream.write_all(b"COMMIT!").await.expect("it can be written");
    assert_eq!(until_closed(&mut stream).await, b"CO");
    assert_eq!(heard.await.expect("the server heard"), b"BEGINCOMMIT!", "the server got all of it");

    let (server, _heard) = echo().await;
    let proxy = FaultProxy::start(&server).await.expect("a proxy");
    let mut stream = connect(&proxy).await;
    assert_eq!(said_back(&mut stream, b"a").await, b"a");
    proxy.cut_all();
    assert_eq!(until_closed(&mut stream).await, b"");
    assert_eq!(said_back(&mut connect(&proxy).await, b"b").await, b"b");
}

#[tokio::test]
async fn stalled_bytes_arrive_later() {
    let (server, _heard) = echo().await;
    let proxy = FaultProxy::start(&server).await.expect("a proxy");
    let mut stream = connect(&proxy).await;
    assert_eq!(said_back(&mut stream, b"before").await, b"before");
    proxy.set_traffic(Traffic::StallsIn(Direction::ToClient));
    stream.write_all(b"during").await.expect("it can be written");
    let mut back = [0; 6];
    let early = tokio::time::timeout(Duration::from_millis(100), stream.read_exact(&mut back)).await;
    assert!(early.is_err(), "nothing passes");
    // The other direction is open, so the test ends.
    while proxy.counts().bytes_to_server < 12 {
        tokio::task::yield_now().await;
    }
    proxy.set_traffic(Traffic::Flows);
    stream.read_exact(&mut back).await.expect("what was kept arrives");
    assert_eq!(&back, b"during");
}

#[tokio::test]
async fn vanished_bytes_never_arrive_and_refused_connections_are_closed() {
    let (server, _heard) = echo().await;
    let proxy = FaultProxy::start(&server).await.expect("a proxy");
    let mut stream = connect(&proxy).await;
    assert_eq!(said_back(&mut stream, b"before").await, b"before");
    proxy.set_traffic(Traffic::Vanishes);
    stream.write_all(b"lost").await.expect("nobody is told");
    let closed = tokio::time::timeout(Duration::from_millis(500), until_closed(&mut stream)).await;
    assert!(closed.is_err(), "the connection stays open");
    proxy.set_traffic(Traffic::RefusesNew);
    assert_eq!(until_closed(&mut stream).await, b"", "it lacks bytes, so it is closed");
    assert_eq!(proxy.counts().bytes_to_server, 6);
    assert_eq!(until_closed(&mut connect(&proxy).await).await, b"");
    proxy.set_traffic(Traffic::Flows);
    assert_eq!(said_back(&mut connect(&proxy).await, b"after").await, b"after");
}

#[tokio::test]
async fn an_address_without_a_port_is_refused() {
    let error = FaultProxy::start("postgres://me:secret@host/x").await.expect_err("there is no port");
    assert!(!error.to_string().contains("secret"), "{error}");
}
