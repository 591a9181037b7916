//! One measurement: what a contender does to a fresh database, and what it cost.

use std::time::Duration;

use anyhow::Result;
use saga_servers::PostgresServer;
use sqlx::{Connection as _, PgConnection, Row as _};

use crate::cpu::Cpu;

/// What a contender says of its run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Done {
    pub(crate) steps: u32,
    pub(crate) took: Duration,
    /// Of a saga, from its start to its outcome; where sagas follow each other, from one end to the next.
    pub(crate) p50_ms: Option<f64>,
    pub(crate) p99_ms: Option<f64>,
    /// Where sagas follow each other, from the end of one to the first step of the next.
    pub(crate) hand_over_p50_ms: Option<f64>,
    /// The longest time in which nothing was committed.
    pub(crate) longest_pause: Option<Duration>,
    /// A crash loses what was done.
    pub(crate) is_volatile: bool,
}

impl Done {
    pub(crate) fn new(steps: u32, took: Duration) -> Self {
        Self { steps, took, ..Self::default() }
    }
}

/// What one run of one contender was and cost.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sample {
    /// The round that it was taken in, from 0 on.
    pub(crate) round: u32,
    pub(crate) done: Done,
    pub(crate) steps_per_s: f64,
    pub(crate) commits_per_step: f64,
    pub(crate) cpu_ms_per_step: f64,
    pub(crate) client_cpu_ms_per_step: f64,
    pub(crate) wal_bytes_per_step: f64,
    /// The most memory that the process held, where that is asked for.
    pub(crate) peak_mb: Option<f64>,
}

/// What the server and the machine count.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    commits: i64,
    wal_bytes: i64,
    cpu: Cpu,
}

impl Reading {
    /// Reads the counters of a database. Its backends must have ended: they tell what they did when they end.
    pub(crate) async fn of(server: &PostgresServer, admin: &mut PgConnection, database: &str) -> Result<Self> {
        let sql = "SELECT xact_commit, (pg_current_wal_insert_lsn() - '0/0')::bigint FROM pg_stat_database WHERE datname = $1";
        let row = sqlx::query(sql).bind(database).fetch_one(admin).await?;
        Ok(Self { commits: row.try_get(0)?, wal_bytes: row.try_get(1)?, cpu: Cpu::read(server.data_folder())? })
    }

    /// What a run cost that lay between two readings.
    pub(crate) fn sample(self, before: Self, done: Done) -> Sample {
        let steps = f64::from(done.steps);
        let cpu = self.cpu.since(before.cpu);
        #[expect(clippy::cast_precision_loss, reason = "a run counts far below 2^52")]
        let per_step = |after: i64, before: i64| (after - before) as f64 / steps;
        Sample {
            round: 0,
            steps_per_s: steps / done.took.as_secs_f64(),
            commits_per_step: per_step(self.commits, before.commits),
            cpu_ms_per_step: (cpu.client + cpu.server).as_secs_f64() * 1e3 / steps,
            client_cpu_ms_per_step: cpu.client.as_secs_f64() * 1e3 / steps,
            wal_bytes_per_step: per_step(self.wal_bytes, before.wal_bytes),
            peak_mb: None,
            done,
        }
    }
}

/// Waits until a database has no connections, so that its counters are whole.
pub(crate) async fn settled(admin: &mut PgConnection, database: &str) -> Result<()> {
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = $1";
    while sqlx::query_scalar::<_, i64>(sql).bind(database).fetch_one(&mut *admin).await? > 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(())
}

/// A connection to the server, beside those that are measured.
pub(crate) async fn admin(server: &PostgresServer) -> Result<PgConnection> {
    Ok(PgConnection::connect(&server.url()).await?)
}
