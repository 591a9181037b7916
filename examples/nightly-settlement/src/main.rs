//! The payments of a night are collected from a bank, one by one. The step that does so takes long, so it is `exclusive`,
//! reports how far it is, looks whether it is still wanted, and says how the bank is asked what became of it.
//!
//! `cargo run -p nightly-settlement` settles 830 orders in three processes, one after the other, on files that are gone
//! afterwards. The first is killed in the middle, the second is asked to end, and the third is not told by the bank that all
//! is done. Each goes on where the one before it was. `-- orders.jsonl` settles other orders, one a line with an `order_id`,
//! a `customer` and `total_cents`.

mod bank;
mod books;
mod night;
mod process;
mod steps;

use std::path::PathBuf;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut args = std::env::args_os().skip(1);
    match (args.next(), args.next()) {
        (Some(first), Some(folder)) if first == process::PROCESS => process::run(&PathBuf::from(folder)).await,
        (file, None) => night::watch(file.map(PathBuf::from).as_deref()).await,
        _ => anyhow::bail!("usage: nightly-settlement [ORDERS.jsonl]"),
    }
}
