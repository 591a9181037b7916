use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context as _;
use order_rig::archive::ArchivedSaga;
use order_rig::place::{Place as _, PostgresPlace};
use saga_core::store::{
    HistoryKind, RecordedOutcome, Records as _, SagaFilter, SagaWithSteps, Sagas as _, Status, StepRecord,
};
use saga_core::{Key, Tenant};
use saga_postgres::PostgresStore;
use saga_testkit::checker::Standing;
use serde_json::Value;
use sqlx::{Connection as _, PgConnection};

use crate::plan::Role;
use crate::world::Database;

/// How the runtime says that everything stands.
#[derive(Debug, Default)]
pub(crate) struct Stored {
    /// The sagas of the orders.
    pub(crate) orders: BTreeMap<String, Saga>,
    /// The steps of orders that their hosts undid.
    pub(crate) undone_by_hosts: BTreeMap<(String, String), UndoneByHost>,
    /// Sagas that no customer started.
    pub(crate) strangers: u64,
    pub(crate) outbox: u64,
    pub(crate) work: u64,
    pub(crate) forgotten: u64,
    pub(crate) letters: u64,
    /// Sagas that were archived.
    pub(crate) archived: u64,
    /// Messages that arrived, by their ids.
    pub(crate) received: u64,
}

/// How many sagas are asked for at a time.
const PAGE: usize = 1_000;

impl Stored {
    /// Asks the stores of all services, and what was archived in them; `known` are the keys of the orders that were handed in.
    pub(crate) async fn read(databases: &[Database], known: &BTreeSet<&str>) -> anyhow::Result<Self> {
        let mut stored = Self::default();
        for Database { role, url, .. } in databases {
            let store = PostgresStore::connect(url).await?;
            stored.add_archived(*role, PostgresPlace::parse(url)?.archived().await?, known)?;
            stored.add_sagas(*role, &store, known).await?;
            stored.forgotten += store.orphaned(PAGE).await?.len() as u64;
            let mut conn = PgConnection::connect(url).await?;
            for (rows, sum) in [
                ("saga.outbox", &mut stored.outbox),
                ("saga.work", &mut stored.work),
                ("saga.dead_letters WHERE state = 'open'", &mut stored.letters),
                ("saga.received", &mut stored.received),
            ] {
                let statement = format!("SELECT count(*) FROM {rows}");
                let count: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(statement)).fetch_one(&mut conn).await?;
                *sum += count.unsigned_abs();
            }
            conn.close().await?;
        }
        Ok(stored)
    }

    /// What a store has in full takes the place of what was archived of it.
    fn add_archived(&mut self, role: Role, archived: Vec<ArchivedSaga>, known: &BTreeSet<&str>) -> anyhow::Result<()> {
        for saga in ArchivedSaga::latest(archived) {
            let (order, step) = saga.key.split_once('>').unwrap_or((&saga.key, ""));
            self.strangers += u64::from(!known.contains(order));
            self.archived += 1;
            let whole = Saga::of_archived(&saga)?;
            if !step.is_empty() && whole.standing == Standing::Compensated {
                let undone = UndoneByHost::of(whole.records.iter().map(|record| (record.is_undo, record.outcome)));
                self.undone_by_hosts.insert((order.to_owned(), step.to_owned()), undone);
            }
            if role == Role::Orders && known.contains(saga.key.as_str()) {
                self.orders.insert(saga.key.clone(), whole);
            }
        }
        Ok(())
    }

    async fn add_sagas(&mut self, role: Role, store: &PostgresStore, known: &BTreeSet<&str>) -> anyhow::Result<()> {
        let mut after = None;
        loop {
            let filter = SagaFilter { after, limit: PAGE, ..SagaFilter::default() };
            let page = store.list(&filter).await?;
            let Some(last) = page.last() else { return Ok(()) };
            after = Some(last.id);
            for saga in page.iter().filter(|saga| !saga.is_tombstone()) {
                let key = saga.key.as_str();
                // A hosted step is a saga under the key of its order and its step.
                let (order, step) = key.split_once('>').unwrap_or((key, ""));
                self.strangers += u64::from(!known.contains(order));
                if !step.is_empty() && saga.status == Status::Compensated {
                    let records = store.records_of(&Tenant::default(), &saga.key).await?;
                    self.undone_by_hosts.insert((order.to_owned(), step.to_owned()), UndoneByHost::of_stored(&records));
                }
                if role == Role::Orders && known.contains(key) {
                    let key = Key::from_stored(key)?;
                    let whole = store.saga_with_steps(&Tenant::default(), &key).await?;
                    self.orders.insert(key.to_string(), Saga::of(&whole.context("a saga that was listed is gone")?));
                }
            }
        }
    }

    /// How many orders stand so.
    pub(crate) fn count(&self, standing: Standing) -> usize {
        self.orders.values().filter(|saga| saga.standing == standing).count()
    }
}

