use std::pin::pin;

use tokio::signal::unix::{SignalKind, signal};

/// The exit code of a program that was interrupted, as a shell says it.
pub(crate) const INTERRUPTED: u8 = 130;

/// Ready when the program is asked to end, by SIGINT or SIGTERM. A second time ends it at once.
pub(crate) async fn interrupted() {
    if !asked_to_end().await {
        // Without a handler a signal ends the program at once, which loses nothing either.
        std::future::pending::<()>().await;
    }
    tokio::spawn(async {
        if asked_to_end().await {
            std::process::exit(INTERRUPTED.into());
        }
    });
}

/// Waits for a signal; answers false where there is no waiting for one.
async fn asked_to_end() -> bool {
    let Ok(mut terminate) = signal(SignalKind::terminate()) else { return false };
    let interrupt = pin!(tokio::signal::ctrl_c());
    tokio::select! {
        asked = interrupt => asked.is_ok(),
        asked = terminate.recv() => asked.is_some(),
    }
}
