//! A client in Python that knows only what the server says about itself.

use saga_reservations::ReservationsClient;
use saga_servers::python_with_grpcio;
use tokio::process::Command;

use crate::program::Program;

async fn grpcio(store: &str) {
    let program = Program::serve(store).await;
    let address = program.grpc.strip_prefix("http://").unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/client.py");
    let output = Command::new(python_with_grpcio().unwrap()).args([script, address]).output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let client = ReservationsClient::connect(&program.grpc).await.unwrap();
    let seats = client.resource("seat").await.unwrap().unwrap();
    assert_eq!((seats.confirmed, seats.held), (seats.capacity, 0));
}

#[tokio::test]
async fn grpcio_reserves_on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    grpcio(&format!("sqlite:{}", folder.path().join("reservations.db").display())).await;
}

#[tokio::test]
async fn grpcio_reserves_on_postgres() {
    let database = saga_servers::shared::database("reservations").await.unwrap();
    grpcio(database.url()).await;
}
