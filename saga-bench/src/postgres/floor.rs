//! The floor: pgbench, one transaction of four statements a step, each in a commit of its own.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use saga_servers::{postgres_programs, psql};

/// What hand-written code does for a step: its step key, its business row, the saga's row, a message for the outbox.
const SCRIPT: &str = "
\\set saga random(1, :sagas)
BEGIN;
INSERT INTO floor_keys (key, step, output) VALUES (gen_random_uuid(), 'reserve-stock', '{\"number\":7,\"amount\":107}');
INSERT INTO reservations (order_id, amount) VALUES (:saga, 107);
UPDATE floor_sagas SET position = position + 1, advanced_at = now() WHERE id = :saga;
INSERT INTO floor_outbox (saga, payload) VALUES (:saga, '{\"number\":7,\"amount\":107}');
COMMIT;
";

const TABLES: &str = "
    CREATE TABLE floor_keys (key uuid, step text, output text NOT NULL, PRIMARY KEY (key, step));
    CREATE TABLE floor_sagas (id bigint PRIMARY KEY, position bigint NOT NULL, advanced_at timestamptz);
    CREATE TABLE floor_outbox (seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, saga bigint, payload text);
";

/// Runs so many steps with so many clients, and returns the steps a second, as pgbench measures them.
pub(crate) async fn run(url: &str, folder: &Path, steps: u32, clients: u32) -> Result<f64> {
    let sagas = steps.max(clients);
    psql(url, TABLES).await?;
    psql(url, &format!("INSERT INTO floor_sagas SELECT id, 0 FROM generate_series(1, {sagas}) id")).await?;
    psql(url, "VACUUM ANALYZE floor_sagas").await?;
    let script = folder.join("step.sql");
    fs::write(&script, SCRIPT)?;
    let mut pgbench = Command::new(postgres_programs()?.join("pgbench"));
    pgbench.args(["--no-vacuum", "--protocol=prepared", "--jobs=2"]).arg(format!("--client={clients}"));
    pgbench.arg(format!("--transactions={}", steps.div_ceil(clients))).arg(format!("--define=sagas={sagas}"));
    let output = pgbench.arg("--file").arg(&script).arg(url).output().context("cannot run pgbench")?;
    let told = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "pgbench failed: {}", String::from_utf8_lossy(&output.stderr));
    let rate = told.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok());
    rate.with_context(|| format!("pgbench told no rate: {told}"))
}
