//! Calls of another service with the key of a step, over real connections, which the service may cut.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use reqwest::{Client, Response};
use saga_core::memory::MemoryStore;
use saga_core::step::StepErrorKind;
use saga_core::{Runtime, Saga, State, StepContext, StepError, saga_step};
use saga_http::{ForStep as _, StepRequest as _};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// What the service does with a request that it has read.
#[derive(Debug, Clone, Copy)]
enum Act {
    /// Sends these bytes, and closes the connection.
    Answer(&'static str),
    /// Closes the connection without an answer.
    Cut,
    /// Does not answer.
    Hang,
}

/// A service that does one act for each connection.
struct Service {
    url: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Service {
    async fn new<const ACTS: usize>(acts: [Act; ACTS]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/charges?token=secret", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        tokio::spawn(async move {
            let mut open = Vec::new();
            for act in acts {
                let (mut connection, _) = listener.accept().await.unwrap();
                let request = read_request(&mut connection).await;
                seen.lock().unwrap().push(request);
                match act {
                    // The client may have read enough.
                    Act::Answer(answer) => _ = connection.write_all(answer.as_bytes()).await,
                    Act::Cut => {}
                    Act::Hang => open.push(connection),
                }
            }
            std::future::pending::<()>().await;
        });
        Self { url, requests }
    }

    fn header(&self, request: usize, name: &str) -> Option<String> {
        let requests = self.requests.lock().unwrap();
        let line = requests[request].lines().find(|line| line.to_lowercase().starts_with(&format!("{name}:")))?;
        Some(line.split_once(':').unwrap().1.trim().to_owned())
    }
}

/// The head of a request; its body is read too.
async fn read_request(connection: &mut TcpStream) -> String {
    let mut read = Vec::new();
    loop {
        let mut chunk = [0; 1_024];
        let bytes = connection.read(&mut chunk).await.unwrap();
        read.extend_from_slice(&chunk[..bytes]);
        let text = String::from_utf8_lossy(&read).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
            if body.len() >= length.unwrap_or(0) {
                return head.to_owned();
            }
        }
        assert_ne!(bytes, 0, "the request is whole");
    }
}

fn context() -> StepContext {
    StepContext::for_test("order-7:charge-card")
}

async fn charge(service: &Service) -> Result<Response, StepError> {
    Client::new().post(&service.url).step_key(&context()).json(&json!({ "cents": 1200 })).send().await.for_step()
}

async fn charge_json(service: &Service) -> Result<Value, StepError> {
    Client::new().post(&service.url).step_key(&context()).body("1200").send().await.for_step_json().await
}

/// What an answer means for the step, with the shortest pause before the next attempt.
async fn meaning(answer: &'static str) -> (StepErrorKind, Duration, String) {
    let service = Service::new([Act::Answer(answer), Act::Answer(answer)]).await;
    let (error, of_body) = (charge(&service).await.unwrap_err(), charge_json(&service).await.unwrap_err());
    assert_eq!((error.kind(), error.delay_min()), (of_body.kind(), of_body.delay_min()));
    let said = of_body.to_string();
    assert!(!said.contains("secret"), "{said}");
    (error.kind(), error.delay_min(), said)
}

#[tokio::test]
async fn an_answer_of_success_is_returned() {
    const CREATED: &str = "HTTP/1.1 201 Created\r\ncontent-length: 12\r\n\r\n{\"number\":7}";
    let service = Service::new([Act::Answer(CREATED), Act::Answer(CREATED)]).await;
    assert_eq!(charge(&service).await.unwrap().text().await.unwrap(), "{\"number\":7}");
    assert_eq!(charge_json(&service).await.unwrap(), json!({ "number": 7 }));
    assert_eq!(service.header(0, "idempotency-key").unwrap(), "\"order-7:charge-card\"");
    assert_eq!(service.header(1, "idempotency-key"), service.header(0, "idempotency-key"));
    assert_eq!(service.header(0, "traceparent"), None);
}

#[tokio::test]
async fn what_is_busy_is_asked_again_when_it_says() {
    for (answer, seconds) in [
        ("HTTP/1.1 409 Conflict\r\ncontent-length: 0\r\n\r\n", 0),
        ("HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n", 0),
        ("HTTP/1.1 425 Too Early\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n", 1),
        ("HTTP/1.1 429 Too Many Requests\r\nretry-after: 120\r\ncontent-length: 0\r\n\r\n", 120),
        ("HTTP/1.1 500 Internal Server Error\r\nretry-after: soon\r\ncontent-length: 0\r\n\r\n", 0),
        (
            "HTTP/1.1 503 Service Unavailable\r\ndate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\
             retry-after: Sun, 06 Nov 1994 08:50:07 GMT\r\ncontent-length: 0\r\n\r\n",
            30,
        ),
    ] {
        let (kind, delay, said) = meaning(answer).await;
        assert_eq!((kind, delay), (StepErrorKind::Transient, Duration::from_secs(seconds)), "{answer}");
        assert!(said.contains("/charges answered "), "{said}");
    }
}

