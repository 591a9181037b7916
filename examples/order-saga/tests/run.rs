//! The program is killed and run again, and the books of the shop agree with those of the services outside.
#![allow(clippy::expect_used, reason = "a test ends where something fails that is not under test")]

use std::collections::HashMap;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rusqlite::{Connection, OpenFlags};
use serde_json::Value;

/// The orders that the program brings along.
const ORDERS: &str = include_str!("../data/northwind-orders.jsonl");

fn program(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_order-saga"));
    command.current_dir(folder).args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// What the program prints; it must end with this exit code.
#[track_caller]
fn ran(folder: &Path, args: &[&str], code: i32) -> String {
    let Output { status, stdout, stderr } = program(folder, args).output().expect("the program starts");
    let said = format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert_eq!(status.code(), Some(code), "{said}");
    said
}

/// The shop's file, and the book of the services outside as `outside`.
fn books(folder: &Path) -> rusqlite::Result<Connection> {
    let conn = Connection::open_with_flags(folder.join("order-saga.db"), OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    conn.execute("ATTACH ?1 AS outside", [folder.join("order-saga.db.outside").to_string_lossy()])?;
    Ok(conn)
}

fn count(books: &Connection, sql: &str) -> rusqlite::Result<i64> {
    books.query_one(&format!("SELECT count(*) FROM {sql}"), [], |row| row.get(0))
}

/// How many pieces of each product stand in the orders that are confirmed.
fn sold(books: &Connection) -> HashMap<String, i64> {
    let mut sold = HashMap::new();
    for order in ORDERS.lines().map(|line| serde_json::from_str::<Value>(line).expect("an order")) {
        let status = "SELECT status FROM orders WHERE order_id = ?1";
        let status: String = books.query_one(status, [order["order_id"].as_str()], |row| row.get(0)).expect("a status");
        let items = order["items"].as_array().expect("items");
        for item in items.iter().filter(|_| status == "confirmed") {
            *sold.entry(item["sku"].as_str().expect("a product").to_owned()).or_default() +=
                item["quantity"].as_i64().expect("a quantity");
        }
    }
    sold
}

#[test]
fn killed_and_run_again_every_order_ends_and_nothing_happens_twice() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let mut killed = program(folder, &[]).spawn().expect("the program starts");
    let ended = || books(folder).and_then(|books| count(&books, "orders WHERE status <> 'placed'")).unwrap_or(0);
    // On a slow machine it may have ended before this test has seen it half done.
    while ended() < 20 && killed.try_wait().expect("a child").is_none() {}
    let _ = killed.kill();
    killed.wait().expect("it ends");

    let first = ran(folder, &[], 0);
    let books = books(folder).expect("the books");
    let count = |sql: &str| count(&books, sql).expect(sql);
    assert_eq!(count("orders WHERE status IN ('confirmed', 'cancelled')"), 830, "{first}");
    assert!(count("orders WHERE status = 'confirmed'") > 20, "{first}");
    assert!(count("orders WHERE reason = 'card declined' OR reason LIKE 'freight too dear%'") > 3, "{first}");

    // A confirmed order is charged and shipped, and no other order is.
    for step in ["charge-card", "book-shipment"] {
        let booking = format!("outside.bookings ON key = order_id || ':{step}' AND NOT undone");
        let wrong = format!("orders LEFT JOIN {booking} WHERE (status = 'confirmed') <> (id IS NOT NULL)");
        assert_eq!(count(&wrong), 0, "{step}");
    }
    let charge = "outside.bookings ON key = order_id || ':charge-card'";
    assert_eq!(count(&format!("orders JOIN {charge} AND cents <> total_cents WHERE status = 'confirmed'")), 0);
    // What is not on the shelves any more was sold.
    let mut sold = sold(&books);
    let mut left = books.prepare("SELECT sku, in_stock_at_first - in_stock FROM products").expect("products");
    let left = left.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?))).expect("rows");
    for (sku, gone) in left.map(|row| row.expect("a row")) {
        assert_eq!(sold.remove(&sku).unwrap_or(0), gone, "{sku}");
    }

    let second = ran(folder, &[], 0);
    assert!(second.lines().any(|line| line.split_whitespace().eq(["already", "known", "830"])), "{second}");
    let results = |said: &str| {
        let ended = said.lines().skip_while(|line| !line.starts_with("completed"));
        ended.take_while(|line| !line.starts_with("elapsed")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(results(&first), results(&second));
    let completed = ran(folder, &["list", "--status", "completed"], 0);
    assert_eq!(i64::try_from(completed.lines().count()), Ok(count("orders WHERE status = 'confirmed'")));
    let order = completed.split_whitespace().next().expect("an order");
    let shown = ran(folder, &["show", order], 0);
    assert!(shown.contains("create-order version 1): completed") && shown.contains("charge-card      done"), "{shown}");

    // The shop still knows an order whose saga is gone.
    ran(folder, &["retention", "purge", order, "--reason", "a request of the customer"], 0);
    let confirmed = count("orders WHERE status = 'confirmed'");
    let third = ran(folder, &[], 0);
    assert!(third.contains("placed before"), "{third}");
    assert_eq!(count("orders WHERE status = 'confirmed'"), confirmed);
}

/// The wait for the other process ends; the test does not let it have the file.
#[test]
fn a_second_program_on_the_file_ends_with_an_error_that_names_the_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    // A lock of this process stands for the other program.
    let lock = std::fs::File::create(folder.join("order-saga.db.lock")).expect("a file");
    lock.lock().expect("a lock");
    std::fs::write(folder.join("order-saga.db.lock"), "4711").expect("a file");
    let said = ran(folder, &[], 2);
    assert!(said.contains("waiting for another process that works on "), "{said}");
    assert!(said.contains("order-saga: ") && said.contains("process 4711 works on "), "{said}");
    assert!(said.contains("did not end within 5s") && said.contains("end that process"), "{said}");
}

