//! A saga that is a step of another one, whose steps other services do.

use saga_core::store::{RecordedOutcome, Status};
use saga_core::{Key, Outcome, Output, Saga, StepError, SubSaga, Tenant, saga_step};
use saga_tests::Books;

use super::meddler::Meddling;
use super::shop::{Order, Shop, contracts};

/// Charges the card and ships.
struct Delivery;

impl SubSaga for Delivery {
    const NAME: &'static str = "delivery";
    type Input = Order;
    type Output = i64;
}

/// Only an even sum is taken.
#[saga_step]
async fn book_order<S: Books>(
    tx: &mut S::Conn,
    order: Order,
    Output(parcel): Output<Delivery>,
) -> Result<(), StepError> {
    if order.cents % 2 == 1 {
        return Err(StepError::reject("an odd sum"));
    }
    S::add(tx, "booked", parcel).await?;
    Ok(())
}

pub(crate) fn subscription<S: Books>() -> Saga<S, Order> {
    let delivery = Saga::named("delivery").input::<Order>();
    let delivery = delivery.step::<contracts::charge_card>().step::<contracts::ship_order>();
    let delivery = delivery.returns::<contracts::ship_order>().build().unwrap();
    Saga::named("subscription").input::<Order>().sub_saga::<Delivery>(&delivery).step::<book_order>().build().unwrap()
}

async fn deliver<S: Books>(order: Order, meddling: Meddling) -> (Shop<S>, Outcome) {
    let shop = Shop::<S>::open(meddling).await;
    let running = shop.orders_runtime.start(&subscription(), "s-1", order).await.unwrap();
    let outcome = running.outcome().await.unwrap();
    shop.is_quiet().await;
    (shop, outcome)
}

async fn standing<S: Books>(shop: &Shop<S>, key: &str) -> Option<Status> {
    let saga = shop.orders.saga(&Tenant::default(), &Key::from_stored(key).unwrap()).await.unwrap();
    saga.map(|saga| saga.status)
}

async fn a_sub_saga_has_its_steps_done_by_other_services<S: Books>() {
    let (shop, outcome) = deliver::<S>(Order { cents: 12, heavy: false }, Meddling::default()).await;
    assert_eq!(outcome.to_string(), "completed");
    assert_eq!((shop.charged().await, shop.orders.counter("booked").await), (12, 7));
    assert_eq!(shop.payments.counter("s-1>delivery:charge-card").await, 1, "the key that the outside sees");
    let hosted = Key::from_stored("s-1>delivery>charge-card").unwrap();
    let records = shop.payments.records_of(&Tenant::default(), &hosted).await.unwrap();
    assert_eq!(records[0].outcome, RecordedOutcome::Done);
    shop.close().await;
}

/// Whether it is refused within the sub-saga or behind it, and however often each message comes.
async fn g5_what_other_services_did_for_a_sub_saga_is_undone<S: Books>() {
    for order in [Order { cents: 12, heavy: true }, Order { cents: 13, heavy: false }] {
        let meddling = Meddling { copies: 2, ..Meddling::default() };
        let (shop, outcome) = deliver::<S>(order.clone(), meddling).await;
        let Outcome::Compensated { failed_step, reason, .. } = outcome else { panic!("{outcome}") };
        let expected = if order.heavy { ("delivery", "too heavy") } else { ("book-order", "an odd sum") };
        assert_eq!((failed_step.as_str(), reason.message()), expected);
        assert_eq!((shop.charges().await, shop.refunds().await, shop.charged().await), (1, 1, 0));
        assert_eq!(standing(&shop, "s-1>delivery").await, Some(Status::Compensated));
        shop.close().await;
    }
}

saga_tests::on_every_pair!(
    a_sub_saga_has_its_steps_done_by_other_services,
    g5_what_other_services_did_for_a_sub_saga_is_undone,
);