/// What the host of a step knows of it that the order does not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct UndoneByHost {
    /// A call of it was not answered.
    pub(crate) is_unanswered: bool,
    /// How often it was undone, beyond the first time: a call that ends behind its undo may have taken effect after all, and
    /// the host undoes it again.
    pub(crate) again: usize,
}

impl UndoneByHost {
    fn of_stored(records: &[StepRecord]) -> Self {
        Self::of(records.iter().map(|record| (record.step.undo_round().is_some(), record.outcome)))
    }

    /// Of records, each with whether it is of an undo.
    fn of(records: impl Iterator<Item = (bool, RecordedOutcome)>) -> Self {
        let (mut is_unanswered, mut undone) = (false, 0_usize);
        for (is_undo, outcome) in records {
            is_unanswered |= outcome == RecordedOutcome::Unknown;
            undone += usize::from(is_undo && outcome == RecordedOutcome::Done);
        }
        Self { is_unanswered, again: undone.saturating_sub(1) }
    }
}

/// The saga of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Saga {
    pub(crate) standing: Standing,
    pub(crate) records: Vec<Record>,
}

/// A step record, with whether it came in late.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) step: String,
    pub(crate) is_undo: bool,
    pub(crate) outcome: RecordedOutcome,
    /// The number of the payment or of the shipment that the step returned.
    pub(crate) number: Option<i64>,
    pub(crate) is_late: bool,
    pub(crate) position: u32,
}

impl Saga {
    fn of(stored: &SagaWithSteps) -> Self {
        let standing = standing_of(stored.saga.status.as_str());
        let record = |record: &StepRecord| {
            let output: Option<Value> = record.output.as_deref().and_then(|output| serde_json::from_slice(output).ok());
            Record {
                step: record.step.step().to_owned(),
                is_undo: record.step.undo_round().is_some(),
                outcome: record.outcome,
                number: number_in(output.as_ref()),
                is_late: stored
                    .history
                    .iter()
                    .any(|(_, entry)| entry.kind == HistoryKind::Late && entry.step.as_ref() == Some(&record.step)),
                position: record.position,
            }
        };
        Self { standing, records: stored.records.iter().map(record).collect() }
    }

    fn of_archived(saga: &ArchivedSaga) -> anyhow::Result<Self> {
        let mut records = Vec::new();
        for (position, record) in (0..).zip(&saga.records) {
            records.push(Record {
                step: record.step().to_owned(),
                is_undo: record.is_undo(),
                outcome: record.outcome()?,
                number: number_in(record.output.as_ref()),
                is_late: saga.is_late(record),
                position,
            });
        }
        Ok(Self { standing: standing_of(saga.status()?.as_str()), records })
    }
}

/// The number of the payment or of the shipment in what a step returned.
fn number_in(output: Option<&Value>) -> Option<i64> {
    let number = |name: &str| output?.get(name)?.as_i64();
    number("payment_id").or_else(|| number("shipment_id"))
}

/// How a saga of that status stands.
pub(super) fn standing_of(status: &str) -> Standing {
    match status {
        "completed" => Standing::Completed,
        "compensated" => Standing::Compensated,
        "stuck" => Standing::Stuck,
        _ => Standing::Unfinished,
    }
}
