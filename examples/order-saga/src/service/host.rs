use std::process::ExitCode;

use saga_amqp::AmqpTransport;
use saga_core::{Runtime, engine::RuntimeBuilder};

use super::{log::log_to_stderr, serve::serve};
use crate::{cli::ServiceArgs, place::Place};

/// Does the steps of a service for the sagas of others, until it is asked to end.
pub(super) async fn host<P: Place>(
    place: &P,
    args: &ServiceArgs,
    transport: AmqpTransport,
    hosting: impl FnOnce(RuntimeBuilder<P::Store>) -> RuntimeBuilder<P::Store>,
) -> anyhow::Result<ExitCode> {
    let store = place.open_store().await?;
    eprintln!("the store is {}", place.shown());
    log_to_stderr();
    let runtime = hosting(Runtime::builder(store))
        .transport(transport.clone())
        .settings(|settings| args.times.apply(settings))
        .start()
        .await?;
    serve(args.service, &runtime, &transport).await
}
