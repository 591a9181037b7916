use std::process::ExitCode;

use saga_core::{Runtime, Saga};

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
    broker: Broker,
    input: Option<Input>,
    outside: Option<Outside>,
) -> anyhow::Result<ExitCode> {
    let saga = create_order_across_services()?;
    let patience = args.waits.wait_for_database;
    if let Some(input) = input {
        let counter = Counter::open(place, input, patience).await?;
        let runtime =
            wait_for("the database", patience, async || runtime(place, counter.store(), &saga, args, &broker).await)
                .await?;
        return counter.run(place, &runtime, &saga, &args.orders, outside.as_ref()).await;
    }
    let runtime = wait_for("the database", patience, async || {
        let store = place.open().await?;
        // The first process makes the tables that the steps write to.
        shop::migrate(&mut place.open_shop().await?).await?;
        runtime(place, store, &saga, args, &broker).await
    })
    .await?;
    say(format_args!("the store is {}", place.name()));
    serve(args.service, &runtime, &broker).await
}

async fn runtime<P: Place>(
    place: &P,
    store: P::Store,
    saga: &Saga<P::Store, Order>,
    args: &ServiceArgs,
    broker: &Broker,
) -> anyhow::Result<Runtime<P::Store>> {
    let archive = place.archive(&store);
    let runtime =
        Runtime::builder(store).archive(archive).saga(saga).transport(broker.transport()).settings(|settings| {
            settings.service = Some(ServiceName::Orders.as_str().to_owned());
            args.times.apply(settings);
            args.retention.apply(settings);
        });
    Ok(runtime.start().await?)
}
