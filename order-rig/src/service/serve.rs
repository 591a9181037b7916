use std::{process::ExitCode, time::Duration};

use saga_core::{Runtime, store::Store};

use crate::{cli::ServiceName, interrupt::interrupted, place::Broker, print::print};

/// How often it is looked whether the broker delivers to this service.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Says when the service is ready, and ends it when it is asked to end.
pub(super) async fn serve<S: Store>(
    name: ServiceName,
    runtime: &Runtime<S>,
    transport: &Broker,
) -> anyhow::Result<ExitCode> {
    let ready = async {
        while !transport.receives() {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        print(format_args!("{name} is ready\n"))?;
        std::future::pending::<anyhow::Result<()>>().await
    };
    let served = tokio::select! {
        served = ready => served,
        () = interrupted() => Ok(()),
    };
    runtime.shutdown().await;
    transport.close().await;
    served.map(|()| ExitCode::SUCCESS)
}
