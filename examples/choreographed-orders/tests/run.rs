//! The program runs embedded and on servers, prints what it says, and does nothing twice when it runs again.

use std::path::Path;
use std::process::Command;

/// How long an order may take here: the machine may be busy.
const SHIP_WITHIN: &str = "20";

fn run(args: &[&str]) -> String {
    let ran = Command::new(env!("CARGO_BIN_EXE_choreographed-orders")).args(args).output();
    let ran = ran.unwrap_or_else(|error| panic!("{error}"));
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{out}{err}");
    out.into_owned()
}

/// What is printed of one awkward order.
fn part<'a>(out: &'a str, name: &str) -> &'a str {
    let from = out.find(&format!("{name}: ")).unwrap_or_else(|| panic!("no {name} in\n{out}"));
    let rest = &out[from..];
    let next = rest.char_indices().find(|(at, _)| rest[*at..].starts_with('\n') && !rest[at + 1..].starts_with(' '));
    next.map_or(rest, |(at, _)| &rest[..at])
}

fn check(out: &str) {
    assert!(out.contains("14 orders: 12 shipped, 2 came to nothing\n"), "{out}");
    assert!(out.contains("dead letters: 0; wrong in the books: 0\n"), "{out}");
    for (name, said) in [
        ("duplicate", "is completed\n"),
        ("duplicate", "in the books: charge-card 1 time(s), 1000"),
        ("out of order", "shipping/ship-order done"),
        ("out of order", "in the books: ship-order 1 time(s), 2"),
        ("undo before do", "is compensated\n"),
        ("undo before do", "payments/charge-card barred"),
        ("undo before do", "shipping/ship-order barred"),
        ("late step after the undo", "payments/charge-card rejected: 900000 cents are too much for the card"),
        ("late step after the undo", "in the books: reserve-stock 1 time(s), 2"),
        ("deadline", "is compensated\n"),
        ("deadline", "    order-placed\n"),
        ("deadline", "    order-expired\n"),
        ("deadline", "stock/reserve-stock barred\n"),
        ("deadline", "in the books: refund-card 1 time(s), -1000"),
    ] {
        assert!(part(out, name).contains(said), "no {said:?} of {name} in\n{out}");
    }
    // The card is never charged behind its undo.
    assert!(!part(out, "undo before do").contains("in the books: charge-card"), "{out}");
}

#[test]
fn embedded_it_needs_nothing_and_does_nothing_twice() {
    let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let args = ["--ship-within", SHIP_WITHIN, "--data", folder.path().to_str().unwrap_or_default()];
    let first = run(&args);
    check(&first);
    assert!(Path::new(&folder.path().join("payments.db")).exists());
    let again = run(&args);
    let sums =
        |out: &str| out.lines().filter(|line| line.contains("in the books")).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(sums(&first), sums(&again), "the same orders are the same sagas");
    check(&again);
}

#[tokio::test(flavor = "multi_thread")]
async fn on_postgres_and_rabbitmq_it_is_the_same() {
    let database = saga_servers::shared::database("choreographed").await.unwrap_or_else(|error| panic!("{error}"));
    let vhost = saga_servers::shared::vhost("choreographed").await.unwrap_or_else(|error| panic!("{error}"));
    let (database, transport) = (database.url().to_owned(), vhost.url().to_owned());
    let args = ["--ship-within", SHIP_WITHIN, "--database", &database, "--transport", &transport];
    let out = tokio::task::block_in_place(|| run(&args));
    check(&out);
}

#[test]
fn what_cannot_be_read_is_said() {
    let ran = Command::new(env!("CARGO_BIN_EXE_choreographed-orders")).args(["--orders", "/nowhere"]).output();
    let ran = ran.unwrap_or_else(|error| panic!("{error}"));
    assert!(!ran.status.success());
    let err = String::from_utf8_lossy(&ran.stderr);
    assert!(err.contains("choreographed-orders: cannot read /nowhere: "), "{err}");
}
