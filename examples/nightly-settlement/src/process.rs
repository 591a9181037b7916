//! One process that settles the night. It ends when that is done, or when nobody listens to it any more.

use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use saga_core::{Outcome, Runtime};
use saga_sqlite::SqliteStore;
use tokio::sync::oneshot;

use crate::bank::Bank;
use crate::books::Books;
use crate::steps::settlement;

/// What the first argument of a process is that settles; behind it stands its folder.
pub(crate) const PROCESS: &str = "process";
/// The night that is settled. The same key is the same saga, whichever process starts it.
pub(crate) const NIGHT: &str = "night-of-may-6";
/// How often a report is written down at most: a night would do with the second that it is otherwise.
const REPORT_INTERVAL: Duration = Duration::from_millis(50);

/// Settles the night in that folder.
///
/// # Errors
/// The books cannot be opened, or the night does not end as it should.
///
/// # Cancel safety
/// What was not done by then goes on with the next process.
pub(crate) async fn run(folder: &Path) -> anyhow::Result<()> {
    let (books, settlement) = (Books::in_folder(folder), settlement()?);
    let store = SqliteStore::open(books.file()).await?;
    let runtime = Runtime::builder(store.clone())
        .saga(&settlement)
        .state(books)
        .state(Bank::in_folder(folder)?)
        .settings(|settings| settings.report_interval = REPORT_INTERVAL)
        .start()
        .await?;
    let running = runtime.start(&settlement, NIGHT, NIGHT.to_owned()).await?;
    let outcome = tokio::select! {
        outcome = running.outcome() => Some(outcome?),
        () = told_to_end() => None,
    };
    runtime.shutdown().await;
    store.close().await;
    match outcome {
        Some(Outcome::Completed { .. }) => println!("the night is settled"),
        Some(outcome) => anyhow::bail!("{outcome}"),
        None => println!("the process has ended, and the night has not"),
    }
    Ok(())
}

/// Ready when nobody listens any more. A service would wait for a signal here.
async fn told_to_end() {
    let (tell, told) = oneshot::channel();
    // It waits in a thread of its own, which nobody waits for.
    std::thread::spawn(move || {
        // An error says the same, and whoever listened may be gone.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = tell.send(());
    });
    let _ = told.await;
}
