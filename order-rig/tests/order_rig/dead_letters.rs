//! Messages that a service cannot handle, and messages that cannot be sent: what a person sees and does.

use crate::support::{Ran, Services, blocking, number};
use saga_core::store::{MessageId, NewParked, Outbox as _};
use saga_postgres::PostgresStore;
use saga_servers::shared::Vhost;
use serde_json::{Value, json};
use sqlx::postgres::PgListener;
use sqlx::{Connection as _, PgConnection};

/// A notification reaches who listens when its transaction has committed.
const TELL: &str = "CREATE FUNCTION public.tell() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_notify('committed', NEW.id::text); RETURN NULL; END $$;
    CREATE TRIGGER tell AFTER INSERT ON saga.outbox FOR EACH ROW EXECUTE FUNCTION public.tell()";

/// Publishes to the queue of the payments, as a foreign program would.
fn send(vhost: &Vhost, properties: &Value, payload: &str) {
    let path = format!("exchanges/{}/saga.services/publish", vhost.name());
    let body = json!({
        "properties": properties, "routing_key": "service:payments", "payload": payload, "payload_encoding": "string"
    });
    let said = blocking(vhost.management().post(&path, &body)).expect("the broker takes it");
    assert_eq!(said["routed"], true, "{said}");
}

/// A command for the payments that follows the conventions.
fn command(id: &str, order: &str, step: &str) -> Value {
    json!({
        "message_id": id, "type": step, "timestamp": 4_000_000_000_u32,
        "headers": {
            "saga-kind": "command", "saga-key": order, "saga-cause": order, "saga-step": step,
            "saga-service": "payments", "saga-reply-to": "orders",
        }
    })
}

impl Desk<'_> {
    /// The letters of the payments in this state, once there are so many.
    fn list(&self, state: &str, count: usize) -> Vec<Value> {
        loop {
            let ran = self.ask(&["list", "--json", "--state", state]);
            assert_eq!(ran.code, 0, "{ran}");
            let letters = ran.json()["dead_letters"].as_array().expect("a list").clone();
            assert!(letters.len() <= count, "{letters:?}");
            if letters.len() == count {
                return letters;
            }
        }
    }

    fn ask(&self, args: &[&str]) -> Ran {
        self.0.ask("payments", &[&["dead-letters"], args].concat())
    }

    #[track_caller]
    fn decide(&self, args: &[&str], said: &str) {
        let ran = self.ask(args);
        assert!(ran.code == 0 && ran.out.contains(said), "{ran}");
    }
}

struct Desk<'a>(&'a Services);

#[test]
fn what_cannot_be_handled_is_listed_shown_replayed_and_discarded() {
    let services = Services::on_postgres();
    let desk = Desk(&services);
    let [_orders, _shipping, payments] = ["orders", "shipping", "payments"].map(|service| services.start(service));
    send(services.broker.vhost(), &json!({}), "garbage \u{1b}[2J");
    desk.list("open", 1);
    send(services.broker.vhost(), &command("67e55044-10b1-426f-9247-bb680e5fe0c8", "A-1", "paint-card"), "{}");
    let letters = desk.list("open", 2);
    let [garbage, unknown] = [0, 1].map(|n: usize| letters[n]["id"].to_string());
    assert_eq!([&letters[0]["reason"], &letters[1]["reason"]], ["unreadable", "unknown-step"]);
    assert_eq!(letters[1]["headers"]["saga-step"], "paint-card");

    let shown = desk.ask(&["show", &unknown]);
    assert!(shown.out.contains("unknown-step") && shown.out.contains("saga-step: paint-card"), "{shown}");
    let shown = desk.ask(&["show", &garbage]);
    assert!(shown.out.contains(r"garbage \u{1b}[2J") && shown.out.contains("cannot be replayed"), "{shown}");
    desk.ask(&["show", "4711"]).is_unusable("there is no dead letter 4711");

    // Nothing is lost, but it needs a person: the audit says so.
    let audit = services.shop.run(&services.verification("10s"));
    assert_eq!(audit.code, 1, "{audit}");
    let findings = audit.json()["findings"].to_string();
    assert!(findings.contains(&format!("dead letter {garbage}")) && findings.contains("paint-card"), "{findings}");

    // Its host still does not know the step: the same message is a letter of its own again.
    desk.ask(&["replay", &garbage]).is_unusable("the message is incomplete");
    desk.decide(&["replay", &unknown, "--reason", "again"], "is handed in again");
    let letters = desk.list("open", 2);
    assert_eq!(letters[1]["message_id"], "67e55044-10b1-426f-9247-bb680e5fe0c8");
    let third = letters[1]["id"].to_string();
    assert_ne!(third, unknown);
    let replayed = desk.list("replayed", 1);
    assert_eq!([&replayed[0]["id"].to_string(), replayed[0]["note"].as_str().expect("a note")], [&unknown, "again"]);

    assert_eq!(desk.ask(&["discard", &garbage]).code, 2, "it needs a reason");
    desk.ask(&["discard", &garbage, "--reason", " "]).is_unusable("give a reason");
    for letter in [&garbage, &third] {
        desk.decide(&["discard", letter, "--reason", "nobody knows it"], "is discarded");
        desk.decide(&["discard", letter, "--reason", "twice is once"], "is discarded");
    }
    desk.ask(&["replay", &garbage]).is_unusable("the message is incomplete");
    desk.ask(&["replay", &third]).is_unusable("it was discarded");
    assert!(desk.list("discarded", 2).iter().all(|letter| letter["note"] == "nobody knows it"));
    assert_eq!(desk.list("all", 3).len(), 3);
    services.verify();
    assert_eq!(payments.end("-TERM"), 0);
}

