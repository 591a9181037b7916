//! Trips over HTTP, on SQLite, PostgreSQL and RabbitMQ: booked as a whole, or not at all.
#![allow(clippy::unwrap_used, reason = "a test says what it expects by failing")]

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use saga_core::memory::MemoryTransport;
use saga_core::store::IdempotencyKeys;
use saga_core::transport::Transport;
use saga_core::{Runtime, Saga, StepPhase, Wait};
use saga_sql::{SqlConn as _, SqlStore};
use saga_sqlite::SqliteStore;
use serde_json::{Value, json};
use tower::ServiceExt as _;
use travel::app::{Trips, start_hotels, start_trips};
use travel::companies::{Companies, NO_ANSWER, NO_FLIGHTS};
use travel::hotels::{book_room, create_tables};
use travel::http::routes;
use travel::providers::Providers;
use travel::trip::{Approval, Itinerary, Stay};

/// Both services, each with its own store.
struct Agency<S: SqlStore> {
    app: Router,
    trips: Arc<Trips<S>>,
    hotels: Runtime<S>,
    companies: Companies,
}

impl<S: SqlStore + IdempotencyKeys> Agency<S> {
    async fn open(trips: S, hotels: S, transport: impl Transport + Clone) -> Self {
        let companies = Companies::default();
        let providers = Providers::at(companies.listen().await.unwrap()).unwrap();
        let hotels = start_hotels(hotels, transport.clone()).await.unwrap();
        let trips = start_trips(trips, transport, providers).await.unwrap();
        Self { app: routes(&trips, std::future::pending()), trips, hotels, companies }
    }

    async fn send(&self, method: &str, path: &str, key: Option<&str>, body: Option<&Value>) -> (StatusCode, String) {
        let mut request = Request::builder().method(method).uri(path).header("content-type", "application/json");
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        let answer = self.app.clone().oneshot(request.body(body).unwrap()).await.unwrap();
        let status = answer.status();
        (status, String::from_utf8(to_bytes(answer.into_body(), usize::MAX).await.unwrap().to_vec()).unwrap())
    }

    /// Books a trip, with its number as the key of the request.
    async fn book(&self, id: &str, trip: &Value) -> StatusCode {
        let mut trip = trip.clone();
        trip["id"] = id.into();
        self.send("POST", "/trips", Some(id), Some(&trip)).await.0
    }

    /// The itinerary, or why there is none; it waits for the end.
    async fn itinerary(&self, key: &str) -> Result<Itinerary, String> {
        let (status, text) = self.send("GET", &format!("/trips/{key}/itinerary"), None, None).await;
        if status == StatusCode::OK { Ok(serde_json::from_str(&text).unwrap()) } else { Err(text) }
    }
}

async fn number<S: SqlStore>(store: &Arc<S>, sql: &'static str) -> i64 {
    let read = async move |conn: &mut S::Conn| Ok::<i64, anyhow::Error>(conn.query_one(sql, &[]).await?);
    store.transaction(read).await.unwrap()
}

fn trip(to: &str, budget_cents: i64) -> Value {
    let leg = |from: &str, to: &str, day: &str| json!({ "from": from, "to": to, "day": day });
    json!({
        "traveller": "Ada",
        "legs": [leg("Bergen", to, "2027-03-01"), leg(to, "Bergen", "2027-03-04")],
        "hotel": { "city": "Oslo", "nights": 3 },
        "car": "Oslo",
        "budget_cents": budget_cents,
    })
}

const CREDIT: &str = "SELECT credit_cents FROM travellers WHERE name = 'Ada'";
const CARS: &str = "SELECT count(*) FROM cars WHERE trip IS NOT NULL";

