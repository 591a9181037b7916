// rule: step
use saga_core::{Saga, saga::SagaBuilder, store::Store};

fn saga<S: Store>() -> SagaBuilder<S, String> {
    Saga::named("order").input::<String>().step::<String>()
}

fn main() {}
