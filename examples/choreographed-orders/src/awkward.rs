//! Planted faults: events that are published twice, too late or in the wrong order, directly through the transport.

use std::sync::atomic::{AtomicU64, Ordering};

use saga_core::Event;
use saga_core::Tenant;
use saga_core::store::{Headers, MessageId, MessageKind, Timestamp};
use saga_core::transport::{Message, Transport};
use uuid::Uuid;

use crate::books::Books;
use crate::events::{CardCharged, CardDeclined, Item, OrderPlaced, StockRejected, StockReserved};
use crate::shop::Shop;

/// A case: its name, the key of its order, and what was published.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) key: &'static str,
    pub(crate) done: &'static str,
}

/// Publishes as another program would: with its own ids, the same ones in each run.
struct Stranger<'a, T> {
    transport: &'a T,
    published: AtomicU64,
}

/// Distinguishes its ids from others.
const IDS: u128 = 0x6177_6b77_6172_6400_0000_0000_0000_0000;

impl<T: Transport> Stranger<'_, T> {
    async fn tells<E: Event>(&self, key: &str, event: &E) -> anyhow::Result<()> {
        let number = self.published.fetch_add(1, Ordering::Relaxed);
        let message = Message {
            id: MessageId(Uuid::from_u128(IDS | u128::from(number))),
            kind: MessageKind::Event,
            tenant: Tenant::default(),
            topic: E::NAME.to_owned(),
            key: key.to_owned(),
            event_type: E::NAME.to_owned(),
            payload: serde_json::to_vec(event)?,
            // A sender without a clock marks its message as new.
            committed_at: Timestamp(i64::MAX),
            headers: Headers::default(),
        };
        self.transport.publish(vec![message]).await.into_iter().collect::<Result<(), _>>()?;
        Ok(())
    }
}

/// Publishes every case.
///
/// # Errors
/// When the transport or a store fails.
///
/// # Cancel safety
/// If it is dropped, published events remain published.
pub(crate) async fn provoke<S: Books, T: Transport>(shop: &Shop<S>, transport: &T) -> anyhow::Result<Vec<Case>> {
    let stranger = Stranger { transport, published: AtomicU64::new(1) };
    let placed = |awaits_delivery| OrderPlaced {
        items: vec![Item { sku: "AWKWARD".to_owned(), quantity: 2 }],
        cents: 1_000,
        awaits_delivery,
    };

    let key = "duplicate";
    for _ in 0..3 {
        stranger.tells(key, &placed(false)).await?;
    }

    let key = "out-of-order";
    stranger.tells(key, &CardCharged { payment: "payment of 1000 for out-of-order".to_owned() }).await?;
    stranger.tells(key, &StockReserved { pieces: 2 }).await?;
    shop.knows(2, "out-of-order>ship-order").await?;
    stranger.tells(key, &placed(false)).await?;

    let key = "undo-before-do";
    stranger.tells(key, &StockRejected { reason: "told early".to_owned() }).await?;
    shop.knows(1, "undo-before-do>charge-card").await?;
    stranger.tells(key, &placed(false)).await?;
    // The card is declined for the other services as well; otherwise they would wait for a payment.
    stranger.tells(key, &CardDeclined { reason: "barred".to_owned() }).await?;

    let key = "late-after-undo";
    let expensive = OrderPlaced { cents: 900_000, ..placed(false) };
    stranger.tells(key, &expensive).await?;
    shop.settled(key).await?;
    stranger.tells(key, &expensive).await?;
    stranger.tells(key, &expensive).await?;

    stranger.tells("deadline", &placed(true)).await?;

    let case = |name, key, done| Case { name, key, done };
    Ok(vec![
        case("duplicate", "duplicate", "`order-placed` came three times, each time as another message"),
        case(
            "out of order",
            "out-of-order",
            "`card-charged` came before `stock-reserved`, and both before `order-placed`",
        ),
        case(
            "undo before do",
            "undo-before-do",
            "`stock-rejected` came before `order-placed`, whose card is to be charged",
        ),
        case("late step after the undo", "late-after-undo", "`order-placed` came twice after everything was undone"),
        case("deadline", "deadline", "a part of the order never arrives, so that it is not shipped in time"),
    ])
}
