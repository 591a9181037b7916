//! The floors: bare rusqlite with cached statements, one connection, doing the writes that a saga's steps do.
//!
//! A step's writes are its business row, its step record, the saga's row, the finished work row and the next one. The
//! first step's commit also carries the start of the saga, which favours the floor.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use rusqlite::Connection;

use super::schema::{RUNTIME_SCHEMA, SETTINGS};
use super::workload::{BUSINESS_SCHEMA, IN_FLIGHT, STEPS, STEPS_PER_SAGA, Step, amount, assert_business_rows};
use crate::clock::timed;

/// Any moment will do: the floor decides nothing by the clock.
const NOW_MICROS: i64 = 1_700_000_000_000_000;

const STATEMENT_CACHE: usize = 32;

/// Runs `sagas` sagas on a new file with `steps_per_commit` steps in each commit, and returns the steps a second.
pub(crate) fn run(file: &Path, sagas: u32, steps_per_commit: u32) -> Result<f64> {
    let conn = open(file)?;
    let (done, took) = timed(|| write_all(&conn, sagas, steps_per_commit));
    done.context("bare rusqlite failed")?;
    assert_rows(&conn, sagas)?;
    let steps = sagas * STEPS_PER_SAGA;
    Ok(f64::from(steps) / took.as_secs_f64())
}

fn open(file: &Path) -> Result<Connection> {
    let conn = Connection::open(file).with_context(|| format!("cannot open {}", file.display()))?;
    conn.set_prepared_statement_cache_capacity(STATEMENT_CACHE);
    conn.execute_batch(SETTINGS)?;
    conn.execute_batch(RUNTIME_SCHEMA)?;
    conn.execute_batch(BUSINESS_SCHEMA)?;
    let synchronous: i64 = conn.query_row("PRAGMA synchronous", (), |row| row.get(0))?;
    ensure!(synchronous == 2, "synchronous is {synchronous}, and the benchmark is about FULL (2)");
    Ok(conn)
}

/// The sagas go forward side by side, as many as the engine keeps in flight.
fn write_all(conn: &Connection, sagas: u32, steps_per_commit: u32) -> rusqlite::Result<()> {
    let mut pending = 0;
    for first in (0..sagas).step_by(IN_FLIGHT as usize) {
        for step in &STEPS {
            for order in first..sagas.min(first + IN_FLIGHT) {
                if pending == 0 {
                    conn.prepare_cached("BEGIN IMMEDIATE")?.execute(())?;
                }
                write_step(conn, step, order)?;
                pending += 1;
                if pending == steps_per_commit {
                    conn.prepare_cached("COMMIT")?.execute(())?;
                    pending = 0;
                }
            }
        }
    }
    if pending > 0 {
        conn.prepare_cached("COMMIT")?.execute(())?;
    }
    Ok(())
}

fn write_step(conn: &Connection, step: &Step, order: u32) -> rusqlite::Result<()> {
    let saga = i64::from(order) + 1;
    let key = format!("order-{order}");
    if step.position == 0 {
        start(conn, saga, &key, order)?;
    }
    step.write_business_row(conn, order)?;
    conn.prepare_cached(
        "INSERT INTO records (tenant, key, step, saga, outcome, output, position, attempts, took, at)
         VALUES ('', ?1, ?2, ?3, 'done', ?4, ?5, 1, 40, ?6)",
    )?
    .execute((&key, step.name, saga, output(order), step.position, NOW_MICROS))?;
    let next = STEPS.get(step.position as usize + 1);
    let status = if next.is_some() { "running" } else { "completed" };
    conn.prepare_cached(
        "UPDATE sagas SET status = ?2, version = version + 1, state = ?3 WHERE id = ?1 AND version = ?4",
    )?
    .execute((saga, status, state(step.position + 1), step.position))?;
    conn.prepare_cached("DELETE FROM work WHERE id = ?1 AND epoch = 1")?.execute([work_id(saga, step)])?;
    if let Some(next) = next {
        insert_work(conn, saga, next)?;
    }
    Ok(())
}

fn start(conn: &Connection, saga: i64, key: &str, order: u32) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "INSERT INTO sagas (id, tenant, key, definition, definition_version, status, version, state, input, request_hash, started_at)
         VALUES (?1, '', ?2, 'create-order', 1, 'running', 0, ?3, ?4, ?5, ?6)",
    )?
    .execute((saga, key, state(0), output(order), [7_u8; 32], NOW_MICROS))?;
    insert_work(conn, saga, &STEPS[0])
}

fn insert_work(conn: &Connection, saga: i64, step: &Step) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "INSERT INTO work (id, saga, kind, step, definition, definition_version, due_at, epoch, owner, leased_until, attempts, maybe)
         VALUES (?1, ?2, 'do', ?3, 'create-order', 1, ?4, 1, 1, ?4, 0, 0)",
    )?
    .execute((work_id(saga, step), saga, step.name, NOW_MICROS))?;
    Ok(())
}

fn work_id(saga: i64, step: &Step) -> i64 {
    saga * i64::from(STEPS_PER_SAGA) + i64::from(step.position)
}

fn output(order: u32) -> Vec<u8> {
    format!("{{\"order\":{order},\"amount\":{}}}", amount(order)).into_bytes()
}

/// About what the machine's state takes.
fn state(steps_done: u32) -> Vec<u8> {
    vec![b'x'; 40 + 24 * steps_done as usize]
}

fn assert_rows(conn: &Connection, sagas: u32) -> Result<()> {
    assert_business_rows(conn, sagas)?;
    let count = |query: &str| -> rusqlite::Result<u32> { conn.query_row(query, (), |row| row.get(0)) };
    let completed = count("SELECT count(*) FROM sagas WHERE status = 'completed'")?;
    let records = count("SELECT count(*) FROM records")?;
    let work = count("SELECT count(*) FROM work")?;
    ensure!(completed == sagas, "{completed} of {sagas} sagas are completed");
    ensure!(records == sagas * STEPS_PER_SAGA, "{records} step records for {sagas} sagas");
    ensure!(work == 0, "{work} work rows are left");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::run;

    #[test]
    fn the_floors_leave_every_row() {
        for steps_per_commit in [1, 50] {
            let folder = tempfile::tempdir().expect("a folder can be made");
            let speed = run(&folder.path().join("floor.db"), 130, steps_per_commit).expect("the floor runs");
            assert!(speed > 0.0);
        }
    }
}
