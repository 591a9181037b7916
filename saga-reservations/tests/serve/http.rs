//! HTTP, and that both doors lead to one store.

use reqwest::{Client, StatusCode};
use saga_reservations::{ReservationsClient, Reserve, State};
use serde_json::{Value, json};

use crate::program::Program;

struct Answer {
    status: StatusCode,
    location: Option<String>,
    content_type: String,
    body: Value,
}

async fn send(request: reqwest::RequestBuilder) -> Answer {
    let response = request.send().await.unwrap();
    let status = response.status();
    let header = |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    let (location, content_type) = (header("location"), header("content-type").unwrap_or_default());
    let text = response.text().await.unwrap();
    let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
    Answer { status, location, content_type, body }
}

fn refused(answer: &Answer, status: u16, reason: &str) {
    assert_eq!((answer.status.as_u16(), &answer.body["reason"]), (status, &json!(reason)), "{}", answer.body);
    assert_eq!(answer.content_type, "application/problem+json");
    assert_eq!(answer.body["status"], status);
}

#[tokio::test]
async fn reservations_are_made_over_http_and_seen_over_grpc() {
    let program = Program::serve("memory:").await;
    let (http, at) = (Client::new(), |path: &str| format!("{}/v1/{path}", program.http));
    let post = |path: &str, body: Value| http.post(at(path)).json(&body);
    let capacity =
        |name: &str, capacity: u64| http.put(at(&format!("resources/{name}"))).json(&json!({"capacity": capacity}));
    assert_eq!(send(http.get(format!("{}/health", program.http))).await.status, StatusCode::NO_CONTENT);
    assert_eq!(send(capacity("seat/LH-400", 3)).await.body["capacity"], 3);

    let two = json!({"lines": [{"resource": "seat/LH-400", "quantity": 2}], "ttl_millis": 60_000});
    let reserve = |key: &str| post("reservations", two.clone()).header("idempotency-key", key);
    let first = send(reserve("\"order/7\"")).await;
    assert_eq!((first.status, &first.body["state"]), (StatusCode::CREATED, &json!("held")), "{}", first.body);
    assert_eq!(first.location.as_deref(), Some("/v1/reservations/order%2F7"));
    assert_eq!(send(reserve("order/7")).await.body, first.body);
    refused(&send(reserve("order/8")).await, 409, "INSUFFICIENT");
    let other = json!({"lines": [{"resource": "seat/LH-400", "quantity": 1}]});
    refused(&send(post("reservations", other).header("idempotency-key", "order/7")).await, 422, "KEY_REUSED");

    let client = ReservationsClient::connect(&program.grpc).await.unwrap();
    let found = client.reserve(Reserve::of("seat/LH-400", 2).key("order/7")).await.unwrap();
    assert_eq!(found.token().0, first.body["fencing_token"]);

    let token = json!({"fencing_token": first.body["fencing_token"]});
    let act = |what: &str, body: &Value| post(&format!("reservations/order%2F7/{what}"), body.clone());
    refused(&send(act("confirm", &json!({"fencing_token": 99}))).await, 412, "STALE_TOKEN");
    let longer = json!({"fencing_token": first.body["fencing_token"], "ttl_millis": 120_000});
    assert!(send(act("extend", &longer)).await.body["expires_at"].as_str() > first.body["expires_at"].as_str());
    assert_eq!(send(act("confirm", &token)).await.body["state"], "confirmed");
    assert_eq!(client.find(found.key()).await.unwrap().unwrap().state, State::Confirmed);
    refused(&send(act("release", &token)).await, 409, "WRONG_STATE");
    refused(&send(capacity("seat%2FLH-400", 1)).await, 409, "BELOW_TAKEN");
    assert_eq!(send(act("return", &token)).await.body["state"], "returned");
    refused(&send(reserve("order/7")).await, 410, "ENDED");
    assert_eq!(send(http.get(at("reservations/order%2F7"))).await.body["state"], "returned");
    let seats = send(http.get(at("resources/seat/LH-400"))).await;
    assert_eq!((&seats.body["confirmed"], &seats.body["held"]), (&json!(0), &json!(0)));
    let barred = send(post("reservations/order%2F9/release", json!({}))).await;
    assert_eq!(barred.body["state"], "released");
    refused(&send(reserve("order/9")).await, 410, "ENDED");
}

#[tokio::test]
async fn what_cannot_be_read_is_a_problem() {
    let program = Program::serve("memory:").await;
    let (http, at) = (Client::new(), |path: &str| format!("{}{path}", program.http));
    let reserve = || http.post(at("/v1/reservations")).header("content-type", "application/json");
    for (request, status) in [
        (reserve().body("{}"), 400),
        (reserve().header("idempotency-key", "a b").body("{}"), 400),
        (reserve().header("idempotency-key", "k").body("{"), 400),
        (reserve().header("idempotency-key", "k").body("{}"), 422),
        (reserve().header("idempotency-key", "k").body("{\"lines\":[],\"tll_millis\":1}"), 422),
        (http.post(at("/v1/reservations")).header("idempotency-key", "k").body("{}"), 415),
        (http.get(at("/v1/reservations/unknown")), 404),
        (http.get(at("/v1/resources/unknown")), 404),
        (http.get(at("/v2")), 404),
    ] {
        let answer = send(request).await;
        assert_eq!(answer.status.as_u16(), status, "{}", answer.body);
        assert_eq!(answer.content_type, "application/problem+json", "{}", answer.body);
    }
    let empty = reserve().header("idempotency-key", "k").body("{\"lines\":[]}");
    refused(&send(empty).await, 422, "INVALID");
}
