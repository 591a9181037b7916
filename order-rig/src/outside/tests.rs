use serde_json::{Value, json};

use super::{Book, Charge, Dice, Gateway, Hold, Journal, LateCalls, Manners, Outside, Reply, Services, Tally};

/// Services whose dice suit the test: it looks for a key on which they fall as needed.
struct House {
    services: Services,
    dice: Dice,
    _folder: tempfile::TempDir,
}

impl House {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let book = Book::open(&folder.path().join("outside.db")).expect("a book");
        let dice = Dice::new(1);
        Self { services: Services::new(book, dice), dice, _folder: folder }
    }

    /// A key under which the first `calls` calls meet fair weather.
    fn key(&self, declined: bool, calls: u32) -> String {
        Self::key_where(|key| {
            self.dice.declines(key) == declined
                && !self.dice.turns_away(key)
                && (1..=calls).all(|nth| self.dice.weather(key, nth) == super::Weather::Fair)
        })
    }

    fn key_where(holds: impl Fn(&str) -> bool) -> String {
        (0..100_000).map(|n| format!("order-{n}:step")).find(|key| holds(key)).expect("there are keys enough")
    }

    async fn charge(&self, key: &str, cents: i64) -> Reply {
        self.services.answer("/charges", key, json!({ "order_id": "A-1", "amount_cents": cents })).await
    }

    async fn refund(&self, key: &str, charge_key: &str, payment_id: Option<i64>) -> Reply {
        let refund = json!({ "order_id": "A-1", "charge_key": charge_key, "payment_id": payment_id });
        self.services.answer("/refunds", key, refund).await
    }

    async fn post(&self, path: &str, key: &str, body: Value) -> Reply {
        self.services.answer(path, key, body).await
    }

    /// What the journal says, in its order.
    fn events(&self) -> Vec<String> {
        let events = self.services.book.write(|tx| {
            let mut rows = tx.prepare("SELECT event FROM journal ORDER BY id")?;
            rows.query_map([], |row| row.get::<_, String>(0))?.collect::<rusqlite::Result<Vec<_>>>()
        });
        events.expect("the book can be read")
    }

    fn tally(&self) -> Tally {
        self.services.tally().expect("the book can be read")
    }
}

#[tokio::test]
async fn the_same_request_under_one_key_is_done_once_and_answered_again() {
    let house = House::new();
    let key = house.key(false, 3);
    let first = house.charge(&key, 700).await;
    assert_eq!((first.status, &first.body["amount_cents"]), (200, &json!(700)));
    assert_eq!(house.charge(&key, 700).await, first);
    assert_eq!(house.charge(&key, 800).await.status, 409, "another payload under the same key");
    let tally = house.tally();
    assert_eq!((tally.charged, tally.calls, tally.repeated, tally.replayed), (1, 3, 2, 1));
}

#[tokio::test]
async fn a_declined_card_stays_declined() {
    let house = House::new();
    let key = house.key(true, 2);
    assert_eq!(house.charge(&key, 700).await, Reply::error(402, "card declined"));
    assert_eq!(house.charge(&key, 700).await.status, 402);
    assert_eq!(house.tally().charged, 0);
}

#[tokio::test]
async fn a_refund_gives_back_what_was_charged_and_no_more() {
    let house = House::new();
    let charge_key = house.key(false, 1);
    let charged = house.charge(&charge_key, 700).await;
    let payment_id = charged.body["payment_id"].as_i64();
    let refund_key = House::key_where(|key| {
        key != charge_key && (1..=2).all(|nth| house.dice.weather(key, nth) == super::Weather::Fair)
    });
    assert_eq!(house.refund(&refund_key, &charge_key, payment_id).await.body, json!({ "refunded_cents": 700 }));
    assert_eq!(house.refund(&refund_key, &charge_key, payment_id).await.body, json!({ "refunded_cents": 700 }));
    let other_key = House::key_where(|key| {
        key != charge_key && key != refund_key && house.dice.weather(key, 1) == super::Weather::Fair
    });
    assert_eq!(house.refund(&other_key, &charge_key, payment_id).await.body, json!({ "refunded_cents": 0 }));
    assert_eq!(house.refund(&House::key_where(|key| key > "order-9"), &charge_key, Some(99)).await.status, 404);
    assert_eq!(house.tally().refunded, 1);
}

#[tokio::test]
async fn a_refund_of_a_key_never_seen_bars_it() {
    let house = House::new();
    let charge_key = house.key(false, 1);
    let refund_key = format!("{charge_key}:undo");
    // The weather may keep the first call from getting through, as it may anywhere.
    for _ in 0..4 {
        house.refund(&refund_key, &charge_key, None).await;
    }
    assert_eq!(house.charge(&charge_key, 700).await.status, 410);
    assert_eq!((house.tally().charged, house.tally().refunded), (0, 1));
}

#[tokio::test]
async fn an_answer_can_be_lost_after_the_card_was_charged_and_is_there_when_asked_again() {
    let house = House::new();
    let key = House::key_where(|key| {
        !house.dice.declines(key)
            && house.dice.weather(key, 1) == super::Weather::BreaksAfter
            && house.dice.weather(key, 2) == super::Weather::Fair
    });
    assert_eq!(house.charge(&key, 700).await.status, 500);
    assert_eq!(house.tally().charged, 1);
    assert_eq!(house.charge(&key, 700).await.status, 200);
    assert_eq!((house.tally().charged, house.tally().replayed), (1, 1));
}

