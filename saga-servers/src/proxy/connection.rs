//! One connection through a proxy.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpStream, ToSocketAddrs};
use tokio::sync::watch;
use tokio::time::sleep;

use super::cut::{Cut, Direction, Fate, Meter};
use super::traffic::{Counts, Traffic};

const PIECE_BYTES: usize = 16 * 1024;

/// What a proxy and its connections share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) traffic: watch::Sender<Traffic>,
    /// Counts up each time that all open connections are to be closed.
    pub(super) generation: watch::Sender<u64>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) armed: Option<Cut>,
    pub(super) counts: Counts,
}

impl Shared {
    pub(super) fn new() -> Self {
        Self { traffic: watch::Sender::default(), generation: watch::Sender::default(), state: Mutex::default() }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Passes bytes both ways until one side closes, the connection is cut, or all are closed.
pub(super) async fn serve(client: TcpStream, server: impl ToSocketAddrs, shared: Arc<Shared>) {
    let mut generation = shared.generation.subscribe();
    let mut traffic = shared.traffic.subscribe();
    let passing = async {
        let Ok(server) = TcpStream::connect(server).await else { return };
        // A piece is passed on when it comes, whatever its size: that is what makes byte counts mean something.
        let _ = (client.set_nodelay(true), server.set_nodelay(true));
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        let meter = Mutex::default();
        let forth = pass(Direction::ToServer, from_client, to_server, &shared, &meter);
        let back = pass(Direction::ToClient, from_server, to_client, &shared, &meter);
        tokio::pin!(forth, back);
        // One side that is done sending may still be waiting for the rest of the answer.
        let (first, other): (End, _) = tokio::select! {
            end = &mut forth => (end, &mut back as &mut (dyn Future<Output = End> + Unpin + Send)),
            end = &mut back => (end, &mut forth as _),
        };
        if first == End::Finished {
            other.await;
        }
    };
    tokio::select! {
        () = passing => {}
        _ = generation.changed() => {}
        () = lost_bytes(&mut traffic) => {}
    }
}

/// How one direction ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// The sender said that it has no more to say.
    Finished,
    /// The connection is of no more use.
    Broken,
}

async fn pass(
    direction: Direction,
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    shared: &Shared,
    meter: &Mutex<Meter>,
) -> End {
    let mut traffic = shared.traffic.subscribe();
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let Ok(length) = from.read(&mut piece).await else { return End::Broken };
        if traffic.wait_for(|traffic| !stalls(*traffic, direction)).await.is_err() {
            return End::Broken;
        }
        let now = *traffic.borrow();
        if let (Traffic::SlowAnswers(delay), Direction::ToClient) = (now, direction) {
            sleep(delay).await;
        }
        if now == Traffic::Vanishes {
            if length == 0 {
                std::future::pending::<()>().await;
            }
            continue;
        }
        if length == 0 {
            let _ = to.shutdown().await;
            return End::Finished;
        }
        let fate = {
            let mut state = shared.state();
            let mut meter = meter.lock().unwrap_or_else(PoisonError::into_inner);
            let fate = meter.judge(direction, &piece[..length], &mut state.armed);
            state.counts.cuts += u64::from(fate != Fate::Pass);
            // Counted before the bytes go on, so that a client that has an answer finds its question counted.
            state.counts.round_trips += u64::from(meter.begins_round_trip(direction));
            fate
        };
        let passed = if let Fate::CutAfter(bytes) = fate { bytes } else { length };
        if to.write_all(&piece[..passed]).await.is_err() {
            return End::Broken;
        }
        count(shared, direction, passed as u64);
        if fate != Fate::Pass {
            return End::Broken;
        }
    }
}

/// Ends when traffic that vanished for this connection flows again.
async fn lost_bytes(traffic: &mut watch::Receiver<Traffic>) {
    let vanishes = |traffic: &Traffic| *traffic == Traffic::Vanishes;
    let lost = traffic.wait_for(vanishes).await.is_ok();
    if !lost || traffic.wait_for(|traffic| !vanishes(traffic)).await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn stalls(traffic: Traffic, direction: Direction) -> bool {
    traffic == Traffic::Stalls || traffic == Traffic::StallsIn(direction)
}

fn count(shared: &Shared, direction: Direction, bytes: u64) {
    let counts = &mut shared.state().counts;
    match direction {
        Direction::ToServer => counts.bytes_to_server += bytes,
        Direction::ToClient => counts.bytes_to_client += bytes,
    }
}
