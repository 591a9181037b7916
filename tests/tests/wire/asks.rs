//! Python asks for steps, and takes them back: a host of the runtime gives every answer that there is.

use saga_amqp::AmqpTransport;
use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::{Runtime, Service, StepContext, StepError, saga_compensation, saga_step};
use saga_servers::shared::Vhost;
use saga_tests::Books as _;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::participant::{Participant, receives, start};

mod contracts {
    use saga_core::{StepError, saga_step};

    use super::Bill;

    #[saga_step(service = "payments", compensated)]
    pub(crate) async fn pay(bill: Bill) -> Result<i64, StepError>;

    #[saga_step(service = "payments", compensated)]
    pub(crate) async fn phone(bill: Bill) -> Result<i64, StepError>;
}

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// What is to be paid, and what is to become of that.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Bill {
    amount: i64,
    how: String,
}

#[derive(Debug, Serialize)]
struct Declined {
    code: u32,
}

impl std::fmt::Display for Declined {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "declined with {}", self.code)
    }
}

#[saga_step(implements = contracts::pay, compensate = pay_back, retry(attempts = 2, base = "1ms", cap = "1ms"), on_exhausted = "compensate")]
async fn pay(tx: &mut MemoryConn, bill: Bill) -> Result<i64, StepError> {
    match bill.how.as_str() {
        "decline" => return Err(StepError::reject_with(Declined { code: 51 })),
        "fail" => return Err(StepError::retry("there is no power")),
        _ => {}
    }
    MemoryStore::add(tx, "paid", bill.amount).await?;
    Ok(bill.amount * 10)
}

#[saga_compensation]
async fn pay_back(tx: &mut MemoryConn, bill: Bill, payment: Option<i64>) -> Result<(), StepError> {
    if bill.how == "keep" {
        return Err(StepError::reject("it is spent"));
    }
    assert_eq!(payment, Some(bill.amount * 10), "what was returned comes back");
    MemoryStore::add(tx, "paid", -bill.amount).await.map(drop)
}

/// A call that says how far it is, and then breaks off.
#[saga_step(implements = contracts::phone, compensate = hang_up, timeout = "100ms", retry(attempts = 1), on_exhausted = "compensate")]
async fn phone(ctx: &StepContext, _bill: Bill) -> Result<i64, StepError> {
    ctx.report(&json!({ "rings": 3 }))?;
    Err(StepError::retry("the line is dead"))
}

#[saga_compensation]
async fn hang_up(_bill: Bill) -> Result<(), StepError> {
    Ok(())
}

/// A service in Python that asks, and the host of the payments.
struct Place {
    asking: Participant,
    payments: Runtime<MemoryStore>,
    _vhost: Vhost,
}

/// What is asked for: a step of a saga.
#[derive(Clone, Copy)]
struct Step<'a> {
    cause: &'a str,
    name: &'a str,
    tenant: Option<&'a str>,
}

impl Step<'_> {
    /// The reply to what was sent under this id, with all that belongs to it; answers its body.
    fn answer(self, kind: &str, id: &Value, answer: &str, reply: &Value) -> Value {
        let (headers, undo) = (&reply["headers"], if kind == "undo" { ":undo" } else { "" });
        assert_eq!((&reply["exchange"], &reply["routing_key"]), (&json!("saga.services"), &json!("service:asking")));
        assert_eq!(reply["type"], format!("{}{undo}", self.name), "{reply}");
        for (name, expected) in [
            ("saga-kind", json!("reply")),
            ("saga-answer", json!(answer)),
            ("saga-correlation", id.clone()),
            ("saga-cause", json!(self.cause)),
            ("saga-step", json!(self.name)),
            ("saga-tenant", json!(self.tenant)),
            ("saga-reply-to", json!("payments")),
            ("saga-key", reply["id"].clone()),
        ] {
            assert_eq!(headers[name], expected, "{name}: {reply}");
        }
        reply["body"].clone()
    }
}

impl Place {
    async fn open() -> Self {
        let (vhost, asking) = start("asking", &[]).await;
        let transport = AmqpTransport::connect(vhost.url()).await.unwrap();
        let service = Service::named("payments").host::<pay>().host::<phone>().build().unwrap();
        let payments = Runtime::builder(MemoryStore::new()).transport(transport.clone()).service(&service);
        let payments = payments.start().await.unwrap();
        receives(&transport).await;
        Self { asking, payments, _vhost: vhost }
    }

    /// Sends a command or an undo, and answers its id.
    async fn send(&mut self, step: Step<'_>, kind: &str, body: &Value, mut more: Value) -> Value {
        let Step { cause, name, tenant } = step;
        more["tenant"] = json!(tenant);
        self.asking.run(json!(["ask", "payments", kind, cause, name, body, more])).await
    }

    async fn take(&mut self) -> Value {
        self.asking.run(json!(["take"])).await
    }

    async fn ask(&mut self, step: Step<'_>, kind: &str, body: &Value, more: Value, answer: &str) -> Value {
        let id = self.send(step, kind, body, more).await;
        let reply = self.take().await;
        step.answer(kind, &id, answer, &reply)
    }

