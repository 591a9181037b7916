//! How the program ends, and what is left.

use saga_reservations::{ReservationsClient, Reserve, State};
use saga_servers::Signal;

use crate::program::Program;

fn terminate(program: &Program) {
    let id = program.child.id().unwrap().to_string();
    let sent = std::process::Command::new("kill").args([format!("-{}", Signal::Term.name()), id]).status().unwrap();
    assert!(sent.success());
}

#[tokio::test]
async fn sigterm_ends_it_cleanly_and_the_next_process_has_the_reservations() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("reservations.db").display());
    let mut program = Program::serve(&store).await;
    let client = ReservationsClient::connect(&program.grpc).await.unwrap();
    client.set_capacity("seat", 2).await.unwrap();
    let held = client.reserve(Reserve::of("seat", 2).key("order-7")).await.unwrap();
    terminate(&program);
    let ended = program.child.wait().await.unwrap();
    assert!(ended.success(), "{ended}");
    // The connection is gone, and it is unknown whether an operation took effect.
    assert!(held.confirm().await.unwrap_err().refusal().is_none());

    let next = Program::serve(&store).await;
    let client = ReservationsClient::connect(&next.grpc).await.unwrap();
    let again = client.reserve(Reserve::of("seat", 2).key("order-7")).await.unwrap();
    assert_eq!(again.reservation(), held.reservation());
    assert_eq!(again.confirm().await.unwrap().state, State::Confirmed);
}
