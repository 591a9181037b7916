//! The floors: bare rusqlite with cached statements, one connection, doing the writes that the store does for a step,
//! and none of its reads.
//!
//! A step's writes are its business row, its step record, the saga's progress, the finished work row and the next one.
//! The first step's commit also carries the start of the saga, which favours the floor.

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

/// Runs `sagas` sagas on a new file with `steps_per_commit` steps in each commit, and returns the steps a second.
pub(crate) fn run(file: &Path, sagas: u32, steps_per_commit: u32) -> Result<f64> {
    let conn = open(file)?;
    conn.execute("INSERT INTO saga_definitions (id, name, version) VALUES (1, 'create-order', 1)", ())?;
    let watch = Stopwatch::started();
    write_all(&conn, sagas, steps_per_commit).context("bare rusqlite failed")?;
    let took = watch.elapsed();
    drop(conn);
    assert_rows(file, sagas)?;
    Ok(f64::from(sagas * STEPS_PER_SAGA) / took.as_secs_f64())
}

/// How many sagas go forward side by side.
const SIDE_BY_SIDE: u32 = 64;

/// The sagas go forward side by side, as the engine's do.
fn write_all(conn: &Connection, sagas: u32, steps_per_commit: u32) -> rusqlite::Result<()> {
    let mut pending = 0;
    for first in (0..sagas).step_by(SIDE_BY_SIDE as usize) {
        for step in &STEPS {
            for order in first..sagas.min(first + SIDE_BY_SIDE) {
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
    let (saga, key) = (saga_id(order), format!("order-{order}"));
    if step.position == 0 {
        start(conn, saga, &key, order)?;
    }
    step.write_business_row(conn, order)?;
    conn.prepare_cached("DELETE FROM saga_work WHERE id = ?1 AND epoch = 1")?.execute([work_id(saga, step)])?;
    conn.prepare_cached(
        "INSERT INTO saga_records (tenant, key, step, saga, outcome, position, attempts, recorded_at, took_micros, \
         output) VALUES ('', ?1, ?2, ?3, 'done', ?4, 1, ?5, 40, ?6) ON CONFLICT DO NOTHING",
    )?
    .execute((&key, step.name, saga, step.position + 1, NOW_MICROS, payload(order)))?;
    let next = STEPS.get(step.position as usize + 1);
    advance(conn, saga, step.position, next.is_none())?;
    next.map_or(Ok(()), |next| insert_work(conn, saga, &key, next))
}

fn start(conn: &Connection, saga: i64, key: &str, order: u32) -> rusqlite::Result<()> {
    conn.prepare_cached(
        "INSERT INTO saga_sagas (id, tenant, key, definition, digest, input, input_hash, started_at) \
         VALUES (?1, '', ?2, 1, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING",
    )?
    .execute((saga, key, [7_u8; 32], payload(order), [7_u8; 33], NOW_MICROS))?;
    conn.prepare_cached(
        "INSERT INTO saga_progress (id, status, version, state, advanced_at) VALUES (?1, 'running', 1, ?2, ?3)",
    )?
    .execute((saga, state(0), NOW_MICROS))?;
    insert_work(conn, saga, key, &STEPS[0])
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
