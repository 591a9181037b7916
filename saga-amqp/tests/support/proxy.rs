//! A TCP proxy that cuts connections at a byte.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Which way bytes go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    ToBroker,
    FromBroker,
}

/// Stands between a transport and the broker.
pub(crate) struct Proxy {
    address: SocketAddr,
    control: Arc<Control>,
    task: JoinHandle<()>,
}

struct Control {
    /// How many bytes may still go each way before a cut; negative: any number.
    left: [AtomicI64; 2],
    held: [AtomicBool; 2],
    cuts: AtomicUsize,
    /// Which connections there are is told by a number: all with a lower one are cut.
    cut_below: watch::Sender<usize>,
    opened: Mutex<usize>,
}

impl Proxy {
    /// A proxy to the broker of this URL.
    pub(crate) async fn start(url: &str) -> Self {
        let broker = url.split(['@', '/']).nth(3).unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let control = Arc::new(Control {
            left: [AtomicI64::new(-1), AtomicI64::new(-1)],
            held: [AtomicBool::new(false), AtomicBool::new(false)],
            cuts: AtomicUsize::new(0),
            cut_below: watch::channel(0).0,
            opened: Mutex::new(0),
        });
        let task = tokio::spawn(accept(listener, broker, Arc::clone(&control)));
        Self { address, control, task }
    }

    /// The broker's URL through the proxy.
    pub(crate) fn url(&self, url: &str) -> String {
        let broker = url.split(['@', '/']).nth(3).unwrap();
        url.replace(broker, &self.address.to_string())
    }

    /// Lets so many more bytes through this way, and then cuts the connection that they were on.
    pub(crate) fn cut_after(&self, bytes: i64, way: Way) {
        self.control.left[way as usize].store(bytes, Ordering::SeqCst);
    }

    /// Cuts every connection.
    pub(crate) fn cut_all(&self) {
        let opened = *self.control.opened.lock().unwrap();
        self.control.cut_below.send_replace(opened);
    }

    /// Lets nothing through this way any more.
    pub(crate) fn hold(&self, way: Way) {
        self.control.held[way as usize].store(true, Ordering::SeqCst);
    }

    /// Ends the proxy: its connections are cut, and its address is nobody's.
    pub(crate) fn stop(&self) {
        self.task.abort();
        self.cut_all();
    }

    /// How many cuts there were at a byte.
    pub(crate) fn cuts(&self) -> usize {
        self.control.cuts.load(Ordering::SeqCst)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, broker: String, control: Arc<Control>) {
    while let Ok((client, _)) = listener.accept().await {
        let number = {
            let mut opened = control.opened.lock().unwrap();
            *opened += 1;
            *opened
        };
        tokio::spawn(forward(client, broker.clone(), Arc::clone(&control), number));
    }
}

async fn forward(client: TcpStream, broker: String, control: Arc<Control>, number: usize) {
    let Ok(broker) = TcpStream::connect(broker).await else { return };
    client.set_nodelay(true).unwrap();
    broker.set_nodelay(true).unwrap();
    let (client_read, client_write) = client.into_split();
    let (broker_read, broker_write) = broker.into_split();
    let mut cut_below = control.cut_below.subscribe();
    tokio::select! {
        () = pump(client_read, broker_write, &control, Way::ToBroker) => {}
        () = pump(broker_read, client_write, &control, Way::FromBroker) => {}
        _ = cut_below.wait_for(|below| *below >= number) => {}
    }
}

/// Carries bytes until one side ends or a cut is due.
async fn pump(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    control: &Control,
    way: Way,
) {
    let mut bytes = vec![0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        if control.held[way as usize].load(Ordering::SeqCst) {
            continue;
        }
        let left = &control.left[way as usize];
        let before = left.load(Ordering::SeqCst);
        let arrived = i64::try_from(count).unwrap();
        let is_cut = before >= 0 && arrived >= before;
        let passed = if is_cut { usize::try_from(before).unwrap() } else { count };
        if to.write_all(&bytes[..passed]).await.is_err() {
            return;
        }
        if is_cut {
            left.store(-1, Ordering::SeqCst);
            control.cuts.fetch_add(1, Ordering::SeqCst);
            return;
        }
        if before >= 0 {
            left.store(before - arrived, Ordering::SeqCst);
        }
    }
}
