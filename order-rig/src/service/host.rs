use std::{num::NonZeroUsize, process::ExitCode};

use saga_core::{Runtime, engine::RuntimeBuilder};

use super::serve::serve;
use crate::{
    cli::ServiceArgs,
    patience::wait_for,
    place::{Broker, Place},
    print::say,
};

/// Does the steps of a service for the sagas of others, until it is asked to end.
pub(super) async fn host<P: Place>(
    place: &P,
    args: &ServiceArgs,
    broker: Broker,
    hosting: impl Fn(RuntimeBuilder<P::Store>) -> RuntimeBuilder<P::Store>,
) -> anyhow::Result<ExitCode> {
    let runtime = wait_for("the database", args.waits.wait_for_database, async || {
        let store = place.open().await?;
        let archive = place.archive(&store);
        let runtime =
            hosting(Runtime::builder(store).archive(archive)).transport(broker.transport()).settings(|settings| {
                args.times.apply(settings);
                args.retention.apply(settings);
                settings.external_calls_max = args.calls.map_or(settings.external_calls_max, NonZeroUsize::get);
            });
        Ok(runtime.start().await?)
    })
    .await?;
    say(format_args!("the store is {}", place.name()));
    serve(args.service, &runtime, &broker).await
}
