//! The least that services need of PostgreSQL and RabbitMQ, as `docs/security.md` says it, and who may speak as whom.

use lapin::options::{BasicConsumeOptions, BasicPublishOptions, ConfirmSelectOptions};
use lapin::types::FieldTable;
use lapin::{Connection, ConnectionProperties};
use saga_amqp::{AmqpOptions, AmqpTransport, Topology};
use saga_core::authorization::AccessPolicy;
use saga_core::engine::SagaAdmin;
use saga_core::store::{DeadLetterFilter, DeadLetterReason};
use saga_core::transport::{Subscription, Transport as _, service_topic};
use saga_core::{Outcome, Runtime, Service};
use saga_postgres::{PostgresOptions, PostgresStore};
use saga_servers::shared::{Database, Permissions};
use saga_tests::eventually;
use sqlx::{Connection as _, PgConnection};

use crate::place::{Place, charge_card, charges, create_order};
use crate::stranger::{QUEUE, Stranger, command, text, with};

/// What `docs/security.md` gives to the role of a service.
const SERVICE_GRANTS: &str = include_str!("../../../docs/sql/service-role.sql");
/// What it gives to the role of who only looks.
const VIEWER_GRANTS: &str = include_str!("../../../docs/sql/viewer-role.sql");

/// A role with these grants, in a database that its owner has migrated. It may also use the business table.
async fn role(database: &Database, grants: &str) -> String {
    drop(PostgresStore::connect(database.url()).await.unwrap());
    let (name, url) = database.role("role").await.unwrap();
    let mut owner = PgConnection::connect(database.url()).await.unwrap();
    let table = "CREATE TABLE IF NOT EXISTS charges (key text PRIMARY KEY, cents bigint NOT NULL)";
    let business = format!("{table}; GRANT SELECT, INSERT ON charges TO \"{name}\"");
    let grants = grants.replace(":role", &format!("\"{name}\""));
    sqlx::raw_sql(sqlx::AssertSqlSafe(format!("{grants}{business}"))).execute(&mut owner).await.unwrap();
    url
}

/// What `docs/security.md` gives to the user of a service whose queue was declared for it.
fn of_service(service: &str) -> (String, String) {
    (r"saga\.(events|services)".to_owned(), format!(r"saga\.service:{service}(\.dead-letters)?"))
}

async fn user(place: &Place, service: &str) -> (String, String) {
    let (write, read) = of_service(service);
    let permissions = Permissions { configure: "^$", write: &format!("^{write}$"), read: &format!("^{read}$") };
    place.vhost.user(service, permissions).await.unwrap()
}

/// Whoever sets the broker up declares the queues.
async fn declare(place: &Place) {
    let transport = place.transport().await;
    for service in ["orders", "payments"] {
        let topic = service_topic(service);
        let subscription = Subscription { name: topic.clone(), topics: vec![topic.clone()], prefetch: 1 };
        drop(transport.subscribe(subscription).await.unwrap());
    }
}

async fn transport(url: &str) -> AmqpTransport {
    AmqpTransport::connect_with(AmqpOptions::new(url).topology(Topology::Check)).await.unwrap()
}

/// Two services, each as a role and a user of its own, with the least that they need.
struct Services {
    orders: Runtime<PostgresStore>,
    payments: Runtime<PostgresStore>,
    orders_url: String,
    orders_user: String,
}