#[test]
fn content_that_is_no_input_of_the_step_begins_nothing_however_often_it_is_replayed() {
    let services = Services::on_postgres();
    let desk = Desk(&services);
    let _payments = services.start("payments");
    // The contract of the step has a number for the amount.
    let id = "67e55044-10b1-426f-9247-bb680e5fe0c9";
    send(services.broker.vhost(), &command(id, "A-1", "charge-card"), r#"{"order_id":"A-1","amount_cents":"five"}"#);
    let letters = desk.list("open", 1);
    assert_eq!(letters[0]["reason"], "undecodable", "{letters:?}");
    assert!(services.ask("payments", &["list"]).out.is_empty(), "nothing was begun for it");
    // Handed in again it is the same message, and no better for it.
    desk.decide(&["replay", &letters[0]["id"].to_string()], "is handed in again");
    let again = desk.list("open", 1);
    assert_eq!((&again[0]["message_id"], &again[0]["reason"]), (&json!(id), &json!("undecodable")), "{again:?}");
}

#[test]
fn what_cannot_be_sent_is_listed_and_goes_on_when_it_is_released() {
    let services = Services::on_postgres();
    let orders = services.some_orders(1);
    let _shipping = services.start("shipping");
    // No process has ever received what is addressed to the payments: it waits until one does.
    let (mut driver, message) = blocking(async {
        let mut committed = committed_messages(services.store("orders")).await;
        let driver = services.drive(&orders).spawn().expect("it runs");
        (driver, committed.recv().await.expect("the first message").payload().to_owned())
    });
    driver.kill().expect("it is killed");
    driver.wait().expect("it ends");
    blocking(park(services.store("orders"), &message));

    let listed = services.ask("orders", &["outbox", "list", "--json"]).json();
    assert_eq!(number(&listed, "waiting"), 1, "{listed}");
    assert!(listed["oldest_age_ms"].is_u64(), "{listed}");
    let parked = &listed["parked"][0];
    assert_eq!((&parked["message_id"], &parked["attempts"]), (&json!(message), &json!(7)), "{listed}");
    assert_eq!(parked["error"], "the broker does not want it", "{listed}");
    let listed = services.ask("orders", &["outbox", "list"]);
    assert!(listed.out.contains(&message) && listed.out.contains("1 messages wait to be sent, the oldest"), "{listed}");
    assert!(listed.out.contains("1 keys are parked"), "{listed}");
    let audit = services.shop.run(&["verify", "--within", "1ms"]);
    assert!(audit.code == 1 && audit.out.contains(&format!("message {message}: it could not be sent")), "{audit}");

    services.ask("orders", &["outbox", "release", "nothing"]).is_unusable("no key is parked for the message");
    assert_eq!(services.ask("orders", &["outbox", "discard", &message]).code, 2, "it needs a reason");
    let _payments = services.start("payments");
    let released = services.ask("orders", &["outbox", "release", &message]);
    assert!(released.code == 0 && released.out.contains("is tried again"), "{released}");
    let ran = Ran::of(services.drive(&orders).output().expect("it runs"));
    assert_eq!((ran.code, number(&ran.json(), "completed")), (0, 1), "{ran}");
    services.verify();
}

/// What the relay does with a message that the broker refuses again and again.
async fn park(store: &str, message: &str) {
    let store = PostgresStore::connect(store).await.expect("the store");
    let message = MessageId(message.parse().expect("an id"));
    let parked = NewParked { message, attempts: 7, error: "the broker does not want it".to_owned(), retry_in: None };
    store.park(&[parked]).await.expect("parked");
}

/// The ids of the messages that are committed from now on, as the database tells them.
async fn committed_messages(store: &str) -> PgListener {
    // It makes the table.
    PostgresStore::connect(store).await.expect("the store");
    let mut conn = PgConnection::connect(store).await.expect("the database");
    sqlx::raw_sql(TELL).execute(&mut conn).await.expect("a trigger");
    let mut listener = PgListener::connect(store).await.expect("the database");
    listener.listen("committed").await.expect("it is listened to");
    listener
}
