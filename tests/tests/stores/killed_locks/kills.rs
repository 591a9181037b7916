//! Kills processes at random moments, until every saga has ended.

use std::hash::{BuildHasher as _, RandomState};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use saga_core::engine::{SagaAdmin, SemanticLocksFilter};
use saga_postgres::PostgresStore;
use saga_sqlite::SqliteStore;
use saga_testkit::sim::Random;
use saga_tests::{Books, Kept, eventually, within};

use super::bank::Bank;
use super::child::{BANK, ORDERS, STORE};
use super::transfer::{ACCOUNTS, transfer};

const KILLS: u64 = 10;
const SEED: &str = "SAGA_KILLED_LOCKS_SEED";

/// A process that runs the sagas.
struct Process {
    child: Child,
    lines: Box<dyn Iterator<Item = String>>,
}

impl Process {
    fn start(store: &str, bank: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "killed_locks::child::child", "--nocapture", "--test-threads=1"]);
        let mut child = command.env(STORE, store).env(BANK, bank).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let said = lines.filter_map(|line| line.strip_prefix("> ").map(str::to_owned));
        Self { child, lines: Box::new(said) }
    }

    fn says(&mut self, what: &str) {
        assert_eq!(self.lines.next().as_deref(), Some(what));
    }
}

impl Drop for Process {
    /// SIGKILL. A test that fails leaves no process behind.
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// Runs two processes where the store takes so many, and kills one of them again and again, or sometimes all at once.
async fn kill_again_and_again<S: Books>(place: &str, folder: &Path, calls_so_far: impl Fn() -> usize) {
    let seed = std::env::var(SEED).map_or_else(|_| RandomState::new().hash_one(0), |seed| seed.parse().unwrap());
    println!("repeat with {SEED}={seed}");
    let mut random = Random::new(seed);
    let bank = bank_in(folder);
    let mut processes: Vec<_> = (0..S::REPLICAS).map(|_| Process::start(place, &bank)).collect();
    for process in &mut processes {
        process.says("ready");
    }
    for kill in 1..=KILLS {
        // The calls of the bank tell how far the sagas are.
        let moment = kill * u64::from(ORDERS) / (KILLS + 2) + random.below(8);
        let moment = usize::try_from(moment).unwrap();
        eventually("more calls", async || (calls_so_far() >= moment).then_some(())).await;
        if random.below(4) == 0 {
            processes.clear();
        } else {
            let victim = usize::try_from(random.below(processes.len() as u64)).unwrap();
            drop(processes.remove(victim));
        }
        while processes.len() < S::REPLICAS {
            let mut next = Process::start(place, &bank);
            next.says("ready");
            processes.push(next);
        }
    }
    for process in &mut processes {
        process.says("done");
    }
}

fn bank_in(folder: &Path) -> PathBuf {
    folder.join("bank")
}

async fn judge<S: Books>(store: S, bank: &Bank) {
    assert_eq!(store.counter("torn").await, 0, "a saga had an account that another one had, or a token came again");
    for account in 0..ACCOUNTS {
        assert_eq!(store.counter(&format!("inside {account}")).await, 0, "a saga is still inside");
    }
    let (done, turned_round) = (store.counter("done").await, store.counter("turned round").await);
    assert_eq!((done, turned_round), (i64::from(ORDERS / 4 * 3), i64::from(ORDERS / 4)));
    let (calls, wrong) = bank.judge();
    assert!(wrong.is_empty(), "{wrong:#?}");
    println!("{calls} calls for {ORDERS} orders");
    let admin = SagaAdmin::new(store).saga(&transfer::<S>());
    assert_eq!(admin.query().semantic_locks(SemanticLocksFilter::default()).await.unwrap(), [], "locks are left");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s_lock_1_locks_hold_on_sqlite_while_their_process_is_killed() {
    within(async {
        let (store, folder) = <SqliteStore as saga_tests::Shop>::fresh().await;
        store.close().await;
        drop(store);
        let file = folder.path().join("shop.db");
        let bank = Bank::at(&bank_in(folder.path()));
        kill_again_and_again::<SqliteStore>(file.to_str().unwrap(), folder.path(), || bank.calls()).await;
        judge(SqliteStore::open(&file).await.unwrap(), &bank).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s_lock_1_locks_hold_on_postgres_while_one_of_two_processes_is_killed() {
    within(async {
        let (store, kept): (PostgresStore, Kept) = PostgresStore::fresh().await;
        let folder = tempfile::tempdir().unwrap();
        let bank = Bank::at(&bank_in(folder.path()));
        let database = kept.downcast_ref::<saga_servers::shared::Database>().unwrap();
        kill_again_and_again::<PostgresStore>(database.url(), folder.path(), || bank.calls()).await;
        let rows = format!(
            "SELECT (SELECT count(*) FROM {0}.lock_requests) + (SELECT count(*) FROM {0}.locked_entities)",
            store.schema()
        );
        let rows: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(rows)).fetch_one(store.pool()).await.unwrap();
        assert_eq!(rows, 0, "rows of locks are left");
        judge(store, &bank).await;
    })
    .await;
}
