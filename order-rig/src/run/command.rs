use std::process::ExitCode;

use anyhow::Context;
use saga_core::Runtime;

use super::counter::Counter;
use crate::{
    cli::RunArgs,
    outside::{Book, Carrier, Dice, Gateway, Outside, Services},
    patience::wait_for,
    place::{Place, connect_transport},
    run::Input,
    saga::create_order,
    service::log_to_stderr,
};

/// Runs the orders, and prints the summary.
pub async fn run(place: &impl Place, args: &RunArgs) -> anyhow::Result<ExitCode> {
    log_to_stderr();
    let elsewhere = args.outside.as_deref().map(Outside::at).transpose()?;
    if let Some(outside) = &elsewhere {
        let asked = wait_for("the services outside", args.waits.wait_for_outside, async || outside.tally().await);
        asked.await.context("the services outside do not answer")?;
    }
    let input = Input::read(&args.orders)?;
    let broker = connect_transport(&args.transport, args.waits.wait_for_broker).await?;
    let counter = Counter::open(place, input, args.waits.wait_for_database).await?;
    let outside = match elsewhere {
        Some(outside) => outside,
        None => Outside::InProcess(Services::new(Book::open(&place.outside())?, Dice::new(args.seed))),
    };
    let saga = create_order()?;
    let runtime = wait_for("the database", args.waits.wait_for_database, async || {
        let mut runtime = Runtime::builder(counter.store())
            .archive(place.archive(&counter.store()))
            .saga(&saga)
            .state(Gateway(outside.clone()))
            .state(Carrier(outside.clone()))
            .settings(|settings| {
                args.times.apply(settings);
                args.retention.apply(settings);
            });
        if let Some(broker) = &broker {
            runtime = runtime.transport(broker.transport());
        }
        Ok(runtime.start().await?)
    })
    .await?;
    counter.run(place, &runtime, &saga, &args.orders, Some(&outside)).await
}
