//! Python hosts a step: it does and undoes it, and gives every answer that there is.

use saga_amqp::AmqpTransport;
use saga_core::memory::MemoryStore;
use saga_core::store::Status;
use saga_core::{Outcome, Runtime, Saga, Settings, StepContext, StepError, saga_step};
use saga_servers::shared::Vhost;
use saga_tests::eventually;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::participant::{Participant, start};

mod contracts {
    use saga_core::{StepError, saga_step};

    use super::{Charge, Payment};

    #[saga_step(service = "till", compensated)]
    pub(crate) async fn charge_card(charge: Charge) -> Result<Payment, StepError>;
}

/// What the till is asked for, and what it is to answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Charge {
    amount: i64,
    answer: String,
    answer_undo: String,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Payment {
    payment: i64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Sale {
    charge: Charge,
    is_shipped: bool,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Declined {
    code: u32,
}

#[saga_step(no_compensation)]
async fn ship(_ctx: &StepContext, sale: Sale) -> Result<(), StepError> {
    if sale.is_shipped { Ok(()) } else { Err(StepError::reject("nobody is at home")) }
}

fn sell() -> Saga<MemoryStore, Sale> {
    Saga::named("sell")
        .input::<Sale>()
        .step_from::<contracts::charge_card, _>(|sale: &Sale| sale.charge.clone())
        .step::<ship>()
        .build()
        .unwrap()
}

/// The shop, which sells, and the till in Python.
struct Shop {
    runtime: Runtime<MemoryStore>,
    till: Participant,
    _vhost: Vhost,
}

impl Shop {
    async fn open() -> Self {
        let (vhost, till) = start("till", &[]).await;
        let transport = AmqpTransport::connect(vhost.url()).await.unwrap();
        let named = |settings: &mut Settings| settings.service = Some("shop".to_owned());
        let runtime = Runtime::builder(MemoryStore::new()).transport(transport).saga(&sell()).settings(named);
        Self { runtime: runtime.start().await.unwrap(), till, _vhost: vhost }
    }

    /// Starts a sale, whose command the till answers; the sale's key is the answers.
    async fn sell(&mut self, answer: &str, is_shipped: bool, answer_undo: &str) -> String {
        let key = format!("{answer}-{is_shipped}-{answer_undo}");
        let charge = Charge { amount: 12, answer: answer.to_owned(), answer_undo: answer_undo.to_owned() };
        self.runtime.start(&sell(), &key, Sale { charge, is_shipped }).await.unwrap();
        let served = self.till.run(json!(["serve"])).await;
        let headers = &served["received"]["headers"];
        assert_eq!((&served["replied"], &headers["saga-kind"]), (&json!(answer), &json!("command")), "{served}");
        assert_eq!(served["received"]["body"], input(answer, answer_undo), "{served}");
        key
    }

    /// The till answers an undo that says so much of the step.
    async fn undo(&mut self, known: &str, answer: &str, answer_undo: &str) {
        let served = self.till.run(json!(["serve"])).await;
        let headers = &served["received"]["headers"];
        assert_eq!((&headers["saga-kind"], &headers["saga-answer"]), (&json!("undo"), &json!(known)), "{served}");
        let mut body = json!({ "input": input(answer, answer_undo) });
        if known == "done" {
            body["output"] = json!({ "payment": 120 });
        }
        assert_eq!(served["received"]["body"], body, "{served}");
        assert_eq!(served["replied"], answer_undo);
    }

    async fn comes_to(&self, key: &str, status: Status) -> Option<Outcome> {
        let look = async || {
            let summary = self.runtime.status(key).await.unwrap().unwrap().summary;
            (summary.status == status).then_some(summary.outcome)
        };
        eventually(&format!("{key} {status:?}"), look).await
    }
}

fn input(answer: &str, answer_undo: &str) -> Value {
    json!({ "amount": 12, "answer": answer, "answer_undo": answer_undo })
}

#[tokio::test(flavor = "multi_thread")]
async fn each_answer_to_a_command_has_its_consequence() {
    let mut shop = Shop::open().await;
    let key = shop.sell("done", true, "-").await;
    shop.comes_to(&key, Status::Completed).await;
    for answer in ["rejected", "failed", "cancelled", "undone"] {
        let key = shop.sell(answer, true, "-").await;
        let outcome = shop.comes_to(&key, Status::Compensated).await;
        let Some(Outcome::Compensated { failed_step, reason, .. }) = outcome else { panic!("{outcome:?}") };
        let says = match answer {
            "cancelled" | "undone" => "`till` has barred it".to_owned(),
            _ => format!("the till says {answer}"),
        };
        assert_eq!((failed_step.as_str(), reason.message()), ("charge-card", says.as_str()));
        let details = (answer == "rejected").then_some(Declined { code: 51 });
        assert_eq!(reason.details::<Declined>(), details);
    }
    // What may have happened is undone, without an output.
    let key = shop.sell("unknown", true, "undone").await;
    shop.undo("unknown", "unknown", "undone").await;
    shop.comes_to(&key, Status::Compensated).await;
    // A person decides: here at once, there some time.
    let key = shop.sell("refused", true, "-").await;
    let outcome = shop.comes_to(&key, Status::Stuck).await;
    assert!(outcome.is_some_and(|outcome| outcome.to_string().contains("the till says refused")));
    let key = shop.sell("stuck", true, "-").await;
    shop.comes_to(&key, Status::Stuck).await;
    shop.till.run(json!(["settle", key, "charge-card", "command", "done"])).await;
    shop.comes_to(&key, Status::Completed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_answer_to_an_undo_has_its_consequence() {
    let mut shop = Shop::open().await;
    for answer in ["undone", "cancelled", "rejected", "failed"] {
        let key = shop.sell("done", false, answer).await;
        shop.undo("done", "done", answer).await;
        shop.comes_to(&key, Status::Compensated).await;
    }
    for answer in ["stuck", "refused", "unknown"] {
        let key = shop.sell("done", false, answer).await;
        shop.undo("done", "done", answer).await;
        let outcome = shop.comes_to(&key, Status::Stuck).await;
        assert!(outcome.is_some_and(|outcome| outcome.to_string().contains(&format!("the till says {answer}"))));
        shop.till.run(json!(["settle", key, "charge-card", "undo", "undone"])).await;
        shop.comes_to(&key, Status::Compensated).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_report_is_shown_while_the_reply_is_awaited() {
    let mut shop = Shop::open().await;
    let key = shop.sell("nothing", true, "-").await;
    for (number, page) in [(1, 10), (3, 30), (2, 20)] {
        shop.till.run(json!(["report", key, "charge-card", number, { "page": page }])).await;
    }
    let shown = async || {
        let status = shop.runtime.status(&key).await.unwrap().unwrap();
        let progress = status.steps[0].progress.clone()?;
        (progress.report == r#"{"page": 30}"#).then_some(())
    };
    eventually("the report with the highest number", shown).await;
    shop.till.run(json!(["settle", key, "charge-card", "command", "done"])).await;
    shop.comes_to(&key, Status::Completed).await;
}
