//! Settles the night with processes that are killed and stopped.

use std::path::Path;
use std::process::Stdio;

use anyhow::Context as _;
use saga_core::engine::SagaAdmin;
use saga_sqlite::{SqliteOptions, SqliteStore};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::bank::Bank;
use crate::books::Books;
use crate::process::{NIGHT, PROCESS};
use crate::steps::{Progress, settlement};

/// Settles the orders of the file with three processes, one after the other.
///
/// # Errors
/// The file has no orders, or the night does not end as it should.
///
/// # Cancel safety
/// If it is dropped, the running process is killed.
pub(crate) async fn watch(file: Option<&Path>) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let (books, bank) = (Books::in_folder(folder.path()), Bank::in_folder(folder.path())?);
    books.begin(file)?;

    println!("-- the first process is killed");
    let (mut first, mut says) = begin(folder.path())?;
    echo(&mut says, Some(1)).await?;
    first.kill().await?;
    show(&books).await?;

    println!("-- the second process is asked to end");
    let (mut second, mut says) = begin(folder.path())?;
    echo(&mut says, Some(2)).await?;
    drop(second.stdin.take());
    echo(&mut says, None).await?;
    second.wait().await?;
    show(&books).await?;

    println!("-- the third process loses an answer");
    let (mut third, mut says) = begin(folder.path())?;
    echo(&mut says, None).await?;
    let status = third.wait().await?;
    anyhow::ensure!(status.success(), "the third process ended with {status}");

    let ((orders, cents), book) = (books.settled()?, bank.book()?);
    println!("-- {orders} orders are settled for {cents} cents");
    println!("the bank has collected {} payments and {} cents", book.payments, book.cents);
    println!("it was asked {} times to collect, and {} times to close", book.asked, book.closed);
    anyhow::ensure!((orders, cents) == (book.payments, book.cents), "the books do not agree");
    Ok(())
}

type Says = Lines<BufReader<ChildStdout>>;

fn begin(folder: &Path) -> anyhow::Result<(Child, Says)> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(PROCESS).arg(folder).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn()?;
    let says = child.stdout.take().context("a process without an output")?;
    Ok((child, BufReader::new(says).lines()))
}

/// Says what a process says, until so many thirds of the payments are collected, or to its end.
async fn echo(says: &mut Says, thirds: Option<u32>) -> anyhow::Result<()> {
    while let Some(line) = says.next_line().await? {
        println!("   {line}");
        let Some((collected, all)) = collected(&line) else { continue };
        if thirds.is_some_and(|thirds| collected * 3 >= all * thirds) {
            break;
        }
    }
    Ok(())
}

/// What a process says of how far it is.
fn collected(line: &str) -> Option<(u32, u32)> {
    let (collected, all) = line.strip_prefix("collected ")?.split_once(" of ")?;
    Some((collected.parse().ok()?, all.parse().ok()?))
}

/// What everybody can see of the night while no process has it.
async fn show(books: &Books) -> anyhow::Result<()> {
    let store = SqliteStore::open_with(SqliteOptions::new(books.file()).read_only()).await?;
    let inspector = SagaAdmin::new(store).saga(&settlement()?).query();
    let night = inspector.status(NIGHT).await?.context("there is no such night")?;
    for step in night.steps {
        let reported = match &step.progress {
            Some(progress) => format!(", reported {} payments", progress.read::<Progress>()?.collected),
            None => String::new(),
        };
        println!("{:<16} {}{reported}", step.step, step.phase.as_str());
    }
    Ok(())
}
