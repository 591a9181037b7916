//! The floors: bare rusqlite with cached statements, one connection, doing the writes that the store does for a step,
//! and none of its reads.
//!
//! A step's writes are its business row, its step record, the saga's progress, the finished work row and the next one.
//! The first step's commit also carries the start of the saga, which favours the floor.
//!
//! Of a saga that is whole in one commit, the floor writes what the store does: no work rows, and the progress once.

use std::path::Path;

use anyhow::{Context as _, Result};
use rusqlite::Connection;

use super::file::{assert_rows, open};
use super::workload::{STEPS, STEPS_PER_SAGA, Step, amount};
use crate::clock::Stopwatch;

/// Any moment will do: the floor decides nothing by the clock.
const NOW_MICROS: i64 = 1_700_000_000_000_000;

/// The first saga's id, in the range in which the store begins: a larger number takes more bytes.
const FIRST_ID: i64 = 1 << 24;

/// Runs `sagas` sagas on a new file with a commit for each step, and returns the steps a second.
pub(crate) fn run_by_step(file: &Path, sagas: u32) -> Result<f64> {
    run(file, sagas, |conn| write_steps(conn, sagas))
}

/// The same with `per_commit` whole sagas in each commit.
pub(crate) fn run_by_saga(file: &Path, sagas: u32, per_commit: u32) -> Result<f64> {
    run(file, sagas, |conn| write_sagas(conn, sagas, per_commit))
}

fn run(file: &Path, sagas: u32, write_all: impl FnOnce(&Connection) -> rusqlite::Result<()>) -> Result<f64> {
    let conn = open(file)?;
    conn.execute("INSERT INTO saga_definitions (id, name, version) VALUES (1, 'create-order', 1)", ())?;
    let watch = Stopwatch::started();
    write_all(&conn).context("bare rusqlite failed")?;
    let took = watch.elapsed();
    drop(conn);
    assert_rows(file, sagas)?;
    Ok(f64::from(sagas * STEPS_PER_SAGA) / took.as_secs_f64())
}

/// How many sagas go forward side by side.
const SIDE_BY_SIDE: u32 = 64;

/// The sagas go forward side by side, as the engine's do.
fn write_steps(conn: &Connection, sagas: u32) -> rusqlite::Result<()> {
    for first in (0..sagas).step_by(SIDE_BY_SIDE as usize) {
        for step in &STEPS {
            for order in first..sagas.min(first + SIDE_BY_SIDE) {
                commit(conn, || write_step(conn, step, order))?;
            }
        }
    }
    Ok(())
}

fn write_sagas(conn: &Connection, sagas: u32, per_commit: u32) -> rusqlite::Result<()> {
    for first in (0..sagas).step_by(per_commit as usize) {
        let mut orders = first..sagas.min(first + per_commit);
        commit(conn, || orders.try_for_each(|order| write_saga(conn, order)))?;
    }
    Ok(())
}

fn commit(conn: &Connection, write: impl FnOnce() -> rusqlite::Result<()>) -> rusqlite::Result<()> {
    conn.prepare_cached("BEGIN IMMEDIATE")?.execute(())?;
    write()?;
    conn.prepare_cached("COMMIT")?.execute(())?;
    Ok(())
}

fn write_saga(conn: &Connection, order: u32) -> rusqlite::Result<()> {
    let (saga, key) = (saga_id(order), format!("order-{order}"));
    insert_saga(conn, saga, &key, order)?;
    for step in &STEPS {
        step.write_business_row(conn, order)?;
        insert_record(conn, saga, &key, step, order)?;
    }
    conn.prepare_cached(
        "INSERT INTO saga_progress (id, status, version, state, advanced_at, ended_at) \
         VALUES (?1, 'completed', ?2, ?3, ?4, ?4)",
    )?
    .execute((saga, STEPS_PER_SAGA + 1, state(STEPS_PER_SAGA), NOW_MICROS))?;
    Ok(())
}

fn write_step(conn: &Connection, step: &Step, order: u32) -> rusqlite::Result<()> {
    let (saga, key) = (saga_id(order), format!("order-{order}"));
    if step.position == 0 {
        start(conn, saga, &key, order)?;
    }
    step.write_business_row(conn, order)?;
    conn.prepare_cached("DELETE FROM saga_work WHERE id = ?1 AND epoch = 1")?.execute([work_id(saga, step)])?;
    insert_record(conn, saga, &key, step, order)?;
    let next = STEPS.get(step.position as usize + 1);
    advance(conn, saga, step.position, next.is_none())?;
    next.map_or(Ok(()), |next| insert_work(conn, saga, &key, next))
}

