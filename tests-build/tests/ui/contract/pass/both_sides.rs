// pass: the contract of a step, the saga that names it, and the service that hosts it
use saga_core::{RetryPolicy, 
    Output, Saga, Service, State, StepContext, StepError,
    memory::{MemoryConn, MemoryStore},
    saga::SagaBuilder,
    saga_compensation, saga_step,
    step::{Contract, Handler, Hosted, Run, Step, Undo},
};

/// What both sides know.
mod contracts {
    use saga_core::{StepError, saga_step};
    use serde::{Deserialize, Serialize};

    /// What to charge.
    #[derive(Debug, Clone, Serialize, Deserialize)]
    pub(super) struct Charge {
        /// In cents.
        pub(super) cents: u64,
    }

    /// That it was charged.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub(super) struct Payment(pub(super) String);

    /// Charges the card.
    #[saga_step(service = "payments", compensated)]
    pub(super) async fn charge_card(charge: Charge) -> Result<Payment, StepError>;

    /// Tells the customer.
    #[saga_step(service = "mail-2", name = "tell", no_compensation)]
    pub(super) async fn tell_customer(text: String) -> Result<(), StepError>;

    /// Closes the order.
    #[cfg(not(any()))]
    #[saga_step(service = "payments")]
    pub(super) async fn close(cents: u64) -> Result<u64, StepError>;

    /// Is not there.
    #[cfg(any())]
    #[saga_step(service = "payments")]
    pub(super) async fn left_out(charge: Nothing) -> Result<(), StepError>;
}

use contracts::{Charge, Payment};

#[derive(Debug, Clone)]
struct Gateway;

#[saga_step(implements = contracts::charge_card, compensate = refund_card, retry(attempts = 8), timeout = "10s", on_exhausted = "compensate")]
async fn charge(ctx: &StepContext, charge: Charge, State(_gateway): State<Gateway>) -> Result<Payment, StepError> {
    Ok(Payment(format!("{} of {}", charge.cents, ctx.key())))
}

#[saga_compensation]
async fn refund_card(tx: &mut MemoryConn, charge: Charge, payment: Option<Payment>) -> Result<(), StepError> {
    tx.put("refunded", format!("{} {}", charge.cents, payment.is_some()))?;
    Ok(())
}

#[saga_step(implements = contracts::close)]
async fn close(tx: &mut MemoryConn, cents: u64) -> Result<u64, StepError> {
    tx.put("closed", cents.to_string())?;
    Ok(cents)
}

#[saga_step]
async fn print(_cents: u64, Output(payment): Output<contracts::charge_card>) -> Result<String, StepError> {
    Ok(payment.0)
}

fn order() -> SagaBuilder<MemoryStore, u64> {
    Saga::named("order")
        .input::<u64>()
        .step_from::<contracts::charge_card, _>(|cents: &u64| Charge { cents: *cents })
        .step_from::<contracts::tell_customer, _>(|_: &u64, Output(Payment(payment)): Output<contracts::charge_card>| payment)
        .step::<contracts::close>()
        .pivot()
        .step::<print>()
}

#[test]
fn a_contract_is_a_step_that_runs_elsewhere() {
    use contracts::{charge_card, close, tell_customer};
    assert_eq!((charge_card::NAME, charge_card::SERVICE, charge_card::COMPENSATED), ("charge-card", "payments", true));
    assert_eq!((tell_customer::NAME, tell_customer::SERVICE), ("tell", "mail-2"));
    assert_eq!((tell_customer::OPTIONS.needs_no_compensation, tell_customer::COMPENSATED), (true, false));
    let run = <charge_card as Handler<MemoryStore>>::handler();
    assert!(matches!(run, Run::Remote { service: "payments" }), "{run:?}");
    assert!(matches!(<charge_card as Handler<MemoryStore>>::undo(), Undo::Remote));
    assert!(matches!(<close as Handler<MemoryStore>>::undo(), Undo::Nothing));
}

#[test]
fn a_saga_names_it_as_any_step() {
    let chart = order().build().expect("it has a pivot").to_mermaid();
    assert!(chart.contains("s0[[\"charge-card (payments)\"]]"), "{chart}");
    assert!(chart.contains("s1[[\"tell (mail-2)\"]]"), "{chart}");
    assert!(chart.contains("s2[[\"close (payments)<br/>pivot\"]]"), "{chart}");
    assert!(chart.contains("s3[/\"print\"/]"), "{chart}");
    assert!(chart.contains("u0[\"undo charge-card\"]"), "{chart}");
}

#[test]
fn the_function_with_the_body_has_the_name_of_its_contract() {
    assert_eq!(charge::NAME, "charge-card");
    assert_eq!(<charge as Hosted>::SERVICE, "payments");
    assert_eq!(charge::OPTIONS.retry_policy(&RetryPolicy::DEFAULT).attempts, Some(8));
    let done = crate::ready(charge(&StepContext::for_test("7:charge-card"), Charge { cents: 4 }, State(Gateway)));
    assert_eq!(done.map_err(|error| error.to_string()), Ok(Payment("4 of 7:charge-card".to_owned())));
    crate::connection(|conn| {
        assert!(matches!(crate::ready(close(conn, 3)), Ok(3)));
        assert!(crate::ready(refund_card(conn, Charge { cents: 4 }, None)).is_ok());
    });
}

#[test]
fn a_service_hosts_it() {
    let payments: Service<MemoryStore> =
        Service::named("payments").host::<close>().host::<charge>().build().expect("both are of this service");
    assert_eq!(payments.name(), "payments");
    assert_eq!(payments.steps().collect::<Vec<_>>(), ["charge-card", "close"]);
}