#[tokio::test]
async fn what_is_refused_is_rejected_with_what_the_service_says() {
    for (answer, expected) in [
        ("HTTP/1.1 422 Unprocessable Entity\r\ncontent-length: 0\r\n\r\n", "answered 422 Unprocessable Entity"),
        ("HTTP/1.1 402 Payment Required\r\ncontent-length: 15\r\n\r\ncard is blocked", "card is blocked"),
        ("HTTP/1.1 404 Not Found\r\ncontent-length: 19\r\n\r\n{\"title\":\"no card\"}", "no card"),
        (
            "HTTP/1.1 403 Forbidden\r\ncontent-length: 38\r\n\r\n{\"title\":\"no\",\"detail\":\"limit is 100\"}",
            "limit is 100",
        ),
        // The reason breaks off; the refusal is as definite.
        ("HTTP/1.1 400 Bad Request\r\ncontent-length: 99\r\n\r\nbroken o", "broken o"),
    ] {
        let (kind, _, said) = meaning(answer).await;
        assert_eq!(kind, StepErrorKind::Rejected, "{answer}");
        assert!(said.ends_with(expected), "{said}");
    }
}

#[tokio::test]
async fn what_only_an_operator_can_mend_is_stuck() {
    for answer in [
        "HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\n\r\n",
    ] {
        assert_eq!(meaning(answer).await.0, StepErrorKind::Stuck, "{answer}");
    }
    let ctx = context();
    let no_address = Client::new().post("nowhere").step_key(&ctx).send().await.for_step().unwrap_err();
    assert_eq!(no_address.kind(), StepErrorKind::Stuck);
    assert!(no_address.to_string().starts_with("the request cannot be made: "), "{no_address}");
}

#[tokio::test]
async fn without_a_connection_nothing_was_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/charges?token=secret", listener.local_addr().unwrap());
    drop(listener);
    let error = Client::new().post(url).step_key(&context()).send().await.for_step().unwrap_err();
    assert_eq!(error.kind(), StepErrorKind::NotSent);
    assert!(error.source().unwrap().is::<reqwest::Error>());
    assert!(error.to_string().contains("/charges") && !error.to_string().contains("secret"), "{error}");
}

#[tokio::test]
async fn after_a_cut_or_a_time_out_the_outcome_is_unknown() {
    let service = Service::new([Act::Cut, Act::Hang]).await;
    assert_eq!(charge(&service).await.unwrap_err().kind(), StepErrorKind::Transient);
    let impatient = Client::new().post(&service.url).timeout(Duration::from_millis(20)).step_key(&context());
    let error = impatient.send().await.for_step().unwrap_err();
    assert_eq!(error.kind(), StepErrorKind::Transient);
    // The answer of success breaks off, or is not what it should be.
    for answer in
        ["HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n{\"numb", "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfine"]
    {
        let service = Service::new([Act::Answer(answer)]).await;
        assert_eq!(charge_json(&service).await.unwrap_err().kind(), StepErrorKind::Transient, "{answer}");
    }
}

#[tokio::test]
async fn an_answer_without_end_is_not_read_to_its_end() {
    let endless = format!("HTTP/1.1 200 OK\r\n\r\n\"{}", "x".repeat(9 * 1_024 * 1_024));
    let service = Service::new([Act::Answer(endless.leak())]).await;
    let error = charge_json(&service).await.unwrap_err();
    assert_eq!(error.kind(), StepErrorKind::Stuck, "{error}");
    assert!(error.to_string().contains("longer than 8388608 bytes"), "{error}");
}

#[tokio::test]
async fn a_client_with_middleware_means_the_same() {
    let client = reqwest_middleware::ClientBuilder::new(Client::new()).build();
    let service = Service::new([Act::Answer("HTTP/1.1 422 X\r\ncontent-length: 2\r\n\r\nno"), Act::Cut]).await;
    let call = || client.post(&service.url).step_key_for(&context(), "capture").send();
    let refused = call().await.for_step_json::<Value>().await.unwrap_err();
    assert_eq!(refused.kind(), StepErrorKind::Rejected);
    assert_eq!(service.header(0, "idempotency-key").unwrap(), "\"order-7:charge-card/capture\"");
    assert_eq!(call().await.for_step().unwrap_err().kind(), StepErrorKind::Transient);
}

#[saga_step(no_compensation)]
async fn charge_card(ctx: &StepContext, cents: u64, State(url): State<String>) -> Result<Value, StepError> {
    Client::new().post(&url).step_key(ctx).json(&cents).send().await.for_step_json().await
}

/// Each attempt sends the same key and the trace of the saga, whatever became of the attempt before.
#[tokio::test]
async fn a_saga_sends_one_key_until_the_answer_is_definite() {
    const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let acts = [
        Act::Cut,
        Act::Answer("HTTP/1.1 409 Conflict\r\ncontent-length: 0\r\n\r\n"),
        Act::Answer("HTTP/1.1 200 OK\r\ncontent-length: 40\r\n\r\n{\"broken"),
        Act::Answer("HTTP/1.1 422 Unprocessable Entity\r\ncontent-length: 15\r\n\r\ncard is blocked"),
    ];
    let service = Service::new(acts).await;
    let order = Saga::named("order").input::<u64>().step::<charge_card>().build().unwrap();
    let runtime = Runtime::builder(MemoryStore::new()).saga(&order).state(service.url.clone()).start().await.unwrap();
    let running = runtime.start(&order, "order-7", 1200).traceparent(TRACE).await.unwrap();
    let outcome = running.outcome().await.unwrap().to_string();
    assert!(outcome.starts_with("compensated, because `charge-card` failed: card is blocked"), "{outcome}");
    for attempt in 0..4 {
        assert_eq!(service.header(attempt, "idempotency-key").unwrap(), "\"order-7:charge-card\"");
        assert_eq!(service.header(attempt, "traceparent").unwrap(), TRACE);
    }
    runtime.shutdown().await;
}
