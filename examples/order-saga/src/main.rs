//! Runs orders through a saga: place, reserve, charge, ship, confirm. If a step fails, the finished steps are undone.
//!
//! Read `steps.rs` first, then `saga.rs`, then `run` below. The rest is the shop around them: `orders.rs` reads the orders,
//! `shop.rs` has the tables, `store.rs` opens the store, and `outside.rs` simulates the services of other companies.

mod orders;
mod outside;
mod saga;
mod shop;
mod steps;
mod store;
mod summary;

use std::io::stdout;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use clap::{Args, Parser, Subcommand};
use saga_cli::{Admin, OpenStore, print_remark};
use saga_core::{Runtime, Saga, StartError};
use saga_sql::SqlStore;
use tokio::time::{Instant, timeout};

use crate::orders::{Line, Order};
use crate::outside::{Book, Carrier, Gateway, Shipment};
use crate::store::SqliteFile;
use crate::summary::Summary;

/// Something needs an operator: a stuck saga, or an invalid line.
const NEEDS_PERSON: u8 = 1;
/// The command could not be carried out.
const FAILED: u8 = 2;

/// After this time without an end of a saga, the program says what it waits for.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs orders through a saga: place, reserve, charge, ship, confirm. If a step fails, the finished steps are undone.
///
/// Kill it at any moment and run it again: it continues where it was. Run it twice: nothing happens twice.
#[derive(Parser)]
#[command(name = "order-saga", version)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    /// The file of the store and the shop, or the postgres:// URL of a database if the program has the feature `postgres`
    #[arg(long, value_name = "FILE", default_value = "order-saga.db", global = true)]
    store: String,
}

#[derive(Subcommand)]
enum Command {
    /// Run the orders (the default)
    Run(RunArgs),
    #[command(flatten)]
    Admin(saga_cli::Command),
}

#[derive(Args, Default)]
struct RunArgs {
    /// Orders as JSON lines [default: 830 built-in orders]
    #[arg(long, value_name = "FILE")]
    orders: Option<PathBuf>,
    /// Products as JSON lines [default: those of the 830 orders]
    #[arg(long, value_name = "FILE")]
    products: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    let command = cli.command.unwrap_or_else(|| Command::Run(RunArgs::default()));
    let outside = shop::outside(&cli.store);
    // The one line that names the database.
    let done = match cli.store {
        #[cfg(feature = "postgres")]
        url if url.contains("://") => carry_out(store::PostgresDatabase(url), &outside, &command).await,
        #[cfg(not(feature = "postgres"))]
        url if url.contains("://") => Err(anyhow!(
            "this program was built for a file, and not for the URL of a database; build it for PostgreSQL with \
             `cargo run -p order-saga --features postgres -- ..`"
        )),
        file => carry_out(SqliteFile(file.into()), &outside, &command).await,
    };
    done.unwrap_or_else(|error| {
        print_remark(format_args!("order-saga: {}", saga_cli::error_line(&error)));
        ExitCode::from(FAILED)
    })
}

async fn carry_out<S: SqlStore>(
    database: impl OpenStore<Store = S>,
    outside: &Path,
    command: &Command,
) -> anyhow::Result<ExitCode> {
    match command {
        Command::Run(args) => run(&database, outside, args).await,
        // The next `order-saga run` carries out what the operator decided.
        Command::Admin(command) => {
            Admin::new("order-saga", database).saga(&saga::create_order()?).run(command, &mut stdout()).await
        }
    }
}

/// Runs the orders to their ends, and prints the summary.
async fn run<S: SqlStore>(at: &impl OpenStore<Store = S>, outside: &Path, args: &RunArgs) -> anyhow::Result<ExitCode> {
    let products = orders::read_products(args.products.as_ref())?;
    let orders = orders::read_orders(args.orders.as_ref(), &products.read)?;
    let mut summary = Summary::default();
    products.refused.iter().chain(&orders.refused).for_each(|refusal| summary.refuse(refusal));

    let store = at.open().await?;
    shop::set_up(&store, products.read).await.context("cannot set up the shop")?;
    let book = Book::open(outside).context("cannot open the book of the services outside")?;
    let create_order = saga::create_order()?;
    let runtime = Runtime::builder(store)
        .saga(&create_order)
        .state(Gateway(book.clone()))
        .state(Carrier(book.clone()))
        .start()
        .await?;

    let began = Instant::now();
    let ran = tokio::select! {
        ran = run_orders(&runtime, &create_order, orders.read, &mut summary) => ran,
        _ = tokio::signal::ctrl_c() => Err(anyhow!("interrupted; nothing is lost, the same command goes on")),
    };
    runtime.shutdown().await;
    ran?;
    summary.took = began.elapsed();
    summary.repeated_calls = book.repeated_calls()?;
    saga_cli::print(&mut stdout(), &summary)?;
    Ok(if summary.needs_person() { ExitCode::from(NEEDS_PERSON) } else { ExitCode::SUCCESS })
}

/// Starts a saga for each order, all in one commit, and waits until each has ended or is stuck. Starting an order again gives
/// the same saga, whether it has ended or still runs.
async fn run_orders<S: SqlStore>(
    runtime: &Runtime<S>,
    create_order: &Saga<S, Order, Shipment>,
    orders: Vec<Line<Order>>,
    summary: &mut Summary,
) -> anyhow::Result<()> {
    let places: Vec<String> = orders.iter().map(|line| line.place.clone()).collect();
    let orders = orders.into_iter().map(|line| (line.content.id.clone(), line.content));
    let mut sagas = Vec::new();
    for (place, started) in places.iter().zip(runtime.start_many(create_order, orders).await) {
        match started {
            Ok(saga) => sagas.push(saga),
            Err(StartError::Store(error)) => return Err(error.into()),
            Err(refused) => summary.refuse(&format!("{place}: {refused}")),
        }
    }
    for saga in sagas {
        let outcome = loop {
            match timeout(PATIENCE, saga.outcome()).await {
                Ok(outcome) => break outcome?,
                Err(_) => {
                    print_remark(format_args!("{0} has not ended; look at it with: order-saga show {0}", saga.key()));
                }
            }
        };
        summary.add(saga.key(), saga.already_started(), &outcome);
    }
    Ok(())
}
