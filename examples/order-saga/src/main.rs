//! Runs orders through a saga.

use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use order_saga::{
    cli::{Cli, Command, OutsideArgs},
    outside::{Book, Dice, Services, serve},
    place::Place,
    run, saga, show, verify,
};

/// The program could not do what was asked.
const UNUSABLE: u8 = 2;

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.command.unwrap_or(Command::Run(cli.run)) {
        Command::Run(args) => run::run(&args).await,
        Command::Verify(args) => verify::verify(&args).await,
        Command::Show(args) => show::show(&args).await,
        Command::List(args) => show::list(&args).await,
        Command::Graph => {
            print!("{}", saga::create_order().to_mermaid());
            Ok(ExitCode::SUCCESS)
        }
        Command::Outside(args) => serve_outside(&args).await,
    };
    done.unwrap_or_else(|error| {
        eprintln!("order-saga: {error:#}");
        ExitCode::from(UNUSABLE)
    })
}

async fn serve_outside(args: &OutsideArgs) -> anyhow::Result<ExitCode> {
    let place = Place::parse(&args.store.store)?;
    let file = place.outside();
    let book = Book::open(&file).with_context(|| format!("cannot open {}", file.display()))?;
    serve(Services::new(book, Dice::new(args.seed)), args.listen).await?;
    Ok(ExitCode::SUCCESS)
}
