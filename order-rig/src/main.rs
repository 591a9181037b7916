//! Runs orders through a saga on every store and transport, and audits the result.

#![deny(clippy::print_stdout, clippy::print_stderr)]

use std::process::ExitCode;

use anyhow::Context;
use order_rig::{
    admin::admin,
    cli::{Cli, Command, OutsideArgs},
    outside::{Book, Dice, Services, serve},
    place::{Place, StoreUrl},
    print::{print, say},
    run, saga,
    sentence::sentence,
    service, verify,
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
        say(format_args!("order-rig: {}", sentence(&error)));
        ExitCode::from(UNUSABLE)
    })
}

/// The same commands with every kind of database.
async fn with<P: Place>(place: &P, command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Run(args) => run::run(place, &args).await,
        Command::Service(args) => service::service(place, &args).await,
        Command::Verify(args) => verify::verify(place, &args).await,
        Command::Admin(args) => admin(place, &args.command).await,
        Command::Graph => {
            print(saga::create_order::<P::Store>()?.to_mermaid())?;
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
