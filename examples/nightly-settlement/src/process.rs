//! One process that settles the night. It ends when the night is settled, or when its parent closes its standard input.

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
/// The key of the night. The same key is the same saga in each process.
pub(crate) const NIGHT: &str = "night-of-may-6";
/// How often a report is written down at most: a night would do with the second that it is otherwise.
const REPORT_INTERVAL: Duration = Duration::from_millis(50);

/// Settles the night in that folder.
///
/// # Errors
/// The books cannot be opened, or the night does not end as it should.
///
/// # Cancel safety
/// If it is dropped, the next process continues.
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

/// Completes when the parent closes the standard input. A service would wait for a signal of the operating system here.
async fn told_to_end() {
    let (tell, told) = oneshot::channel();
    // A separate thread waits, and is never joined.
    std::thread::spawn(move || {
        // An error also means that the input is closed. The receiver may be dropped.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = tell.send(());
    });
    let _ = told.await;
}
