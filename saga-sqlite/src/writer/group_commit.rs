//! Runs one group of jobs in one transaction, and recovers when it fails.

use std::collections::VecDeque;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode};

use crate::error::GroupError;
use crate::writer::job::{BoxedJob, Completion, JobFlow};
use crate::writer::queue::Queue;
use crate::writer::session::Session;

/// How often a commit that met a lock is tried again. Each try waits for SQLite's busy timeout itself.
const COMMIT_TRIES: u32 = 5;

/// The limits of a group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) jobs_max: usize,
    pub(crate) time_max: Duration,
}

/// Whether the writer's connection can still be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionHealth {
    Healthy,
    Broken,
}

/// The outcome of a transaction.
enum GroupOutcome {
    Committed,
    /// It was rolled back because of this job. The job has an answer of its own unless there is an error here.
    JobFailed {
        index: usize,
        flow: JobFlow,
        error: Option<GroupError>,
    },
    /// It certainly did not commit, and the job to blame is unknown.
    Refused(GroupError),
    /// It did not begin.
    NotBegun(GroupError),
    /// It may have committed.
    Unknown(GroupError),
}

/// Runs these jobs: together, and in smaller groups if that fails. More jobs that wait in `queue` may join the first
/// transaction.
pub(crate) fn run_groups(
    session: &mut Session,
    jobs: Vec<BoxedJob>,
    queue: &Queue<BoxedJob>,
    limits: Limits,
) -> ConnectionHealth {
    let mut first = Some((queue, limits));
    let mut is_in_doubt = false;
    let mut groups = VecDeque::from([jobs]);
    while let Some(mut jobs) = groups.pop_front() {
        if jobs.is_empty() {
            continue;
        }
        match run_group(session, &mut jobs, first.take()) {
            GroupOutcome::Committed => complete_all(jobs, Completion::Answered),
            GroupOutcome::JobFailed { index, flow, error } => {
                let is_alone = jobs.len() == 1;
                let culprit = jobs.remove(index);
                if flow == JobFlow::Fail || is_alone {
                    culprit.complete(error.as_ref().map_or(Completion::Answered, Completion::Failed));
                } else {
                    groups.push_back(vec![culprit]);
                }
                groups.push_front(jobs);
            }
            GroupOutcome::Refused(error) if jobs.len() == 1 => complete_all(jobs, Completion::Failed(&error)),
            GroupOutcome::Refused(_) => {
                let second = jobs.split_off(jobs.len() / 2);
                groups.push_front(second);
                groups.push_front(jobs);
            }
            GroupOutcome::NotBegun(error) => complete_all(jobs, Completion::Failed(&error)),
            GroupOutcome::Unknown(error) => {
                is_in_doubt = true;
                complete_all(jobs, Completion::Failed(&error));
            }
        }
    }
    let is_broken = is_in_doubt || session.was_tampered || !session.conn.is_autocommit();
    if is_broken { ConnectionHealth::Broken } else { ConnectionHealth::Healthy }
}

fn run_group(
    session: &mut Session,
    jobs: &mut Vec<BoxedJob>,
    more: Option<(&Queue<BoxedJob>, Limits)>,
) -> GroupOutcome {
    if let Err(error) = begin(&session.conn) {
        return GroupOutcome::NotBegun(GroupError::definite(error));
    }
    let began = session.shared.clock.elapsed();
    let mut index = 0;
    loop {
        while let Some(job) = jobs.get_mut(index) {
            let flow = job.run(session);
            // SQLite ends a transaction by itself, for example when the disk is full or a statement is interrupted.
            let was_lost = session.conn.is_autocommit();
            // The authorizer stops foreign SQL before it reaches the commit hook.
            session.was_tampered |= was_lost && session.authorizer.tried_to_end_transaction();
            if flow != JobFlow::Continue || was_lost {
                roll_back(session);
                let error = (flow == JobFlow::Continue).then(GroupError::rolled_back_by_sqlite);
                return GroupOutcome::JobFailed { index, flow, error };
            }
            index += 1;
        }
        let Some((queue, limits)) = more else { break };
        let room = limits.jobs_max.saturating_sub(jobs.len());
        let has_time = session.shared.clock.elapsed().saturating_sub(began) < limits.time_max;
        if room == 0 || !has_time || queue.take_waiting(jobs, room) == 0 {
            break;
        }
    }
    commit(session, jobs.len())
}

