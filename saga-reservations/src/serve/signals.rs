//! When the process is asked to end.

use std::future::Future;

use anyhow::Context as _;

/// Ready when the process gets SIGTERM or SIGINT. From the call on they no longer kill it.
#[cfg(unix)]
pub(super) fn stop() -> anyhow::Result<impl Future<Output = &'static str> + Send> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut terminate = signal(SignalKind::terminate()).context("SIGTERM cannot be handled")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("SIGINT cannot be handled")?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        }
    })
}

/// Ready when the process gets Ctrl-C.
#[cfg(not(unix))]
pub(super) fn stop() -> anyhow::Result<impl Future<Output = &'static str> + Send> {
    Ok(async {
        if let Err(error) = tokio::signal::ctrl_c().await.context("Ctrl-C cannot be handled") {
            tracing::error!(%error, "the server ends by a signal that cannot be handled");
        }
        "Ctrl-C"
    })
}