/// All that a trip may come to. Two flights and three nights cost 51,000 cents; Ada has a credit of 1,000,000.
async fn trips_are_booked_as_a_whole_or_not_at_all<S: SqlStore + IdempotencyKeys>(agency: Agency<S>) {
    let trips = agency.trips.runtime.store();
    // Booked. The airline does not answer the first call for a flight to Limbo, and is asked what became of it.
    let cheap = trip(NO_ANSWER, 60_000);
    assert_eq!(agency.book("trip-1", &cheap).await, StatusCode::ACCEPTED);
    let booked = agency.itinerary("trip-1").await.unwrap();
    assert_eq!((booked.tickets.len(), booked.cost_cents), (2, 51_000));
    assert_eq!((booked.room.as_str(), booked.car.as_deref()), ("Oslo 1", Some("OS 4711")));
    assert_eq!(agency.companies.airline.calls("trip-1:book-flight#1"), 1);
    assert_eq!(agency.companies.mail.booked(), ["trip-1:send-itinerary"]);
    assert_eq!(number(trips, CREDIT).await, 949_000);

    // Sent again, it is the same trip, also with another key; another trip with the same key or number is refused.
    assert_eq!(agency.book("trip-1", &cheap).await, StatusCode::ACCEPTED);
    let mut again = cheap.clone();
    again["id"] = "trip-1".into();
    assert_eq!(agency.send("POST", "/trips", Some("again"), Some(&again)).await.0, StatusCode::ACCEPTED);
    assert_eq!(agency.book("trip-1", &trip("Rome", 60_000)).await, StatusCode::UNPROCESSABLE_ENTITY);
    again["car"] = Value::Null;
    let (status, text) = agency.send("POST", "/trips", Some("other"), Some(&again)).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{text}");
    assert_eq!(agency.send("POST", "/trips", None, Some(&again)).await.0, StatusCode::BAD_REQUEST);
    assert_eq!(agency.send("GET", "/sagas/trip-9", None, None).await.0, StatusCode::NOT_FOUND);

    // There is no flight to Atlantis, and the only car is taken: what was booked before is undone. A budget may be too small for
    // the trip, or larger than the credit.
    let mut walk = trip("Rome", 40_000);
    walk["car"] = Value::Null;
    for (key, trip, why) in [
        ("trip-2", trip(NO_FLIGHTS, 60_000), "no flight goes to Atlantis"),
        ("trip-3", trip("Rome", 60_000), "no car is free in Oslo"),
        ("trip-4", walk.clone(), "the trip costs 51000 cents, and the budget is 40000"),
        ("trip-5", trip("Rome", 2_000_000), "Ada has not enough credit"),
    ] {
        assert_eq!(agency.book(key, &trip).await, StatusCode::ACCEPTED);
        let refused = agency.itinerary(key).await.unwrap_err();
        assert!(refused.contains(why), "{refused}");
    }

    // An expensive trip waits for a manager. One is approved, one is not, one is given up by the traveller.
    walk["budget_cents"] = 300_000.into();
    for (key, approved) in [("trip-6", Some(true)), ("trip-7", Some(false)), ("trip-8", None)] {
        assert_eq!(agency.book(key, &walk).await, StatusCode::ACCEPTED);
        let ended = if let Some(approved) = approved {
            let answer = json!({ "id": "form-1", "approval": { "approved": approved, "by": "Grace" } });
            agency.send("POST", &format!("/trips/{key}/approval"), None, Some(&answer)).await
        } else {
            agency.send("DELETE", &format!("/trips/{key}"), None, None).await
        };
        assert_eq!(ended.0, StatusCode::OK, "{}", ended.1);
    }
    // What cannot be is refused for good, so that no client tries it again.
    let unnamed = json!({ "id": "", "approval": { "approved": true, "by": "Grace" } });
    let (status, text) = agency.send("POST", "/trips/trip-6/approval", None, Some(&unnamed)).await;
    assert_eq!(status, StatusCode::CONFLICT, "{text}");
    assert_eq!(agency.book("trip-9", &trip("Rome", -1)).await, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(agency.itinerary("trip-6").await.unwrap().car, None);
    assert!(agency.itinerary("trip-7").await.unwrap_err().contains("not approved by Grace"));
    assert!(agency.itinerary("trip-8").await.unwrap_err().contains("the traveller gave it up"));
    let (status, text) = agency.send("DELETE", "/trips/trip-6", None, None).await;
    assert_eq!(status, StatusCode::CONFLICT, "{text}");
    let (_, shown) = agency.send("GET", "/sagas/trip-7", None, None).await;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["status"], "compensated", "{shown}");
    assert!(shown["problem"]["detail"].as_str().unwrap().contains("not approved by Grace"), "{shown}");

    // Two trips are booked, and nothing is left of the others.
    assert_eq!(number(trips, "SELECT count(*) FROM bookings WHERE status = 'confirmed'").await, 2);
    assert_eq!(number(trips, "SELECT count(*) FROM bookings WHERE status = 'open'").await, 0);
    assert_eq!(number(trips, CREDIT).await, 1_000_000 - 2 * 51_000);
    assert_eq!(number(trips, CARS).await, 1);
    assert_eq!(agency.companies.airline.booked().len(), 4);
    assert_eq!(agency.companies.insurer.booked(), ["trip-1>rent-car:insure-car"]);
    assert_eq!(number(agency.hotels.store(), "SELECT CAST(sum(free) AS BIGINT) FROM hotels").await, 101 - 2);
    let taken = "SELECT count(*) FROM numbered_rooms WHERE booking IS NOT NULL";
    assert_eq!(number(agency.hotels.store(), taken).await, 2);
    agency.trips.runtime.shutdown().await;
    agency.hotels.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_sqlite() {
    let folder = tempfile::tempdir().unwrap();
    let open = async |name: &str| SqliteStore::open(folder.path().join(name)).await.unwrap();
    let agency = Agency::open(open("trips.db").await, open("hotels.db").await, MemoryTransport::new()).await;
    trips_are_booked_as_a_whole_or_not_at_all(agency).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_room_is_not_given_to_two_guests_when_another_one_is_given_back() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(folder.path().join("hotels.db")).await.unwrap();
    store.transaction(async |conn| Ok::<_, anyhow::Error>(create_tables(conn).await?)).await.unwrap();
    let held = Saga::named("held").input::<Stay>().step::<book_room>().wait_for::<Approval>(Wait::without_limit());
    let held = held.build().unwrap();
    let kept = Saga::named("kept").input::<Stay>().step::<book_room>().returns::<book_room>().build().unwrap();
    let runtime = Runtime::builder(store).saga(&held).saga(&kept).start().await.unwrap();
    let stay = || Stay { city: "Oslo".to_owned(), nights: 1 };
    let room_of = async |guest: &str| runtime.start(&kept, guest, stay()).await.unwrap().result().await.unwrap().number;

    let ada = runtime.start(&held, "Ada", stay()).await.unwrap();
    while runtime.status("Ada").await.unwrap().unwrap().steps[0].phase != StepPhase::Done {
        tokio::task::yield_now().await;
    }
    let bob = room_of("Bob").await;
    runtime.cancel("Ada", "she stays at home").await.unwrap();
    ada.outcome().await.unwrap();
    let cleo = room_of("Cleo").await;
    assert_ne!(bob, cleo);
    runtime.shutdown().await;
}

#[tokio::test]
async fn a_client_that_waits_for_an_itinerary_is_told_where_to_look_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let open = async |name: &str| SqliteStore::open(folder.path().join(name)).await.unwrap();
    let agency = Agency::open(open("trips.db").await, open("hotels.db").await, MemoryTransport::new()).await;
    // It waits for its approval.
    assert_eq!(agency.book("trip-1", &trip("Rome", 300_000)).await, StatusCode::ACCEPTED);
    tokio::time::pause();
    let told = agency.itinerary("trip-1").await.unwrap_err();
    tokio::time::resume();
    assert!(told.contains("see /sagas/trip-1 for what it waits for"), "{told}");
    agency.trips.runtime.shutdown().await;
    agency.hotels.shutdown().await;
}

#[cfg(all(feature = "postgres", feature = "rabbitmq"))]
#[tokio::test(flavor = "multi_thread")]
async fn on_postgres_and_rabbitmq() {
    use saga_postgres::PostgresStore;

    let trips = saga_servers::shared::database("travel_trips").await.unwrap();
    let hotels = saga_servers::shared::database("travel_hotels").await.unwrap();
    let vhost = saga_servers::shared::vhost("travel").await.unwrap();
    let connect = async |url: &str| PostgresStore::connect(url).await.unwrap();
    let transport = saga_amqp::AmqpTransport::connect(vhost.url()).await.unwrap();
    let agency = Agency::open(connect(trips.url()).await, connect(hotels.url()).await, transport).await;
    trips_are_booked_as_a_whole_or_not_at_all(agency).await;
}
