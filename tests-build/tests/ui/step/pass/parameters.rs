// pass: parameters stand in any order and under any pattern
use saga_core::memory::{MemoryConn, MemoryStore};
use saga_core::step::{Args, Handler, Needs, StepOutputs, Run, States, Step};
use saga_core::{Output, StepContext, StepError, saga_step};
use serde::{Deserialize, Serialize};

use crate::{connection, ready};

#[derive(Serialize, Deserialize)]
struct Order {
    id: u64,
    lines: Vec<u64>,
}

#[derive(Clone)]
struct Prefix(&'static str);

#[saga_step]
async fn count_lines(Order { lines, .. }: Order) -> Result<usize, StepError> {
    Ok(lines.len())
}

#[saga_step]
async fn r#match(
    saga_core::State(Prefix(prefix)): saga_core::State<Prefix>,
    Output(count): Output<count_lines>,
    Order { id, mut lines }: Order,
    ctx: &StepContext,
    saga_core::State(factor): saga_core::State<u64>,
    tx: &mut MemoryConn,
) -> Result<String, StepError> {
    lines.push(factor);
    let text = format!("{prefix}{id} {count} {lines:?} {}", ctx.attempt());
    tx.put("matched", text.as_bytes())?;
    Ok(text)
}

#[test]
fn each_gets_what_its_type_says() {
    let Run::Transaction(run) = <r#match as Handler<MemoryStore>>::handler() else { panic!("it takes a connection") };
    let mut states = States::new();
    states.insert(Prefix("order-"));
    states.insert(10_u64);
    let outputs = StepOutputs::from_iter([("count-lines", std::sync::Arc::from(&b"3"[..]))]);
    let ctx = StepContext::for_test("order-7:match").with_attempt(2);
    let args = Args { ctx: &ctx, states: &states, outputs: &outputs };
    connection(|conn| {
        let output = ready(run(conn, args, Order { id: 7, lines: vec![1] })).unwrap();
        assert_eq!(output, "order-7 3 [1, 10] 2");
        assert_eq!(conn.get("matched"), Some(output.into_bytes()));
    });
    let mut needs = Needs::default();
    r#match::NEEDS(&mut needs);
    assert_eq!(needs.states.len(), 2);
    assert_eq!(needs.outputs[0].step, "count-lines");
    assert_eq!(r#match::NAME, "match");
    assert!(matches!(<count_lines as Handler<MemoryStore>>::handler(), Run::External(_)));
}