fn start(conn: &Connection, saga: i64, key: &str, order: u32) -> rusqlite::Result<()> {
    insert_saga(conn, saga, key, order)?;
    conn.prepare_cached(
        "INSERT INTO saga_progress (id, status, version, state, advanced_at) VALUES (?1, 'running', 1, ?2, ?3)",
    )?
    .execute((saga, state(0), NOW_MICROS))?;
    insert_work(conn, saga, key, &STEPS[0])
}

fn insert_saga(conn: &Connection, saga: i64, key: &str, order: u32) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "INSERT INTO saga_sagas (id, tenant, key, definition, digest, input, input_hash, started_at) \
         VALUES (?1, '', ?2, 1, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING",
    )?
    .execute((saga, key, [7_u8; 32], payload(order), [7_u8; 33], NOW_MICROS))?;
    Ok(())
}

fn insert_record(conn: &Connection, saga: i64, key: &str, step: &Step, order: u32) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "INSERT INTO saga_records (tenant, key, step, saga, outcome, position, attempts, recorded_at, took_micros, \
         output) VALUES ('', ?1, ?2, ?3, 'done', ?4, 1, ?5, 40, ?6) ON CONFLICT DO NOTHING",
    )?
    .execute((key, step.name, saga, step.position + 1, NOW_MICROS, payload(order)))?;
    Ok(())
}

fn advance(conn: &Connection, saga: i64, position: u32, ends: bool) -> rusqlite::Result<()> {
    let sql = if ends {
        "UPDATE saga_progress SET version = version + 1, state = ?3, advanced_at = ?4, status = 'completed', \
         ended_at = ?4 WHERE id = ?1 AND version = ?2"
    } else {
        "UPDATE saga_progress SET version = version + 1, state = ?3, advanced_at = ?4 WHERE id = ?1 AND version = ?2"
    };
    conn.prepare_cached(sql)?.execute((saga, position + 1, state(position + 1), NOW_MICROS))?;
    Ok(())
}

fn insert_work(conn: &Connection, saga: i64, key: &str, step: &Step) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "INSERT INTO saga_work (id, saga, tenant, key, kind, step, definition, epoch, due_at, owner, leased_until, \
         attempts, maybe, suspect) VALUES (?1, ?2, '', ?3, 'do', ?4, 1, 1, ?5, 1, ?5, 0, 0, 0)",
    )?
    .execute((work_id(saga, step), saga, key, step.name, NOW_MICROS))?;
    Ok(())
}

/// A saga and its work rows take their ids from one counter.
fn saga_id(order: u32) -> i64 {
    FIRST_ID + i64::from(order) * i64::from(STEPS_PER_SAGA + 1)
}

fn work_id(saga: i64, step: &Step) -> i64 {
    saga + 1 + i64::from(step.position)
}

/// The input of the saga, and the output of each step: both are the order.
fn payload(order: u32) -> Vec<u8> {
    format!("{{\"number\":{order},\"amount\":{}}}", amount(order)).into_bytes()
}

/// As many bytes as the machine's state of a saga of three steps takes.
fn state(steps_done: u32) -> Vec<u8> {
    vec![b'x'; 45 + 8 * steps_done as usize]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::file::create;

    const SAGAS: u32 = 40;

    /// The statements of a saga that is whole in one commit: its row, its progress, three records and three rows of the business.
    const WRITES_PER_SAGA: u32 = 8;

    #[tokio::test]
    async fn both_floors_leave_whole_sagas() {
        let folder = tempfile::tempdir().unwrap();
        let [by_step, by_saga] = ["by-step.db", "by-saga.db"].map(|name| folder.path().join(name));
        create(&by_step).await.unwrap();
        create(&by_saga).await.unwrap();
        // Both count the rows that they leave.
        run_by_step(&by_step, SAGAS).unwrap();
        run_by_saga(&by_saga, SAGAS, 16).unwrap();
    }

    #[tokio::test]
    async fn a_whole_saga_is_no_more_than_what_is_left_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sagas.db");
        create(&file).await.unwrap();
        let conn = open(&file).unwrap();
        write_sagas(&conn, SAGAS, 16).unwrap();
        let writes: u32 = conn.query_row("SELECT total_changes()", (), |row| row.get(0)).unwrap();
        assert_eq!(writes, SAGAS * WRITES_PER_SAGA);
    }
}
