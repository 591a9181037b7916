//! Orders that were stored by either version can be finished by the program as it is now. `UPDATE_GOLDEN=1` makes the
//! files anew.

use order_versions::{
    Carrier, Order, Payment, Reserved, book_carrier, changed, charge_card, reserve_stock, take_stock, version_1,
    version_2, weigh_order,
};
use saga_testkit::golden::{Golden, GoldenError};

fn file(name: &str) -> String {
    format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn order() -> Order {
    Order { key: "order-1".to_owned(), pieces: 3 }
}

fn payment() -> Payment {
    Payment { receipt: "order-1 for 3".to_owned() }
}

#[tokio::test]
async fn stored_orders_of_the_first_version_can_be_finished() {
    let version_1 = version_1().unwrap_or_else(|error| panic!("{error}"));
    let golden = Golden::of(&version_1, &order()).returns::<take_stock>(&3).returns::<charge_card>(&payment());
    golden.check(file("create-order-v1.json")).await.unwrap_or_else(|error| panic!("{error}"));
}

#[tokio::test]
async fn stored_orders_of_the_second_version_can_be_finished() {
    let version_2 = version_2().unwrap_or_else(|error| panic!("{error}"));
    let golden = Golden::of(&version_2, &order())
        .returns::<reserve_stock>(&Reserved { pieces: 3, shelf: "A 4".to_owned() })
        .returns::<weigh_order>(&750)
        .returns::<charge_card>(&payment())
        .returns::<book_carrier>(&Carrier { name: "Ada".to_owned() });
    golden.check(file("create-order-v2.json")).await.unwrap_or_else(|error| panic!("{error}"));
}

#[tokio::test]
async fn a_version_that_changed_is_told_to_become_another() {
    let changed = changed().unwrap_or_else(|error| panic!("{error}"));
    let golden = Golden::of(&changed, &order()).returns::<take_stock>(&3).returns::<weigh_order>(&750);
    let Err(error) = golden.verify(file("create-order-v1.json")).await else { panic!("it was taken") };
    assert!(matches!(error, GoldenError::Changed { .. }), "{error}");
    let said = error.to_string();
    assert!(said.contains("`weigh-order` was added behind `take-stock`"), "{said}");
    assert!(said.contains("give the changed ones `.version(2)` and a file of their own"), "{said}");
}
