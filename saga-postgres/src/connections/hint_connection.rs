//! Notifies other processes of new work, by `NOTIFY`, on a connection of its own.
//!
//! Nothing depends on it. A process that gets no notification polls, and after a reconnect it looks once for
//! everything.

use std::convert::Infallible;
use std::io;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use saga_core::store::{Hint, HintBoard, Listener};
use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use sqlx::{Executor as _, PgPool};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::options::PostgresOptions;

/// Hints within this time after the last notification are sent together with the next one.
const NOTIFY_INTERVAL: Duration = Duration::from_millis(10);
/// How often a silent connection is tested.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// The first delay before a reconnect.
const RECONNECT_DELAY: Duration = Duration::from_millis(100);
/// The longest such delay.
const RECONNECT_DELAY_MAX: Duration = Duration::from_secs(10);

/// The connection for hints, made when it is first needed.
pub(crate) struct HintConnection {
    shared: Arc<HintTask>,
    task: Mutex<TaskState>,
}

enum TaskState {
    /// Hints are switched off, or the store is closed.
    Off,
    NotYet,
    Running {
        close: watch::Sender<bool>,
        task: JoinHandle<()>,
    },
}

/// The state of the task.
struct HintTask {
    connect: PgConnectOptions,
    channel: String,
    timeout: Duration,
    board: HintBoard,
    /// The hints to send: a bit for each.
    pending: AtomicU8,
    has_pending: Notify,
}

impl HintConnection {
    pub(crate) fn new(options: &PostgresOptions) -> Self {
        let shared = HintTask::new(options);
        let task =
            if options.hints && !options.pgbouncer && !options.read_only { TaskState::NotYet } else { TaskState::Off };
        Self { shared: Arc::new(shared), task: Mutex::new(task) }
    }

    pub(crate) fn tell(&self, hint: Hint) {
        if self.runs() {
            self.shared.pending.fetch_or(1 << hint as u8, Ordering::AcqRel);
            self.shared.has_pending.notify_one();
        }
    }

    pub(crate) fn listen(&self) -> Option<Box<dyn Listener>> {
        // Before the task begins: its first hints are for this listener too.
        let listener = self.shared.board.listen();
        self.runs().then_some(listener)
    }

    /// Whether there is a task; starts one, unless hints are switched off.
    fn runs(&self) -> bool {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*task, TaskState::NotYet) {
            // Without a runtime there is no task to send the hint.
            let Ok(runtime) = tokio::runtime::Handle::try_current() else { return false };
            let (close, closed) = watch::channel(false);
            *task = TaskState::Running { close, task: runtime.spawn(serve(Arc::clone(&self.shared), closed)) };
        }
        matches!(*task, TaskState::Running { .. })
    }

    /// Closes the connection.
    pub(crate) async fn close(&self) {
        let ended = std::mem::replace(&mut *self.task.lock().unwrap_or_else(PoisonError::into_inner), TaskState::Off);
        if let TaskState::Running { close, task } = ended {
            close.send_replace(true);
            // A task that panicked has ended as well.
            drop(task.await);
        }
    }
}

/// Keeps a connection until the store is closed or dropped.
async fn serve(line: Arc<HintTask>, mut closed: watch::Receiver<bool>) {
    let mut failures = 0;
    loop {
        // A listener takes its connection from a pool, and never gives it back.
        let pool = PgPoolOptions::new()
            .max_connections(1)
            .max_lifetime(None)
            .idle_timeout(None)
            .acquire_timeout(line.timeout)
            .connect_lazy_with(line.connect.clone());
        let error = tokio::select! {
            biased;
            _ = closed.wait_for(|closed| *closed) => None,
            Err(error) = line.exchange(&pool, &mut failures) => Some(error),
        };
        pool.close().await;
        let Some(error) = error else { return };
        tracing::debug!(%error, "hint connection lost");
        let pause = RECONNECT_DELAY.saturating_mul(1 << failures.min(10)).min(RECONNECT_DELAY_MAX);
        failures += 1;
        tokio::select! {
            biased;
            _ = closed.wait_for(|closed| *closed) => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

impl HintTask {
    fn new(options: &PostgresOptions) -> Self {
        Self {
            connect: options.connection(),
            channel: options.schema.clone(),
            timeout: options.acquire_timeout,
            board: HintBoard::new(),
            pending: AtomicU8::new(0),
            has_pending: Notify::new(),
        }
    }

    /// Sends and receives hints until the connection is lost.
    async fn exchange(&self, pool: &PgPool, failures: &mut u32) -> Result<Infallible, sqlx::Error> {
        let mut listener = PgListener::connect_with(pool).await?;
        listener.ignore_pool_close_event(true);
        listener.eager_reconnect(false);
        // A hint does not need to be durable.
        listener.execute("SET synchronous_commit = off").await?;
        let own: i32 = sqlx::query_scalar("SELECT pg_backend_pid()").persistent(false).fetch_one(&mut listener).await?;
        listener.listen(&self.channel).await?;
        *failures = 0;
        // Earlier notifications are unknown here: all listeners look once.
        for hint in Hint::ALL {
            self.board.notify(hint);
        }
        let (mut notify_timer, mut ping_timer) = (interval(NOTIFY_INTERVAL), interval(PING_INTERVAL));
        ping_timer.reset();
        notify_timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ping_timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                received = listener.try_recv() => match received? {
                    // This process sent it.
                    Some(notification) if notification.process_id() == own.cast_unsigned() => {}
                    Some(notification) => self.receive(notification.payload()),
                    None => return Err(connection_lost()),
                },
                hints = self.next_pending(&mut notify_timer) => {
                    let sent = self.notify(&mut listener, hints).await;
                    sent.inspect_err(|_| { self.pending.fetch_or(hints, Ordering::AcqRel); })?;
                }
                _ = ping_timer.tick() => {
                    let ping = tokio::time::timeout(self.timeout, listener.execute("SELECT 1")).await;
                    ping.map_err(|_| connection_lost())??;
                }
            }
        }
    }

    /// The hints to send, as soon as there are some and the notification interval has passed.
    async fn next_pending(&self, notify_timer: &mut Interval) -> u8 {
        while self.pending.load(Ordering::Acquire) == 0 {
            self.has_pending.notified().await;
        }
        notify_timer.tick().await;
        self.pending.swap(0, Ordering::AcqRel)
    }

    async fn notify(&self, listener: &mut PgListener, hints: u8) -> Result<(), sqlx::Error> {
        let words = Hint::ALL.into_iter().filter(|hint| hints & (1 << *hint as u8) != 0).map(Hint::as_str);
        let words = words.collect::<Vec<_>>().join(" ");
        let notify = sqlx::query("SELECT pg_notify($1, $2)").bind(self.channel.as_str()).bind(words);
        notify.execute(listener).await.map(drop)
    }

    /// Other payloads on this channel are ignored.
    fn receive(&self, payload: &str) {
        payload.split(' ').filter_map(Hint::parse).for_each(|hint| self.board.notify(hint));
    }
}

fn connection_lost() -> sqlx::Error {
    sqlx::Error::Io(io::Error::new(io::ErrorKind::ConnectionAborted, "the connection for hints was lost"))
}
