//! Telling other processes what there is to do, by `NOTIFY`, on a connection of its own.
//!
//! Nothing rests on it. A process that is not told polls, and what is told while a connection is being made again is made
//! up for by looking once when it stands.

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

/// What is to be told within this time of the last notification goes out with the next one.
const NOTIFY_INTERVAL: Duration = Duration::from_millis(10);
/// How often a connection on which nothing comes is tried.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// How long to wait after the connection was lost.
const RECONNECT_DELAY: Duration = Duration::from_millis(100);
/// The longest such wait.
const RECONNECT_DELAY_MAX: Duration = Duration::from_secs(10);

/// The connection on which this process tells and hears, made when it is first needed.
pub(crate) struct HintConnection {
    shared: Arc<HintTask>,
    task: Mutex<TaskState>,
}

enum TaskState {
    /// There is none, and none is made.
    Off,
    NotYet,
    Running {
        close: watch::Sender<bool>,
        task: JoinHandle<()>,
    },
}

/// What the task works on.
struct HintTask {
    connect: PgConnectOptions,
    channel: String,
    timeout: Duration,
    board: HintBoard,
    /// What is to be told: a bit for each hint.
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
        self.runs().then(|| self.shared.board.listen())
    }

    /// Whether there is a task; begins one, unless hints are switched off.
    fn runs(&self) -> bool {
        let mut task = self.task.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*task, TaskState::NotYet) {
            // Outside a runtime there is nobody to tell it later, either.
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
            // One that panicked has ended as well.
            drop(task.await);
        }
    }
}

/// Keeps a connection until it is told to end, or the store is gone.
async fn serve(line: Arc<HintTask>, mut closed: watch::Receiver<bool>) {
    let mut failures = 0;
    loop {
        // The listener wants a pool to take its connection from; it is never given back.
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
        tracing::debug!(%error, "hints between processes are interrupted; they poll meanwhile");
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

    /// Tells and hears until the connection is lost.
    async fn exchange(&self, pool: &PgPool, failures: &mut u32) -> Result<Infallible, sqlx::Error> {
        let mut listener = PgListener::connect_with(pool).await?;
        listener.ignore_pool_close_event(true);
        listener.eager_reconnect(false);
        // Nobody waits for a hint to reach the disk.
        listener.execute("SET synchronous_commit = off").await?;
        let own: i32 = sqlx::query_scalar("SELECT pg_backend_pid()").persistent(false).fetch_one(&mut listener).await?;
        listener.listen(&self.channel).await?;
        *failures = 0;
        // What was told before is unknown here: everybody looks once.
        for hint in Hint::ALL {
            self.board.notify(hint);
        }
        let (mut gap, mut trial) = (interval(NOTIFY_INTERVAL), interval(PING_INTERVAL));
        trial.reset();
        gap.set_missed_tick_behavior(MissedTickBehavior::Delay);
        trial.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                received = listener.try_recv() => match received? {
                    // What this process told, it knows.
                    Some(told) if told.process_id() == own.cast_unsigned() => {}
                    Some(told) => self.receive(told.payload()),
                    None => return Err(lost()),
                },
                untold = self.next_pending(&mut gap) => {
                    let told = self.notify(&mut listener, untold).await;
                    told.inspect_err(|_| { self.pending.fetch_or(untold, Ordering::AcqRel); })?;
                }
                _ = trial.tick() => {
                    let tried = tokio::time::timeout(self.timeout, listener.execute("SELECT 1")).await;
                    tried.map_err(|_| lost())??;
                }
            }
        }
    }

    /// What is to be told, as soon as there is something and the last time is long enough ago.
    async fn next_pending(&self, gap: &mut Interval) -> u8 {
        while self.pending.load(Ordering::Acquire) == 0 {
            self.has_pending.notified().await;
        }
        gap.tick().await;
        self.pending.swap(0, Ordering::AcqRel)
    }

    async fn notify(&self, listener: &mut PgListener, untold: u8) -> Result<(), sqlx::Error> {
        let words = Hint::ALL.into_iter().filter(|hint| untold & (1 << *hint as u8) != 0).map(Hint::as_str);
        let words = words.collect::<Vec<_>>().join(" ");
        let notify = sqlx::query("SELECT pg_notify($1, $2)").bind(self.channel.as_str()).bind(words);
        notify.execute(listener).await.map(drop)
    }

    /// Whatever else somebody sends on this channel is nobody's hint.
    fn receive(&self, payload: &str) {
        payload.split(' ').filter_map(Hint::parse).for_each(|hint| self.board.notify(hint));
    }
}

fn lost() -> sqlx::Error {
    sqlx::Error::Io(io::Error::new(io::ErrorKind::ConnectionAborted, "the connection for hints was lost"))
}
