//! F1: pgbench, one transaction of four statements a step, each in a commit of its own.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use saga_servers::postgres_programs;

use crate::figures::percentile;
use crate::postgres::measure::Done;
use crate::postgres::work::Work;
use crate::postgres::workload::{HOT_ROWS, STEPS_PER_SAGA};

const INSERT: &str = "INSERT INTO reservations (order_id, amount) VALUES (:saga, 107);";
const UPDATE: &str = "UPDATE hot SET amount = amount + 1 WHERE id = :row;";

fn step(business: &str) -> String {
    format!(
        "BEGIN;
INSERT INTO floor_keys (key, step, output) VALUES (gen_random_uuid(), 'reserve-stock', '{{\"number\":7,\"amount\":107}}');
{business}
UPDATE floor_sagas SET position = position + 1, advanced_at = now() WHERE id = :saga;
INSERT INTO floor_outbox (saga, payload) VALUES (:saga, '{{\"number\":7,\"amount\":107}}');
COMMIT;
"
    )
}

/// Runs so many steps with so many clients.
pub(crate) async fn run(url: &str, folder: &Path, work: Work, sagas: u32, clients: u32) -> Result<Done> {
    let business = if work == Work::Hot { UPDATE } else { INSERT };
    let script = format!("\\set saga random(0, {sagas})\n\\set row random(0, {})\n{}", HOT_ROWS - 1, step(business));
    let each = (sagas * STEPS_PER_SAGA).div_ceil(clients);
    let told = pgbench(url, folder, &script, clients, each, None)?;
    let (rate, steps) = (value(&told, "tps = ")?, each * clients);
    Ok(Done::new(steps, Duration::from_secs_f64(f64::from(steps) / rate)))
}

/// One client that runs three steps in a row, as often as asked: how long the three take.
pub(crate) async fn run_alone(url: &str, folder: &Path, sagas: u32) -> Result<Done> {
    let script = format!("\\set saga random(0, {sagas})\n{}", step(INSERT).repeat(STEPS_PER_SAGA as usize));
    let log = folder.join("alone");
    let told = pgbench(url, folder, &script, 1, sagas, Some(&log))?;
    let rate = value(&told, "tps = ")?;
    let mut latencies = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("alone.")) {
            // The third column of a line is how long the transaction took, in microseconds.
            let text = fs::read_to_string(&path)?;
            let micros = text.lines().filter_map(|line| line.split(' ').nth(2)?.parse::<f64>().ok());
            latencies.extend(micros.map(|micros| micros / 1e3));
            fs::remove_file(path)?;
        }
    }
    ensure!(latencies.len() == sagas as usize, "pgbench logged {} of {sagas} times", latencies.len());
    let done = Done::new(sagas * STEPS_PER_SAGA, Duration::from_secs_f64(f64::from(sagas) / rate));
    Ok(Done { p50_ms: Some(percentile(&latencies, 0.5)), p99_ms: Some(percentile(&latencies, 0.99)), ..done })
}

/// How many transactions with this script so many clients run a second.
pub(crate) fn rate(url: &str, folder: &Path, script: &str, clients: u32, each: u32) -> Result<f64> {
    value(&pgbench(url, folder, script, clients, each, None)?, "tps = ")
}

fn pgbench(url: &str, folder: &Path, script: &str, clients: u32, each: u32, log: Option<&Path>) -> Result<String> {
    let file = folder.join("step.sql");
    fs::write(&file, script)?;
    let mut pgbench = Command::new(postgres_programs()?.join("pgbench"));
    let threads = clients.min(2);
    pgbench.args(["--no-vacuum", "--protocol=prepared"]).arg(format!("--jobs={threads}"));
    pgbench.arg(format!("--client={clients}")).arg(format!("--transactions={each}"));
    if let Some(log) = log {
        pgbench.arg("--log").arg(format!("--log-prefix={}", log.display()));
    }
    let output = pgbench.arg("--file").arg(&file).arg(url).output().context("cannot run pgbench")?;
    ensure!(output.status.success(), "pgbench failed: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn value(told: &str, name: &str) -> Result<f64> {
    let value = told.lines().find_map(|line| line.strip_prefix(name)?.split(' ').next()?.parse().ok());
    value.with_context(|| format!("pgbench did not say `{name}`: {told}"))
}
