//! The gateway in front of the broker, to which its clients connect.

use std::collections::HashMap;
use std::io::{Error, ErrorKind};
use std::net::{Ipv4Addr, TcpListener as Listener};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, oneshot};

use super::repairs::{self, Asked, Committed};

/// No message is longer.
const BYTES_MAX: usize = 256 << 20;

/// What the connections share.
#[derive(Debug, Default)]
struct Shared {
    /// The broker's port.
    port: AtomicU16,
    committed: Committed,
    /// Held for reading by each write that is under way.
    writes: Arc<RwLock<()>>,
    /// Whether the broker is about to end. Then no write is confirmed any more.
    is_ending: AtomicBool,
    /// How many bytes clients got that asked for records.
    read_bytes: AtomicU64,
}

/// A gateway on a free port, which ends with this value. It closes the connections of a broker that ends.
#[derive(Debug)]
pub(super) struct Gateway {
    port: u16,
    shared: Arc<Shared>,
    _end: oneshot::Sender<()>,
}

impl Gateway {
    /// Starts a gateway to a broker whose port it is told later.
    pub(super) fn start() -> Result<Self, Error> {
        let listener = Listener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (end, mut ended) = oneshot::channel();
        let shared = Arc::<Shared>::default();
        let accepting = accept(listener, Arc::clone(&shared));
        std::thread::Builder::new().name("tansu gateway".to_owned()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = &mut ended => {}
                    // It ends when the port is taken away, and then all that goes through it.
                    _ = accepting => {}
                }
            });
        })?;
        Ok(Self { port, shared, _end: end })
    }

    pub(super) const fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn read_bytes(&self) -> u64 {
        self.shared.read_bytes.load(Ordering::Relaxed)
    }

    /// The broker is at this port from now on.
    pub(super) fn leads_to(&self, port: u16) {
        self.shared.port.store(port, Ordering::Release);
        self.shared.is_ending.store(false, Ordering::Release);
    }

    /// Waits until no write is under way. None is confirmed from the call on, until the broker is back; none begins while the value that
    /// is returned is there.
    pub(super) async fn at_rest(&self) -> OwnedRwLockWriteGuard<()> {
        self.shared.is_ending.store(true, Ordering::Release);
        Arc::clone(&self.shared.writes).write_owned().await
    }
}

async fn accept(listener: Listener, shared: Arc<Shared>) -> Result<(), Error> {
    let listener = TcpListener::from_std(listener)?;
    loop {
        let (client, _) = listener.accept().await?;
        let shared = Arc::clone(&shared);
        // A connection that breaks is closed on both sides, which is all that a client has to know.
        tokio::spawn(async move { connect(client, &shared).await });
    }
}

async fn connect(client: TcpStream, shared: &Shared) -> Result<(), Error> {
    let broker = to_broker(shared).await?;
    client.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_broker, to_broker) = broker.into_split();
    let open = Mutex::default();
    tokio::select! {
        ended = requests(from_client, to_broker, &open, shared) => ended,
        ended = answers(from_broker, to_client, &open, shared) => ended,
    }
}

async fn to_broker(shared: &Shared) -> Result<TcpStream, Error> {
    let broker = TcpStream::connect((Ipv4Addr::LOCALHOST, shared.port.load(Ordering::Acquire))).await?;
    broker.set_nodelay(true)?;
    Ok(broker)
}

/// The requests that are looked at again when their answers come, by their numbers.
type Open = Mutex<HashMap<i32, Request>>;

#[derive(Debug)]
enum Request {
    Repaired(Asked),
    Read,
    Write { _under_way: OwnedRwLockReadGuard<()> },
}

async fn requests(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, open: &Open, shared: &Shared) -> Result<(), Error> {
    loop {
        let message = receive(&mut from).await?;
        let request = if repairs::is_write(&message) {
            Some(Request::Write { _under_way: Arc::clone(&shared.writes).read_owned().await })
        } else if repairs::is_read(&message) {
            Some(Request::Read)
        } else {
            Asked::read(&message).map(Request::Repaired)
        };
        if let (Some(request), Some(number)) = (request, repairs::number_of(&message, true)) {
            open.lock().unwrap_or_else(PoisonError::into_inner).insert(number, request);
        }
        send(&mut to, &message).await?;
    }
}

async fn answers(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, open: &Open, shared: &Shared) -> Result<(), Error> {
    loop {
        let mut answer = receive(&mut from).await?;
        let number = repairs::number_of(&answer, false);
        let request = number.and_then(|number| open.lock().unwrap_or_else(PoisonError::into_inner).remove(&number));
        match request {
            Some(Request::Write { .. }) if shared.is_ending.load(Ordering::Acquire) => continue,
            Some(Request::Read) => _ = shared.read_bytes.fetch_add(answer.len() as u64, Ordering::Relaxed),
            Some(Request::Repaired(asked)) => repair(&mut answer, asked, shared).await?,
            _ => {}
        }
        send(&mut to, &answer).await?;
    }
}

async fn repair(answer: &mut Vec<u8>, asked: Asked, shared: &Shared) -> Result<(), Error> {
    let committed = &shared.committed;
    let unreadable = || Error::new(ErrorKind::InvalidData, "an answer is not as long as it says");
    match asked {
        Asked::Versions { version } => repairs::limit_versions(answer, version).ok_or_else(unreadable),
        Asked::Commit { group, metadata } => repairs::note(answer, committed, &group, &metadata).ok_or_else(unreadable),
        Asked::Offsets { group } => {
            *answer = repairs::with_metadata(answer, committed, &group).ok_or_else(unreadable)?;
            Ok(())
        }
        Asked::Ends(asked) => {
            for repairs::End { place, offset, position } in repairs::ends(answer, &asked).ok_or_else(unreadable)? {
                let mut broker = to_broker(shared).await?;
                send(&mut broker, &repairs::fetch(&place, offset)).await?;
                let end = repairs::end_in(&receive(&mut broker).await?).ok_or_else(unreadable)?;
                answer[position..position + 8].copy_from_slice(&end.max(offset).to_be_bytes());
            }
            Ok(())
        }
    }
}

async fn receive(from: &mut (impl tokio::io::AsyncRead + Unpin)) -> Result<Vec<u8>, Error> {
    let length = usize::try_from(from.read_i32().await?).unwrap_or(usize::MAX);
    if length > BYTES_MAX {
        return Err(Error::new(ErrorKind::InvalidData, "this is no message of Kafka's protocol"));
    }
    let mut message = vec![0; length];
    from.read_exact(&mut message).await?;
    Ok(message)
}

async fn send(to: &mut (impl tokio::io::AsyncWrite + Unpin), message: &[u8]) -> Result<(), Error> {
    let length = i32::try_from(message.len()).map_err(|_| ErrorKind::InvalidData)?;
    let mut bytes = Vec::with_capacity(message.len() + 4);
    bytes.extend(length.to_be_bytes());
    bytes.extend(message);
    to.write_all(&bytes).await
}
