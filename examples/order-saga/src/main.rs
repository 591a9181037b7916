//! Runs orders through a saga.

#![deny(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;

use anyhow::Context;
use order_saga::{
    cli::{Cli, Command, OutsideArgs},
    desk, letters, outbox,
    outside::{Book, Dice, Services, serve},
    place::{Place, StoreUrl},
    print::{print, say},
    run, saga,
    sentence::sentence,
    service, show, verify,
};

/// The program could not do what was asked.
const UNUSABLE: u8 = 2;

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::of_arguments();
    let command = cli.command.unwrap_or(Command::Run(cli.run));
    let done = match StoreUrl::parse(command.store()) {
        Ok(StoreUrl::Sqlite(place)) => with(&place, command).await,
        Ok(StoreUrl::Postgres(place)) => with(&place, command).await,
        Err(error) => Err(error),
    };
    done.unwrap_or_else(|error| {
        say(format_args!("order-saga: {}", sentence(&error)));
        ExitCode::from(UNUSABLE)
    })
}

/// The same commands with every kind of database.
async fn with<P: Place>(place: &P, command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Run(args) => run::run(place, &args).await,
        Command::Service(args) => service::service(place, &args).await,
        Command::Verify(args) => verify::verify(place, &args).await,
        Command::Show(args) => show::show(place, &args).await,
        Command::List(args) => show::list(place, &args).await,
        Command::Cancel(args) => desk::cancel(place, &args).await,
        Command::Pause(args) => desk::pause(place, &args).await,
        Command::Resume(args) => desk::resume(place, &args).await,
        Command::Retry(args) => desk::retry(place, &args).await,
        Command::Skip(args) => desk::skip(place, &args).await,
        Command::Force(args) => desk::force(place, &args).await,
        Command::Restart(args) => desk::restart(place, &args).await,
        Command::Bulk(command) => desk::bulk(place, &command).await,
        Command::Audit(args) => show::audit(place, &args).await,
        Command::DeadLetters(command) => letters::letters(place, &command).await,
        Command::Outbox(command) => outbox::outbox(place, &command).await,
        Command::Graph => {
            print(saga::create_order::<P::Store>().to_mermaid())?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Outside(args) => serve_outside(place, &args).await,
    }
}

async fn serve_outside(place: &impl Place, args: &OutsideArgs) -> anyhow::Result<ExitCode> {
    let file = place.outside();
    let book = Book::open(&file).with_context(|| format!("cannot open {}", file.display()))?;
    serve(Services::new(book, Dice::new(args.seed)).with_manners(args.manners()), args.listen).await?;
    Ok(ExitCode::SUCCESS)
}