#[test]
fn what_cannot_be_used_is_said_in_a_sentence() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let order = ORDERS.lines().next().expect("an order");
    let unpaid = order.replace("\"freight_cents\": ", "\"freight_cents\": -");
    let lines = [order, "{", &order.replace("NW-011", "NW-999"), &order.replace("VINET", "OTHER"), &unpaid, ""];
    let text = [b"\xef\xbb\xbf", lines.join("\n").as_bytes(), b"{\"order_id\": \"\xff\"}"].concat();
    std::fs::write(folder.join("orders.jsonl"), text).expect("a file");
    let said = ran(folder, &["run", "--orders", "orders.jsonl"], 1);
    for sentence in [
        "orders.jsonl:2: EOF while parsing an object (column 1)\n",
        "orders.jsonl:3: the order asks for the unknown product NW-999\n",
        "orders.jsonl:4: the key `NW-10248` belongs to a saga that was started with another payload",
        "orders.jsonl:5: the order has an amount of -",
        "orders.jsonl:6: invalid unicode code point (column ",
        "refused: 5; correct these lines and run the file again: what is known is not run twice\n",
    ] {
        assert!(said.contains(sentence), "no {sentence:?} in\n{said}");
    }
    assert!(
        ran(folder, &["run", "--orders", "none.jsonl"], 2).contains("order-saga: cannot read none.jsonl: No such file")
    );
    assert!(ran(folder, &["run", "--order", "none.jsonl"], 2).contains("similar argument exists: '--orders'"));
    let said = ran(folder, &["list", "--store", "none.db"], 2);
    assert_eq!(said, "order-saga: there is no none.db; `order-saga run` makes it\n");
}

#[test]
fn a_reader_that_closed_the_pipe_does_not_stop_the_orders() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let order = ORDERS.lines().next().expect("an order");
    std::fs::write(folder.join("orders.jsonl"), format!("{{\n{order}\n")).expect("a file");
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let mut command = program(folder, &["run", "--orders", "orders.jsonl"]);
    let mut running =
        command.stdout(writer.try_clone().expect("a pipe")).stderr(writer).spawn().expect("the program starts");
    drop((command, reader));
    assert_eq!(running.wait().expect("the program").code(), Some(1), "one line is refused, and nothing else fails");
    assert_eq!(count(&books(folder).expect("the books"), "orders WHERE status <> 'placed'").expect("a count"), 1);
}
