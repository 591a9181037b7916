//! Bad input of every kind: each line is refused by file and line, and what cannot be used is said in one sentence.

use crate::support::{PRODUCTS, Ran, Shop, number};
use rusqlite::Connection;
use serde_json::{Value, json};

fn order(id: &str) -> Value {
    json!({
        "order_id": id, "customer": "C", "placed_on": "2024-01-01",
        "ship_to": { "name": "N", "city": "C", "country": "L" }, "freight_cents": 100,
        "items": [{ "sku": "TEA", "quantity": 1, "unit_price_cents": 350, "discount": 0.0 }], "total_cents": 350
    })
}

fn with(id: &str, pointer: &str, value: Value) -> Value {
    let mut changed = order(id);
    *changed.pointer_mut(pointer).expect("a field") = value;
    changed
}

fn tea_shop() -> Shop {
    let shop = Shop::new();
    let tea = json!({ "sku": "TEA", "name": "Tea", "unit_price_cents": 350, "in_stock": 1000, "discontinued": false });
    shop.write("tea.jsonl", tea.to_string());
    shop
}

const RUN: [&str; 5] = ["--json", "--products", "tea.jsonl", "--orders", "some.jsonl"];

#[test]
fn what_is_wrong_is_refused_by_file_and_line_and_the_others_run() {
    let shop = tea_shop();
    let lines = [
        (order("A-1").to_string(), ""),
        ("{\"order_id\": \"A-2\", ".to_owned(), "not an order in JSON"),
        (with("A-3", "/items/0/sku", json!("POT")).to_string(), "asks for the unknown product \"POT\""),
        (with("A-4", "/items/0/quantity", json!(-1)).to_string(), "the quantity must be positive"),
        (with("A-5", "/total_cents", json!(351)).to_string(), "says a total of 351 cents, but its items add up to 350"),
        (with("A-1", "/customer", json!("D")).to_string(), "order A-1 stands on line 1 with another content"),
        (order("A-1").to_string(), ""),
        (with("", "/customer", json!("D")).to_string(), "the order_id cannot be used"),
        (order("A>6").to_string(), "the order_id cannot be used"),
        (order(&"A".repeat(200)).to_string(), "the order_id cannot be used"),
        (with("A-7", "/items", json!([])).to_string(), "has no items"),
        (with("A-8", "/items/0/quantity", json!(1e300)).to_string(), "not an order in JSON"),
        (String::new(), ""),
        (order("A-9").to_string(), ""),
    ];
    let text: Vec<_> = lines.iter().map(|(line, _)| line.as_str()).collect();
    shop.write("some.jsonl", text.join("\n"));
    let ran = shop.run(&RUN);
    assert_eq!(ran.code, 1, "a person is to look at what was refused\n{ran}");
    for ((_, said), number) in lines.iter().zip(1..) {
        let line = ran.err.lines().find(|line| line.contains(&format!("some.jsonl:{number}: ")));
        match line {
            Some(line) => assert!(!said.is_empty() && line.contains(said), "line {number}: {line}"),
            None => assert!(said.is_empty(), "nothing was said about line {number}\n{ran}"),
        }
    }
    let json = ran.json();
    let counts = ["orders", "started", "already_started", "refused", "completed"].map(|field| number(&json, field));
    assert_eq!(counts, [13, 2, 1, 10, 2], "{json}");
    shop.verify();
}

#[test]
fn an_order_that_was_run_before_with_another_content_is_refused() {
    let shop = tea_shop();
    shop.write("some.jsonl", order("A-1").to_string());
    assert_eq!(shop.run(&RUN).code, 0);
    let before = shop.everything();
    shop.write("some.jsonl", format!("\n{}\n{}", with("A-1", "/customer", json!("D")), order("A-2")));
    let ran = shop.run(&RUN);
    assert_eq!(ran.code, 1, "a person is to look at what was refused\n{ran}");
    assert!(ran.err.contains("some.jsonl:2: ") && ran.err.contains("customer"), "{ran}");
    let json = ran.json();
    assert_eq!((number(&json, "refused"), number(&json, "started")), (1, 1), "{json}");
    assert!(shop.everything().contains(before.lines().find(|line| line.starts_with("orders ")).expect("an order")));
    shop.verify();
}

