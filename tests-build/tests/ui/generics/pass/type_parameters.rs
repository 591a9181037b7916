// pass: other type parameters belong to the name of the step
use std::marker::PhantomData;

use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::{Output, Saga, State, StepContext, StepError, saga_compensation, saga_step};

use crate::{connection, ready};

trait Gateway: Clone + Send + Sync + 'static {
    const NAME: &'static str;
}

#[derive(Clone)]
struct Stripe;

impl Gateway for Stripe {
    const NAME: &'static str = "stripe";
}

trait Ledger: Send {
    fn write(&mut self, line: &str) -> Result<(), StepError>;
}

impl Ledger for MemoryConn {
    fn write(&mut self, line: &str) -> Result<(), StepError> {
        self.put("payment", line)?;
        Ok(())
    }
}

struct Kind<T: ?Sized>(PhantomData<fn() -> T>);

impl<T: ?Sized> Clone for Kind<T> {
    fn clone(&self) -> Self {
        Self(PhantomData)
    }
}

#[saga_step(compensate = refund::<G>)]
async fn charge<G: Gateway>(_ctx: &StepContext, order: u64, _gateway: State<G>) -> Result<String, StepError> {
    Ok(format!("{} {order}", G::NAME))
}

#[saga_compensation]
async fn refund<G: Gateway>(_order: u64, _payment: Option<String>, _gateway: State<G>) -> Result<(), StepError> {
    Ok(())
}

#[saga_step]
async fn confirm<C, G, T>(
    conn: &mut C,
    _order: u64,
    Output(payment): Output<charge<G>>,
    _kind: State<Kind<T>>,
) -> Result<(), StepError>
where
    C: Ledger,
    G: Gateway,
    T: ?Sized + 'static,
{
    conn.write(&payment)
}

#[saga_step(no_compensation)]
async fn named_by_its_type<G: Gateway>(_order: u64) -> Result<String, StepError> {
    Ok(G::NAME.to_owned())
}

#[test]
fn they_are_given_where_the_step_is_named() {
    let saga = Saga::<MemoryStore, ()>::named("pay")
        .input::<u64>()
        .step::<charge<Stripe>>()
        .step::<named_by_its_type<Stripe>>()
        .step::<confirm<Stripe, str>>()
        .build()
        .unwrap();
    assert_eq!(saga.name(), "pay");
    let ctx = StepContext::for_test("order-7:charge");
    let payment = ready(charge(&ctx, 3, State(Stripe))).unwrap();
    connection(|conn| {
        let kind = State(Kind::<str>(PhantomData));
        ready(confirm(conn, 3, Output::<charge<Stripe>>(payment), kind)).unwrap();
        assert_eq!(conn.get("payment"), Some(b"stripe 3".to_vec()));
    });
}
