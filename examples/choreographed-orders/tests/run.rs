//! The program runs embedded and on servers, prints what it says, and does nothing twice when it runs again.

use std::path::Path;
use std::process::Command;

/// How long an order may take here. On a machine that is slower than that it is undone, which is as right: the checks
/// below know neither the clock nor an order of what services do side by side.
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

/// The number in front of these words.
fn number(out: &str, words: &str) -> usize {
    let before = out.split(words).next().unwrap_or_default();
    let digits = before.rsplit(|letter: char| !letter.is_ascii_digit()).next().unwrap_or_default();
    if out.contains(words) { digits.parse().unwrap_or_else(|_| panic!("no number of{words} in\n{out}")) } else { 0 }
}

fn check(out: &str) {
    let late = number(out, " of them since they were not shipped in time");
    assert_eq!((number(out, " orders: "), number(out, " shipped, ") + late), (14, 12), "{out}");
    assert_eq!(number(out, " came to nothing"), 2 + late, "{out}");
    assert!(out.contains("dead letters: 0; wrong in the books: 0\n"), "{out}");
    for (name, either) in [
        ("duplicate", &["in the books: charge-card 1 time(s), 1000", "payments/charge-card barred"][..]),
        ("out of order", &["shipping/ship-order done"]),
        ("out of order", &["in the books: ship-order 1 time(s), 2"]),
        ("undo before do", &["is compensated\n"]),
        ("undo before do", &["payments/charge-card barred"]),
        ("undo before do", &["shipping/ship-order barred"]),
        ("late step after the undo", &["payments/charge-card rejected: 900000 cents are too much", "order-expired"]),
        // What declines the card may come to the stock before the order does.
        ("late step after the undo", &["in the books: release-stock 1 time(s), -2", "stock/reserve-stock barred"]),
        ("deadline", &["is compensated\n"]),
        ("deadline", &["    order-placed\n"]),
        ("deadline", &["    order-expired\n"]),
        ("deadline", &["stock/reserve-stock barred\n"]),
        ("deadline", &["in the books: refund-card 1 time(s), -1000", "payments/charge-card barred"]),
    ] {
        let said = part(out, name);
        assert!(either.iter().any(|one| said.contains(one)), "none of {either:?} of {name} in\n{out}");
    }
    let duplicate = part(out, "duplicate");
    assert!(duplicate.contains("is completed\n") || duplicate.contains("order-expired\n"), "{out}");
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

    let looked = |what: &[&str]| run(&[what, &["--data", folder.path().to_str().unwrap_or_default()]].concat());
    let listed = looked(&["list"]);
    assert!(listed.lines().any(|line| line.starts_with("deadline ") && line.contains(" compensated ")), "{listed}");
    assert_eq!(listed.lines().count(), 14 + 5 + 1, "each order, and the sum: {listed}");
    let shown = looked(&["show", "undo-before-do"]);
    assert!(shown.starts_with("undo-before-do is compensated\n"), "{shown}");
    assert!(shown.contains(" s  payments/charge-card barred\n"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn on_postgres_and_rabbitmq_it_is_the_same() {
    let database = saga_servers::shared::database("choreographed").await.unwrap_or_else(|error| panic!("{error}"));
    let vhost = saga_servers::shared::vhost("choreographed").await.unwrap_or_else(|error| panic!("{error}"));
    let (database, transport) = (database.url().to_owned(), vhost.url().to_owned());
    let args = ["--ship-within", SHIP_WITHIN, "--database", &database, "--transport", &transport];
    let out = tokio::task::block_in_place(|| run(&args));
    check(&out);
    let shown = tokio::task::block_in_place(|| run(&["show", "deadline", "--database", &database]));
    assert!(shown.starts_with("deadline is compensated\n") && shown.contains(" s  order-expired\n"), "{shown}");
}

#[test]
fn what_cannot_be_read_is_said() {
    let folder = tempfile::tempdir().unwrap_or_else(|error| panic!("{error}"));
    let nowhere = folder.path().to_str().unwrap_or_default();
    for (args, said) in [
        (&["--orders", "/nowhere"][..], "choreographed-orders: cannot read /nowhere: "),
        (&["list"], "choreographed-orders: say where the orders are: `--data DIR` or `--database URL`"),
        (&["show", "a", "--data", nowhere], "/shipping.db: "),
    ] {
        let ran = Command::new(env!("CARGO_BIN_EXE_choreographed-orders")).args(args).output();
        let ran = ran.unwrap_or_else(|error| panic!("{error}"));
        assert!(!ran.status.success());
        let err = String::from_utf8_lossy(&ran.stderr);
        assert!(err.contains(said), "{err}");
    }
}
