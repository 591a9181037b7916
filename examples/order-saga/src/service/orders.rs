use std::process::ExitCode;

use saga_amqp::AmqpTransport;
use saga_core::{Runtime, Saga, store::Store};

use super::{log::log_to_stderr, serve::serve};
use crate::{
    cli::{ServiceArgs, ServiceName},
    orders::Order,
    outside::Outside,
    place::Place,
    run::{Counter, Input},
    saga::create_order_across_services,
    shop,
};

/// Runs the given orders to their end; without orders, takes part in the work until it is asked to end.
pub(super) async fn orders<P: Place>(
    place: &P,
    args: &ServiceArgs,
    transport: AmqpTransport,
    input: Option<Input>,
    outside: Option<Outside>,
) -> anyhow::Result<ExitCode> {
    let saga = create_order_across_services();
    if let Some(input) = input {
        let counter = Counter::open(place, input).await?;
        let runtime = runtime(counter.store(), &saga, args, &transport).await?;
        return counter.run(&runtime, &saga, &args.orders, outside.as_ref()).await;
    }
    let store = place.open_store().await?;
    eprintln!("the store is {}", place.shown());
    // Whoever comes first makes the tables that the steps write to.
    shop::migrate(&mut place.open_shop().await?).await?;
    serve(args.service, &runtime(store, &saga, args, &transport).await?, &transport).await
}

async fn runtime<S: Store>(
    store: S,
    saga: &Saga<S, Order>,
    args: &ServiceArgs,
    transport: &AmqpTransport,
) -> anyhow::Result<Runtime<S>> {
    log_to_stderr();
    let runtime = Runtime::builder(store).saga(saga).transport(transport.clone()).settings(|settings| {
        settings.service = Some(ServiceName::Orders.as_str().to_owned());
        args.times.apply(settings);
    });
    Ok(runtime.start().await?)
}