    async fn command(&mut self, step: Step<'_>, body: &Value, answer: &str) -> Value {
        self.ask(step, "command", body, json!({}), answer).await
    }

    /// An undo that says so much of the step: `done` or `unknown`.
    async fn undo(&mut self, step: Step<'_>, known: &str, body: &Value, answer: &str) -> Value {
        self.ask(step, "undo", body, json!({ "answer": known }), answer).await
    }

    async fn paid(&self) -> i64 {
        self.payments.store().counter("paid").await
    }
}

fn pay_for(cause: &str) -> Step<'_> {
    Step { cause, name: "pay", tenant: None }
}

fn bill(how: &str) -> Value {
    json!({ "amount": 12, "how": how })
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_done_is_answered_again_undone_and_then_barred() {
    let mut place = Place::open().await;
    for tenant in [None, Some("acme")] {
        let step = Step { tenant, ..pay_for("s-1") };
        let id = place.send(step, "command", &bill("well"), json!({ "traceparent": TRACE })).await;
        let reply = place.take().await;
        assert_eq!(step.answer("command", &id, "done", &reply), 120);
        // The same message, and another one that asks for the same.
        for again in [json!({ "message_id": id }), json!({})] {
            assert_eq!(place.ask(step, "command", &bill("well"), again, "done").await, 120);
        }
        assert_eq!(place.paid().await, 12, "once for each tenant");
        let both = json!({ "input": bill("well"), "output": 120, "more": "is ignored" });
        for _ in 0..2 {
            place.undo(step, "done", &both, "undone").await;
            assert_eq!(place.paid().await, 0);
        }
        place.command(step, &bill("well"), "cancelled").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_came_to_nothing_is_answered_with_its_reason() {
    let mut place = Place::open().await;
    let declined = json!({ "message": "declined with 51", "details": r#"{"code":51}"# });
    assert_eq!(place.command(pay_for("s-1"), &bill("decline"), "rejected").await, declined);
    let failed = place.command(pay_for("s-2"), &bill("fail"), "failed").await;
    assert!(failed["message"].to_string().contains("there is no power"), "{failed}");
    let phone = Step { name: "phone", ..pay_for("s-3") };
    let id = place.send(phone, "command", &bill("well"), json!({})).await;
    // Each has an ordering key of its own: their order is not promised.
    let mut came = [place.take().await, place.take().await];
    came.sort_by_key(|message| message["headers"]["saga-kind"] == "reply");
    let [report, reply] = came;
    assert_eq!(report["body"]["report"], json!({ "rings": 3 }), "{report}");
    assert!(report["body"]["number"].is_u64(), "{report}");
    let headers = &report["headers"];
    assert_eq!((&headers["saga-kind"], &headers["saga-correlation"]), (&json!("report"), &id), "{report}");
    assert!(headers.get("saga-answer").is_none(), "{report}");
    // The host itself undoes what may have been done, and answers behind that.
    let failed = phone.answer("command", &id, "failed", &reply);
    assert!(failed["message"].to_string().contains("the line is dead"), "{failed}");
    place.undo(phone, "unknown", &json!({ "input": bill("well") }), "undone").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_undo_bars_what_it_overtook_and_undoes_what_the_host_has_lost() {
    let mut place = Place::open().await;
    place.undo(pay_for("s-1"), "unknown", &json!({ "input": bill("well") }), "undone").await;
    place.command(pay_for("s-1"), &bill("well"), "cancelled").await;
    assert_eq!(place.paid().await, 0);
    place.undo(pay_for("s-2"), "done", &json!({ "input": bill("well"), "output": 120 }), "undone").await;
    assert_eq!(place.paid().await, -12);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_needs_a_person_there_says_so() {
    let mut place = Place::open().await;
    place.command(pay_for("s-1"), &bill("keep"), "done").await;
    let both = json!({ "input": bill("keep"), "output": 120 });
    let stuck = place.undo(pay_for("s-1"), "done", &both, "stuck").await;
    assert!(stuck["message"].to_string().contains("it is spent"), "{stuck}");
    // Dead letters: of a command another content, no content, and of an undo what is no undo's content.
    place.command(pay_for("s-2"), &bill("well"), "done").await;
    for (step, kind, body) in [
        (pay_for("s-2"), "command", bill("decline")),
        (pay_for("s-3"), "command", json!("a bill")),
        (Step { name: "launder", ..pay_for("s-4") }, "command", bill("well")),
        (pay_for("s-5"), "undo", bill("well")),
    ] {
        let refused = place.ask(step, kind, &body, json!({ "answer": "done" }), "refused").await;
        assert!(refused["message"].to_string().contains("it is a dead letter there"), "{refused}");
    }
    // It may have been done so long ago that nobody remembers.
    let old = place.ask(pay_for("s-6"), "command", &bill("well"), json!({ "committed_at": 0 }), "unknown").await;
    assert!(old["message"].to_string().contains("it is a dead letter there"), "{old}");
}
