use std::process::ExitCode;

use saga_core::{Runtime, Saga, store::Store};

use super::serve::serve;
use crate::{
    cli::{ServiceArgs, ServiceName},
    orders::Order,
    outside::Outside,
    patience::wait_for,
    place::{Broker, Place},
    print::say,
    run::{Counter, Input},
    saga::create_order_across_services,
    shop,
};

/// Runs the given orders to their end; without orders, takes part in the work until it is asked to end.
pub(super) async fn orders<P: Place>(
    place: &P,
    args: &ServiceArgs,
    transport: Broker,
    input: Option<Input>,
    outside: Option<Outside>,
) -> anyhow::Result<ExitCode> {
    let saga = create_order_across_services()?;
    let patience = args.waits.wait_for_database;
    if let Some(input) = input {
        let counter = Counter::open(place, input, patience).await?;
        let runtime =
            wait_for("the database", patience, async || runtime(counter.store(), &saga, args, &transport).await)
                .await?;
        return counter.run(place, &runtime, &saga, &args.orders, outside.as_ref()).await;
    }
    let runtime = wait_for("the database", patience, async || {
        let store = place.open().await?;
        // The first process makes the tables that the steps write to.
        shop::migrate(&mut place.open_shop().await?).await?;
        runtime(store, &saga, args, &transport).await
    })
    .await?;
    say(format_args!("the store is {}", place.name()));
    serve(args.service, &runtime, &transport).await
}

async fn runtime<S: Store>(
    store: S,
    saga: &Saga<S, Order>,
    args: &ServiceArgs,
    transport: &Broker,
) -> anyhow::Result<Runtime<S>> {
    let runtime = Runtime::builder(store).saga(saga).transport(transport.clone()).settings(|settings| {
        settings.service = Some(ServiceName::Orders.as_str().to_owned());
        args.times.apply(settings);
    });
    Ok(runtime.start().await?)
}
