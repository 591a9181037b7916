//! The same orders have the same outcomes on PostgreSQL.
#![cfg(feature = "postgres")]
#![allow(clippy::expect_used, reason = "a test ends where something fails that is not under test")]

use std::path::Path;
use std::process::Command;

/// The lines of the summary that count outcomes.
fn outcomes(folder: &Path, args: &[&str]) -> Vec<String> {
    let mut program = Command::new(env!("CARGO_BIN_EXE_order-saga"));
    let ran = program.current_dir(folder).args(args).output().expect("the program starts");
    let said = format!("{}{}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{said}");
    let counted =
        |line: &&str| ["completed", "stuck", "  card declined", "  no parcels"].iter().any(|of| line.starts_with(of));
    said.lines().filter(counted).map(str::to_owned).collect()
}

#[tokio::test]
async fn one_definition_gives_the_same_outcomes_on_sqlite_and_postgres() {
    let folder = tempfile::tempdir().expect("a folder");
    let sqlite = folder.path().join("sqlite");
    std::fs::create_dir(&sqlite).expect("a folder");
    let database = saga_servers::shared::database("order_saga").await.expect("a database");
    // The products are plenty, so that it does not matter which order comes first.
    let products = include_str!("../data/northwind-products.jsonl");
    let plenty = products.lines().map(|line| {
        let mut product: serde_json::Value = serde_json::from_str(line).expect("a product");
        product["in_stock"] = 1_000_000.into();
        product.to_string() + "\n"
    });
    let products = folder.path().join("products.jsonl");
    std::fs::write(&products, plenty.collect::<String>()).expect("a file");
    let run = ["run", "--products", products.to_str().expect("text"), "--store"];

    let on_sqlite = outcomes(&sqlite, &[&run[..], &["order-saga.db"]].concat());
    let on_postgres = outcomes(folder.path(), &[&run[..], &[database.url()]].concat());
    assert_eq!(on_postgres, on_sqlite);
    assert_eq!(on_sqlite.len(), 4, "{on_sqlite:?}");
    let again = outcomes(folder.path(), &[&run[..], &[database.url()]].concat());
    assert_eq!(again, on_postgres);
    let listed = Command::new(env!("CARGO_BIN_EXE_order-saga"))
        .args(["list", "--status", "completed", "--store", database.url()])
        .output()
        .expect("the program starts");
    let completed = String::from_utf8_lossy(&listed.stdout).lines().count();
    assert!(on_sqlite[0].ends_with(&format!(" {completed}")), "{completed} are listed: {on_sqlite:?}");
}
