//! The order saga crashed at every boundary, each step and undo run twice, each step failed in turn: the shop's own audit
//! judges each of these runs.

use std::sync::Arc;

use async_trait::async_trait;
use order_rig::{
    orders::{Address, Item, Order, Product},
    outside::{Book, Carrier, Dice, Gateway, Outside, Services, Weather},
    place::{Place, SqlitePlace, read_book},
    saga::create_order,
    shop,
    verify::{Books, audit},
};
use saga_core::{Saga, engine::RuntimeBuilder};
use saga_sqlite::{SqliteOptions, SqliteStore};
use saga_testkit::VirtualTime;
use saga_testkit::explore::{Ended, Explore, Explored, explore};
use tempfile::TempDir;

struct OrderSaga {
    order: Order,
}

/// A shop with one product, and the services outside.
struct World {
    place: SqlitePlace,
    store: SqliteStore,
    outside: Outside,
    _folder: TempDir,
}

#[async_trait]
impl Explore for OrderSaga {
    type Store = SqliteStore;
    type Input = Order;
    type World = World;

    fn saga(&self) -> Saga<SqliteStore, Order> {
        create_order().expect("it is valid")
    }

    fn input(&self) -> Order {
        self.order.clone()
    }

    async fn fresh(&self, time: &VirtualTime) -> World {
        let folder = tempfile::tempdir().expect("a folder");
        let place = SqlitePlace(folder.path().join("shop.db"));
        let options = SqliteOptions::new(&place.0).test_clock(time.environment());
        let store = SqliteStore::open_with(options).await.expect("a store");
        let mut conn = place.open_shop().await.expect("a shop");
        shop::migrate(&mut conn).await.expect("tables");
        let tea =
            Product { sku: "TEA".into(), name: "Tea".into(), unit_price_cents: 350, in_stock: 5, discontinued: false };
        shop::load_products(&mut conn, &[tea]).await.expect("products");
        let book = Book::open(&place.outside()).expect("a book");
        World { place, store, outside: Outside::InProcess(Services::new(book, dice())), _folder: folder }
    }

    fn store(&self, world: &World) -> Arc<SqliteStore> {
        Arc::new(world.store.clone())
    }

    fn states(
        &self,
        world: &World,
        runtime: RuntimeBuilder<Explored<SqliteStore>>,
    ) -> RuntimeBuilder<Explored<SqliteStore>> {
        runtime.state(Gateway(world.outside.clone())).state(Carrier(world.outside.clone()))
    }

    async fn audit(&self, world: &World, ended: &Ended) -> Result<(), String> {
        let mut shop = world.place.open_shop_read_only().await.map_err(|error| error.to_string())?;
        let mut outside = read_book(&world.place.outside()).map_err(|error| error.to_string())?;
        let judged = audit(&Books::read(&mut shop, &mut outside).await.map_err(|error| error.to_string())?);
        let confirmed = usize::from(*ended == Ended::Completed);
        if judged.findings.is_empty() && judged.confirmed == confirmed {
            Ok(())
        } else {
            Err(format!("{ended:?}, but {judged:?}"))
        }
    }
}

fn dice() -> Dice {
    Dice::new(1)
}

/// An order that nothing befalls outside: what disturbs it is the exploration alone.
fn order() -> Order {
    let fair = |key: &str| (1..=8).all(|nth| dice().weather(key, nth) == Weather::Fair);
    let untroubled = |id: &String| {
        let (charge, book) = (format!("{id}:charge-card"), format!("{id}:book-shipment"));
        [&charge, &book].into_iter().all(|key| fair(key) && fair(&format!("{key}:undo")))
            && !dice().declines(&charge)
            && !dice().turns_away(&book)
            && dice().price_percent(&book) <= 150
    };
    let order_id =
        (0..1_000).map(|n| format!("A-{n}")).find(untroubled).expect("one order in a thousand is untroubled");
    Order {
        order_id,
        customer: "C".into(),
        placed_on: "2024-01-01".into(),
        ship_to: Address { name: "N".into(), city: "C".into(), country: "Norway".into() },
        freight_cents: 1_000,
        items: vec![Item { sku: "TEA".into(), quantity: 2, unit_price_cents: 350, discount: 0.0 }],
        total_cents: 700,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_crash_and_no_failure_leaves_an_order_half_done() {
    let report = explore(OrderSaga { order: order() }).await.unwrap_or_else(|failures| panic!("{failures}"));
    println!("{report}");
    for step in ["place-order", "reserve-stock", "charge-card", "book-shipment", "confirm-order"] {
        assert!(report.boundaries().iter().any(|boundary| boundary.contains(step)), "{:?}", report.boundaries());
    }
    assert!(report.crashes() > 40 && report.completed() > 20 && report.compensated() > 20, "{report}");
}
