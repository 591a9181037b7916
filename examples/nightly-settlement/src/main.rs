//! Collects the payments of a night from a bank, one by one. The step takes long, so it is `exclusive`, reports its progress,
//! checks whether it is cancelled, and has a resolution that asks the bank for the outcome.
//!
//! `cargo run -p nightly-settlement` settles 830 orders in three processes, one after the other, on temporary files. The first
//! process is killed in the middle, the second is asked to stop, and the third does not get the bank's last answer. Each
//! continues where the previous one was. `-- orders.jsonl` settles other orders, one JSON object per line with `order_id`,
//! `customer` and `total_cents`.

mod bank;
mod books;
mod night;
mod process;
mod steps;

use std::path::PathBuf;

const USAGE: &str = "usage: nightly-settlement [ORDERS.jsonl]";

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut args = std::env::args_os().skip(1);
    match (args.next(), args.next()) {
        (Some(first), Some(folder)) if first == process::PROCESS => process::run(&PathBuf::from(folder)).await,
        (Some(option), None) if option.as_encoded_bytes().starts_with(b"-") => {
            anyhow::bail!("unknown option `{}`; {USAGE}", option.display())
        }
        (file, None) => night::watch(file.map(PathBuf::from).as_deref()).await,
        _ => anyhow::bail!("{USAGE}"),
    }
}
