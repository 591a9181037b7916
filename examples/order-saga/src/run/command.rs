use std::{collections::HashSet, process::ExitCode};

use anyhow::Context;
use saga_core::{
    Runtime,
    engine::Inspector,
    store::{SagaFilter, Status, Store},
};

use super::{
    Summary,
    drive::{Drive, Driven, Job},
    input::Input,
    progress::Progress,
};
use crate::{
    cli::RunArgs,
    orders::{Numbered, Refusal, read_orders},
    outside::{Book, Carrier, Dice, Gateway, Outside, Services},
    place::{Place, connect_transport, without_password},
    print::print,
    saga::create_order,
    shop,
};

/// Something needs a person.
const STUCK: u8 = 1;
/// As a shell says it of a program that was interrupted.
const INTERRUPTED: u8 = 130;

/// Runs the orders, and prints what came of them.
///
/// # Errors
///
/// A sentence, when it could not be done. What was begun goes on with the next run.
///
/// # Cancel safety
///
/// What was begun goes on with the next run.
pub async fn run(place: &impl Place, args: &RunArgs) -> anyhow::Result<ExitCode> {
    let elsewhere = args.outside.as_deref().map(Outside::at).transpose()?;
    if let Some(outside) = &elsewhere {
        outside.tally().await.context("the services outside do not answer")?;
    }
    let input = Input::read(args)?;
    let transport = connect_transport(&args.transport).await?;

    let store = place.open_store().await?;
    eprintln!("the store is {}", place.shown());
    let mut shop = place.open_shop().await?;
    shop::migrate(&mut shop).await?;
    shop::load_products(&mut shop, &input.products).await?;
    let intake = read_orders(&input.orders, &input.order_lines, &shop::catalogue(&mut shop).await?);
    input.refused_products.iter().chain(&intake.refused).for_each(|refusal| eprintln!("{refusal}"));
    let outside = match elsewhere {
        Some(outside) => outside,
        None => Outside::InProcess(Services::new(Book::open(&place.outside())?, Dice::new(args.seed))),
    };
    let unfinished = unfinished(&store).await?;
    let found_unfinished = unfinished.len();

    let saga = create_order();
    let mut runtime =
        Runtime::builder(store).saga(&saga).state(Gateway(outside.clone())).state(Carrier(outside.clone()));
    if let Some(transport) = transport {
        runtime = runtime.transport(transport);
    }
    let runtime = runtime.start().await?;
    let mut progress = Progress::of(intake.orders.len());
    let drive = Drive { runtime: &runtime, saga: &saga, concurrency: args.concurrency.get() };
    let (mut summary, orders) = Summary::of(intake);
    let driven = drive.run(jobs(orders, unfinished), &mut progress, interrupted()).await;
    runtime.shutdown().await;
    let elapsed = progress.finish();
    let driven = driven.with_context(|| format!("the run stopped, nothing is lost, go on with: {}", same_command()))?;

    for (line, sentence) in &driven.refused {
        eprintln!("{}", Refusal { file: input.orders.to_string(), line: *line, sentence: sentence.clone() });
    }
    summary.add(&driven, found_unfinished, elapsed);
    summary.count(&shop::Tally::of(&mut shop).await?, &outside.tally().await?);
    if args.json {
        print(serde_json::to_string(&summary)? + "\n")?;
    } else {
        print(&summary)?;
    }
    Ok(exit(&driven))
}

/// The keys of the sagas that earlier runs have not brought to their end.
async fn unfinished(store: &(impl Store + Clone)) -> anyhow::Result<Vec<String>> {
    let mut keys = Vec::new();
    for status in [Status::Running, Status::Compensating] {
        let filter = SagaFilter { status: Some(status), limit: usize::MAX, ..SagaFilter::default() };
        let sagas = Inspector::new(store.clone()).list(filter).await?;
        keys.extend(sagas.into_iter().map(|saga| saga.key.as_str().to_owned()));
    }
    if !keys.is_empty() {
        eprintln!("going on with {} orders that were under way", keys.len());
    }
    Ok(keys)
}

/// The orders, and before them what earlier runs have left and is not among them.
fn jobs(orders: Vec<Numbered>, unfinished: Vec<String>) -> Vec<Job> {
    let ours: HashSet<&str> = orders.iter().map(|numbered| numbered.order.order_id.as_str()).collect();
    let mut jobs: Vec<Job> =
        unfinished.into_iter().filter(|key| !ours.contains(key.as_str())).map(Job::Earlier).collect();
    jobs.extend(orders.into_iter().map(Job::Order));
    jobs
}

/// Ready when the program is interrupted. A second interruption ends it at once.
async fn interrupted() {
    if tokio::signal::ctrl_c().await.is_err() {
        // Without a handler an interruption ends the program at once, which loses nothing either.
        std::future::pending::<()>().await;
    }
    tokio::spawn(async {
        if tokio::signal::ctrl_c().await.is_ok() {
            std::process::exit(INTERRUPTED.into());
        }
    });
}

fn exit(driven: &Driven) -> ExitCode {
    driven.stuck.iter().for_each(|stuck| eprintln!("{stuck}"));
    if driven.interrupted {
        eprintln!("nothing is lost; go on with: {}", same_command());
        ExitCode::from(INTERRUPTED)
    } else if driven.stuck.is_empty() {
        ExitCode::SUCCESS
    } else {
        eprintln!("look at one of them with: order-saga show KEY");
        ExitCode::from(STUCK)
    }
}

/// The command that this program was started with, fit for a shell, without passwords.
fn same_command() -> String {
    let plain =
        |argument: &str| argument.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./:=,@+".contains(&byte));
    let quoted = std::env::args().skip(1).map(|argument| without_password(&argument)).map(|argument| {
        if !argument.is_empty() && plain(&argument) {
            argument
        } else {
            format!("'{}'", argument.replace('\'', r"'\''"))
        }
    });
    std::iter::once("order-saga".to_owned()).chain(quoted).collect::<Vec<_>>().join(" ")
}