#[tokio::test]
async fn a_call_outlives_a_caller_that_goes_away() {
    let house = House::new();
    let slow = std::time::Duration::from_secs(1);
    let key = House::key_where(|key| {
        let weather = house.dice.weather(key, 1);
        !house.dice.declines(key) && matches!(weather, super::Weather::Slow(time) if time > slow)
    });
    let gone = tokio::time::timeout(slow / 10, house.charge(&key, 700)).await;
    assert!(gone.is_err(), "the caller did not go away");
    assert_eq!(house.tally().charged, 0);
    while house.tally().charged == 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_shipment_is_booked_once_and_a_cancelled_key_is_barred() {
    let house = House::new();
    let key = house.key(false, 2);
    let parcel = json!({ "order_id": "A-1", "country": "Norway", "quoted_cents": 1000 });
    let booked = house.post("/shipments", &key, parcel.clone()).await;
    assert_eq!(booked.status, 200);
    assert_eq!(house.post("/shipments", &key, parcel.clone()).await, booked);
    let barred = House::key_where(|other| {
        other != key && !house.dice.turns_away(other) && house.dice.weather(other, 1) == super::Weather::Fair
    });
    for (nth, shipment_key) in [&key, &barred].into_iter().enumerate() {
        let cancellation = json!({ "order_id": "A-1", "shipment_key": shipment_key });
        for _ in 0..4 {
            house.post("/cancellations", &format!("cancel-{nth}"), cancellation.clone()).await;
        }
    }
    assert_eq!(house.post("/shipments", &barred, parcel).await.status, 410);
    assert_eq!((house.tally().booked, house.tally().cancelled), (1, 2));
}

#[tokio::test]
async fn what_makes_no_sense_is_refused() {
    let house = House::new();
    let key = house.key(false, 3);
    assert_eq!(house.post("/nowhere", &key, json!({})).await.status, 404);
    assert_eq!(house.post("/charges", &key, json!({ "order_id": 7 })).await.status, 400);
}

#[tokio::test]
async fn a_call_without_a_connection_certainly_did_nothing() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let gateway = Gateway(Outside::at(&format!("http://{address}")).expect("an address"));
    let charge = Charge { order_id: "A-1".to_owned(), amount_cents: 700 };
    let error = gateway.charge("A-1:charge-card", &charge).await.expect_err("the port is closed");
    assert_eq!(error.kind(), saga_core::StepErrorKind::NotSent, "{error}");
}

#[tokio::test]
async fn answers_are_sorted_into_done_no_and_unknown() {
    let house = House::new();
    let gateway = Gateway(Outside::InProcess(house.services.clone()));
    let charge = Charge { order_id: "A-1".to_owned(), amount_cents: 700 };
    let kind = async |key: &str| gateway.charge(key, &charge).await.map_err(|error| error.kind());
    assert!(kind(&house.key(false, 1)).await.is_ok());
    assert_eq!(kind(&house.key(true, 1)).await, Err(saga_core::StepErrorKind::Rejected));
    for weather in [super::Weather::BreaksBefore, super::Weather::BreaksAfter] {
        let key = House::key_where(|key| house.dice.weather(key, 1) == weather);
        assert_eq!(kind(&key).await, Err(saga_core::StepErrorKind::Transient));
    }
}

#[tokio::test]
async fn a_call_behind_its_undo_is_refused_or_carried_out_as_the_service_does() {
    for (late_calls, status, charged) in [(LateCalls::Refused, 410, 0), (LateCalls::CarriedOut, 200, 1)] {
        let mut house = House::new();
        house.services = house.services.with_manners(Manners { late_calls, ..Manners::default() });
        let key = house.key(false, 1);
        let undo = House::key_where(|undo| *undo != key && house.dice.weather(undo, 1) == super::Weather::Fair);
        assert_eq!(house.refund(&undo, &key, None).await.status, 200);
        assert_eq!(house.charge(&key, 700).await.status, status);
        assert_eq!(house.tally().charged, charged);
    }
}

#[tokio::test]
async fn a_call_that_is_held_lands_behind_its_undo_and_the_journal_says_so() {
    let mut house = House::new();
    let manners = Manners { held_per_mille: 1_000, late_calls: LateCalls::CarriedOut, journal: Journal::Calls };
    house.services = house.services.with_manners(manners);
    let dice = house.dice;
    let is_held = |key: &str| {
        let is_fair = dice.weather(key, 1) == super::Weather::Fair && !dice.declines(key);
        is_fair && dice.hold(key, 1, 1_000) == Hold::PastUndo
    };
    let key = House::key_where(is_held);
    // An undo does not wait for an undo.
    let undo = House::key_where(|undo| undo != key && is_held(undo));
    // Where the undo is there before the call is held, the call has nothing to wait for, and the journal another order.
    let undone = async {
        while !house.events().iter().any(|event| event == "held") {
            tokio::task::yield_now().await;
        }
        house.refund(&undo, &key, None).await
    };
    let (charged, refunded) = tokio::join!(house.charge(&key, 700), undone);
    assert_eq!((charged.status, refunded.status), (200, 200));
    let events = house.events();
    let place =
        |event: &str| events.iter().position(|it| it == event).unwrap_or_else(|| panic!("no {event}: {events:?}"));
    assert!(place("held") < place("barred") && place("barred") < place("took"), "{events:?}");
}
