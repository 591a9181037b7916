use std::{process::ExitCode, time::Duration};

use anyhow::Context;
use saga_core::Runtime;

use super::counter::Counter;
use crate::{
    cli::RunArgs,
    outside::{Book, Carrier, Dice, Gateway, Outside, Services},
    place::{Place, connect_transport},
    run::Input,
    saga::create_order,
};

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
    let input = Input::read(&args.orders)?;
    let transport = connect_transport(&args.transport, Duration::ZERO).await?;
    let counter = Counter::open(place, input).await?;
    let outside = match elsewhere {
        Some(outside) => outside,
        None => Outside::InProcess(Services::new(Book::open(&place.outside())?, Dice::new(args.seed))),
    };
    let saga = create_order();
    let mut runtime = Runtime::builder(counter.store())
        .saga(&saga)
        .state(Gateway(outside.clone()))
        .state(Carrier(outside.clone()))
        .settings(|settings| args.times.apply(settings));
    if let Some(transport) = transport {
        runtime = runtime.transport(transport);
    }
    counter.run(&runtime.start().await?, &saga, &args.orders, Some(&outside)).await
}