async fn services(place: &Place) -> Services {
    declare(place).await;
    let (orders_user, orders_url) = user(place, "orders").await;
    let (payments_user, payments_url) = user(place, "payments").await;
    let store = PostgresStore::connect(&role(&place.payments, SERVICE_GRANTS).await).await.unwrap();
    let service = Service::named("payments").host::<charge_card>().build().unwrap();
    let payments = Runtime::builder(store)
        .transport(transport(&payments_url).await)
        .access_policy(AccessPolicy::new().user(&orders_user, "orders").may_ask("orders", "charge-card"))
        .service(&service);
    let store = PostgresStore::connect(&role(&place.orders, SERVICE_GRANTS).await).await.unwrap();
    let orders = Runtime::builder(store)
        .transport(transport(&orders_url).await)
        .access_policy(AccessPolicy::new().user(&payments_user, "payments"))
        .settings(|settings| settings.service = Some("orders".into()))
        .saga(&create_order());
    Services {
        orders: orders.start().await.unwrap(),
        payments: payments.start().await.unwrap(),
        orders_url,
        orders_user,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn services_run_with_the_least_permissions() {
    let place = Place::new("permissions").await;
    let Services { orders, payments, orders_url, .. } = services(&place).await;
    let running = orders.start(&create_order(), "order-1", 1200).await.unwrap();
    let outcome = running.outcome().await.unwrap();
    assert!(matches!(outcome, Outcome::Completed { .. }), "{outcome:?}");
    assert_eq!(charges(&payments).await, ["order-1:charge-card"]);

    // Who may only look sees the saga, and can change nothing.
    let url = role(&place.orders, VIEWER_GRANTS).await;
    let options = PostgresOptions::from_url(&url).unwrap().read_only();
    let inspector = SagaAdmin::new(PostgresStore::connect_with(options).await.unwrap()).query();
    assert!(inspector.status("order-1").await.unwrap().is_some());
    let mut viewer = PgConnection::connect(&url).await.unwrap();
    let refused = sqlx::query("DELETE FROM saga.work").execute(&mut viewer).await.unwrap_err();
    assert!(refused.to_string().contains("permission denied"), "{refused}");

    // A service can neither change the schema nor receive what is for another one.
    let refused = sqlx::query("DROP TABLE saga.work").execute(orders.store().pool()).await.unwrap_err();
    assert!(refused.to_string().contains("must be owner"), "{refused}");
    let connection = Connection::connect(&orders_url, ConnectionProperties::default()).await.unwrap();
    let channel = connection.create_channel().await.unwrap();
    let consume = channel.basic_consume(QUEUE.into(), "".into(), BasicConsumeOptions::default(), FieldTable::default());
    let refused = consume.await.unwrap_err();
    assert!(refused.to_string().contains("ACCESS_REFUSED"), "{refused}");
    orders.shutdown().await;
    payments.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_speaks_as_another_service_on_rabbitmq() {
    let place = Place::new("impersonation").await;
    let Services { orders, payments, orders_user, .. } = services(&place).await;
    let (shipping, shipping_url) = user(&place, "shipping").await;
    let stranger = Stranger::at(&shipping_url).await;
    let from_orders = |number| with(&command(number, &format!("forged-{number}")), "saga-reply-to", text("orders"));
    // Without a user, and as the user that it is.
    stranger.send(from_orders(1), b"12").await;
    stranger.send(from_orders(2).with_user_id(shipping.as_str().into()), b"12").await;
    let letters = eventually("two letters", async || {
        let letters = payments.admin().dead_letters().list(DeadLetterFilter::default()).await.unwrap();
        (letters.len() == 2).then_some(letters)
    });
    let letters = letters.await;
    assert!(letters.iter().all(|letter| letter.letter.reason == DeadLetterReason::NotAuthorized), "{letters:?}");
    // As another user: the broker does not take the message.
    let connection = Connection::connect(&shipping_url, ConnectionProperties::default()).await.unwrap();
    let channel = connection.create_channel().await.unwrap();
    channel.confirm_select(ConfirmSelectOptions::default()).await.unwrap();
    let properties = from_orders(3).with_user_id(orders_user.as_str().into());
    let (exchange, key) = ("saga.services".into(), "service:payments".into());
    let sent = channel.basic_publish(exchange, key, BasicPublishOptions::default(), b"12", properties).await;
    let refused = match sent {
        Ok(confirm) => confirm.await.unwrap_err(),
        Err(error) => error,
    };
    assert!(refused.to_string().contains("PRECONDITION_FAILED"), "{refused}");
    assert_eq!(charges(&payments).await, Vec::<String>::new());
    orders.shutdown().await;
    payments.shutdown().await;
}