fn commit(session: &mut Session, jobs: usize) -> GroupOutcome {
    session.authorizer.allow_commit(true);
    let mut committed = Ok(());
    for _ in 0..COMMIT_TRIES {
        committed = session.conn.execute_batch("COMMIT");
        // A lock leaves the transaction open, so that the commit can be tried again.
        if !committed.as_ref().is_err_and(|error| has_code(error, ErrorCode::DatabaseBusy)) {
            break;
        }
    }
    session.authorizer.allow_commit(false);
    let Err(error) = committed else {
        // A commit is answered only if the next process will open the same file.
        if let Some(error) = session.shared.file_identity.lost_file() {
            return GroupOutcome::NotBegun(error);
        }
        session.definitions.on_commit();
        session.shared.statistics.group(jobs);
        return GroupOutcome::Committed;
    };
    roll_back(session);
    let is_definite = [ErrorCode::DatabaseBusy, ErrorCode::ConstraintViolation];
    if is_definite.iter().any(|code| has_code(&error, *code)) {
        GroupOutcome::Refused(GroupError::definite(error))
    } else {
        if has_code(&error, ErrorCode::DiskFull) {
            // Each attempt fails until there is room; the callers that wait report it once.
            tracing::debug!(%error, count = jobs, "commit failed on a full disk");
        } else {
            tracing::error!(%error, count = jobs, "commit outcome unknown");
        }
        GroupOutcome::Unknown(GroupError::unknown(error))
    }
}

fn begin(conn: &Connection) -> rusqlite::Result<()> {
    conn.prepare_cached("BEGIN IMMEDIATE")?.execute(())?;
    Ok(())
}

fn roll_back(session: &mut Session) {
    session.definitions.on_rollback();
    session.shared.statistics.rollback();
    if session.conn.is_autocommit() {
        return;
    }
    if let Err(error) = session.conn.execute_batch("ROLLBACK") {
        tracing::error!(%error, "rollback failed");
    }
}

fn complete_all(jobs: Vec<BoxedJob>, completion: Completion<'_>) {
    for job in jobs {
        job.complete(completion);
    }
}

fn has_code(error: &rusqlite::Error, code: ErrorCode) -> bool {
    error.sqlite_error_code() == Some(code)
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;
    use saga_core::store::{RetryClass, StoreError, StoreErrorKind};

    use crate::store::store::SqliteStore;

    /// Writes through a job of the store, which returns the store's own errors.
    async fn fill(store: &SqliteStore, id: i64) -> Result<(), StoreError> {
        store
            .call("fill", move |session| {
                let sql =
                    "INSERT INTO saga_history (id, saga, at, kind, attempt, detail) VALUES (?1, 0, 0, 'stuck', 0, ?2)";
                session.conn.prepare_cached(sql)?.execute((id, "x".repeat(3000)))?;
                Ok(())
            })
            .await
    }

    #[tokio::test]
    async fn a_full_file_refuses_what_does_not_fit_and_loses_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("orders.db");
        let store = SqliteStore::open(&path).await.unwrap();
        let pages = store.call("limit", |session| Ok(session.conn.pragma_update(None, "max_page_count", 100)?));
        pages.await.unwrap();
        let mut fitted = 0;
        let error = loop {
            match fill(&store, fitted + 1).await {
                Ok(()) => fitted += 1,
                Err(error) => break error,
            }
        };
        assert!(fitted > 0);
        assert_eq!((error.kind(), error.class()), (StoreErrorKind::Full, RetryClass::Transient), "{error}");
        // Room is made, and it goes on.
        let pages = store.call("limit", |session| Ok(session.conn.pragma_update(None, "max_page_count", 1_000)?));
        pages.await.unwrap();
        fill(&store, fitted + 1).await.unwrap();
        store.close().await;
        let conn = Connection::open(&path).unwrap();
        let kept: i64 = conn.query_row("SELECT count(*) FROM saga_history", (), |row| row.get(0)).unwrap();
        assert_eq!(kept, fitted + 1);
    }

    #[tokio::test]
    async fn a_panic_in_a_job_of_the_store_leaves_the_writer_alive() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(folder.path().join("orders.db")).await.unwrap();
        let error = store.call::<()>("fall", |_| panic!("fell over")).await.unwrap_err();
        assert!(error.to_string().contains("fell over"), "{error}");
        fill(&store, 1).await.unwrap();
    }
}
