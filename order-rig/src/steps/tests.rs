use rusqlite::Connection;
use saga_core::{Output, State, StepContext, StepError};

use super::*;
use crate::{
    orders::{Address, Item, Product},
    outside::{Book, Dice, Outside, Services},
    shop,
};

fn order(quantity: i64) -> Order {
    let tea = Item { sku: "TEA".into(), quantity, unit_price_cents: 350, discount: 0.0 };
    let cup = Item { sku: "CUP".into(), quantity: 1, unit_price_cents: 900, discount: 0.0 };
    Order {
        order_id: "A-1".into(),
        customer: "C".into(),
        placed_on: "2024-01-01".into(),
        ship_to: Address { name: "N".into(), city: "C".into(), country: "Norway".into() },
        freight_cents: 1_000,
        total_cents: 350 * quantity + 900,
        items: vec![cup, tea],
    }
}

fn charge() -> Charge {
    Charge { order_id: "A-1".into(), amount_cents: 1_600 }
}

fn parcel() -> ShipmentRequest {
    ShipmentRequest { order_id: "A-1".into(), country: "Norway".into(), quoted_cents: 1_000 }
}

async fn shop() -> Connection {
    let mut conn = Connection::open_in_memory().expect("in memory");
    shop::migrate(&mut conn).await.expect("migrate");
    let product = |sku: &str| Product {
        sku: sku.into(),
        name: sku.into(),
        unit_price_cents: 1,
        in_stock: 5,
        discontinued: false,
    };
    shop::load_products(&mut conn, &[product("TEA"), product("CUP")]).await.expect("load");
    conn
}

fn text(conn: &Connection, sql: &str) -> String {
    conn.query_row(sql, [], |row| row.get(0)).expect(sql)
}

const STOCK: &str = "SELECT group_concat(sku || ' ' || in_stock) FROM (SELECT * FROM products ORDER BY sku)";
const RESERVED: &str = "SELECT group_concat(DISTINCT status) FROM reservations";
const STATUS: &str = "SELECT status || ' ' || coalesce(reason, '-') FROM orders";

#[track_caller]
fn reason<T>(result: Result<T, StepError>) -> String {
    let error = result.err().expect("it must be rejected");
    error.rejection().expect("it must be a rejection").message().to_owned()
}

#[tokio::test]
async fn stock_is_taken_and_put_back() {
    let mut conn = shop().await;
    place_order(&mut conn, order(2)).await.expect("placed");
    let reservation = reserve_stock(&mut conn, order(2)).await.expect("reserved");
    assert_eq!(text(&conn, STOCK), "CUP 4,TEA 3");
    assert_eq!(text(&conn, RESERVED), "open");
    release_stock(&mut conn, order(2), reservation).await.expect("released");
    assert_eq!(text(&conn, STOCK), "CUP 5,TEA 5");
    assert_eq!(text(&conn, RESERVED), "released");
}

#[tokio::test]
async fn what_is_not_there_is_rejected_by_its_name() {
    let mut conn = shop().await;
    place_order(&mut conn, order(6)).await.expect("placed");
    assert_eq!(reason(reserve_stock(&mut conn, order(6)).await), "out of stock: TEA");
}

#[tokio::test]
async fn an_order_that_comes_to_nothing_keeps_the_reason() {
    let mut conn = shop().await;
    place_order(&mut conn, order(2)).await.expect("placed");
    let ctx = StepContext::for_test("A-1:place-order:undo").with_failure("charge-card", "card declined");
    cancel_order(&mut conn, &ctx, order(2)).await.expect("cancelled");
    assert_eq!(text(&conn, STATUS), "cancelled card declined");
}

#[tokio::test]
async fn an_order_is_confirmed_unless_the_freight_is_far_too_dear() {
    let mut conn = shop().await;
    place_order(&mut conn, order(2)).await.expect("placed");
    reserve_stock(&mut conn, order(2)).await.expect("reserved");
    let shipment = |price_cents| Output::<book_shipment>(Shipment { shipment_id: 1, price_cents });
    let dear = confirm_order(&mut conn, order(2), shipment(1_501)).await;
    assert_eq!(reason(dear), "freight too dear: 1501 cents instead of 1000");
    assert_eq!(text(&conn, STATUS), "placed -");
    confirm_order(&mut conn, order(2), shipment(1_500)).await.expect("confirmed");
    assert_eq!(text(&conn, STATUS), "confirmed -");
    assert_eq!(text(&conn, RESERVED), "sold");
}

#[tokio::test]
async fn a_charge_and_a_shipment_are_undone_by_their_keys_whether_or_not_they_happened() {
    let folder = tempfile::tempdir().expect("a folder");
    let book = Book::open(&folder.path().join("outside.db")).expect("a book");
    let outside = Outside::InProcess(Services::new(book, Dice::new(1)));
    let (gateway, carrier) = (State(Gateway(outside.clone())), State(Carrier(outside.clone())));

    let ctx = StepContext::for_test("A-1:charge-card:undo");
    until_answered(|| refund_card(&ctx, charge(), None, gateway.clone())).await.expect("barred");
    let ctx = StepContext::for_test("A-1:charge-card");
    let late = until_answered(|| charge_card(&ctx, charge(), gateway.clone())).await;
    assert_eq!(reason(late), "this key was refunded, so nothing is charged under it");

    let ctx = StepContext::for_test("A-1:book-shipment:undo");
    until_answered(|| cancel_shipment(&ctx, parcel(), None, carrier.clone())).await.expect("barred");
    let ctx = StepContext::for_test("A-1:book-shipment");
    let late = until_answered(|| book_shipment(&ctx, parcel(), carrier.clone())).await;
    assert_eq!(reason(late), "this key was cancelled, so nothing is booked under it");
}

/// Asks again while the services outside break down, as the runtime does.
async fn until_answered<T>(mut ask: impl AsyncFnMut() -> Result<T, StepError>) -> Result<T, StepError> {
    loop {
        match ask().await {
            Err(error) if error.rejection().is_none() => {}
            answer => return answer,
        }
    }
}