#[test]
fn a_bad_product_is_named_and_orders_for_it_are_refused() {
    let shop = tea_shop();
    let tea = std::fs::read_to_string(shop.path("tea.jsonl")).expect("tea");
    shop.write("tea.jsonl", format!("{tea}\nnonsense\n{}", tea.replace("TEA", "POT").replace("1000", "-1")));
    shop.write("some.jsonl", format!("{}\n{}", order("A-1"), with("A-2", "/items/0/sku", json!("POT"))));
    let ran = shop.run(&RUN);
    assert!(ran.err.contains("tea.jsonl:2: not a product in JSON"), "{ran}");
    assert!(ran.err.contains("tea.jsonl:3: product POT has -1 in stock"), "{ran}");
    assert!(ran.err.contains("some.jsonl:2: order A-2 asks for the unknown product"), "{ran}");
    assert_eq!((number(&ran.json(), "refused"), number(&ran.json(), "completed")), (1, 1), "{ran}");
    assert_eq!(ran.code, 1, "a person is to look at what was refused\n{ran}");
    assert!(ran.err.contains("refused: 3; mend those lines"), "a line of orders, and two of products\n{ran}");
}

#[test]
fn a_store_that_cannot_be_used_is_said_in_one_sentence() {
    let shop = Shop::new();
    for command in [&["run"][..], &["verify"], &["list"], &["show", "NW-10248"]] {
        let with = |store: &str| shop.run(&[command, &["--store", store]].concat());
        with("mysql://user:secret@host/shop").is_unusable("knows the schemes sqlite: and postgres:");
        with("shop.db").is_unusable("takes a URL such as sqlite:order-rig.db");
        shop.write("prose.db", "This is no database, however long the text in it may be.".repeat(100));
        with("sqlite:prose.db").is_unusable("prose.db");
        with("sqlite:no/such/folder/shop.db").is_unusable("no/such/folder/shop.db");
    }
    assert!(!shop.path("prose.db.outside.db").exists(), "it left something beside a file that is not its own");
}

#[test]
fn what_else_cannot_be_used_is_said_in_one_sentence() {
    let shop = Shop::new();
    shop.run(&["--transport", "nats://user:secret@host"])
        .is_unusable("--transport knows memory:, amqp: and sqs:, but not nats:");
    shop.run(&["--outside", "ftp://host"]).is_unusable("--outside takes an address such as http://127.0.0.1:8080");
    shop.run(&["--outside", "http://127.0.0.1:1", "--wait-for-outside", "100ms"])
        .is_unusable("the services outside do not answer");
    shop.run(&["--orders", "missing.jsonl"]).is_unusable("cannot read missing.jsonl");
    shop.run(&["--products", "missing.jsonl"]).is_unusable("cannot read missing.jsonl");
    for command in [&["verify"][..], &["pause", "nobody", "--reason", "why"]] {
        shop.run(command).is_unusable("there is no order-rig.db; `order-rig run` makes it");
    }
    for args in [&["--concurrency", "0"][..], &["--concurrency", "many"], &["--seed", "-1"], &["dance"], &["show"]] {
        assert_eq!(shop.run(args).code, 2, "{args:?}");
    }
    let misplaced = shop.run(&["--store", "sqlite:order-rig.db", "list"]);
    assert_eq!(misplaced.code, 2, "{misplaced}");
    assert!(misplaced.err.contains("tip: options stand behind the subcommand"), "{misplaced}");
    assert!(std::fs::read_dir(shop.path("")).expect("the folder").next().is_none(), "it left something behind");
}

#[test]
fn a_store_or_a_shop_of_a_newer_program_is_left_alone() {
    let shop = tea_shop();
    shop.write("some.jsonl", order("A-1").to_string());
    assert_eq!(shop.run(&RUN).code, 0);
    let damage = |sql: &str| {
        let conn = Connection::open(shop.path("order-rig.db")).expect("the store");
        conn.execute_batch(sql).expect("it is changed");
    };
    damage("INSERT INTO shop_migrations VALUES (99)");
    shop.run(&RUN).is_unusable("the shop's tables have version 99");
    damage("DELETE FROM shop_migrations WHERE version = 99");
    damage("INSERT INTO saga_migrations (number, name, applied_at) VALUES (99, 'later', 0)");
    for command in ["run", "verify", "list"] {
        shop.run(&[command]).is_unusable("order-rig.db has schema 99, written by a newer version");
    }
    damage("DELETE FROM saga_migrations WHERE number = 99");
    assert_eq!(shop.run(&RUN).code, 0);
}

#[test]
fn a_folder_that_cannot_be_written_is_said_in_one_sentence() {
    let shop = Shop::new();
    // The tests may run as root, but not even root can write into /proc.
    let ran: Ran = shop.run(&["--store", "sqlite:/proc/order-rig.db"]);
    ran.is_unusable("/proc/order-rig.db");
}

#[test]
fn the_real_products_are_all_good() {
    let shop = Shop::new();
    shop.write("none.jsonl", "");
    let ran = shop.run(&["--json", "--orders", "none.jsonl", "--products", PRODUCTS]);
    assert_eq!((ran.code, number(&ran.json(), "orders")), (0, 0), "{ran}");
    assert_eq!(number(&shop.verify(), "products"), 77);
}
