// pass: a macro makes the step, and its caller gives the parameters
use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::step::{Args, Handler, Run, States, StepOutputs};
use saga_core::{State, StepContext, StepError, saga_step};

use crate::{connection, ready};

macro_rules! step {
    ($name:ident, $parameters:tt, $body:tt) => {
        #[saga_step(no_compensation)]
        async fn $name $parameters -> Result<u64, StepError> $body
    };
}

step!(add_tax, (amount: u64, State(rate): State<u64>, ctx: &StepContext), {
    Ok(amount + amount * rate / 100 + u64::from(ctx.attempt()))
});

step!(book_tax, (tx: &mut MemoryConn, amount: u64, State(rate): State<u64>), {
    tx.put("tax", (amount * rate / 100).to_string())?;
    Ok(amount)
});

#[test]
fn its_parameters_are_read() {
    let mut states = States::new();
    states.insert(20_u64);
    let ctx = StepContext::for_test("order-7:add-tax");
    let outputs = StepOutputs::default();
    let args = Args { ctx: &ctx, states: &states, outputs: &outputs };
    let Run::External(run) = <add_tax as Handler<MemoryStore>>::handler() else { panic!("it takes no connection") };
    assert_eq!(ready(run(args, 50)).unwrap(), 60 + u64::from(ctx.attempt()));

    let Run::Transaction(run) = <book_tax as Handler<MemoryStore>>::handler() else { panic!("it takes a connection") };
    connection(|conn| {
        assert_eq!(ready(run(conn, args, 50)).unwrap(), 50);
        assert_eq!(conn.get("tax"), Some(b"10".to_vec()));
    });
}
