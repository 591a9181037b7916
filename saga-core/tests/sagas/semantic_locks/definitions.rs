//! What a definition may say of locks, and how a diagram shows them.

use saga_core::Saga;
use saga_core::memory::MemoryStore;
use saga_core::saga::SagaBuilder;

use crate::semantic_locks::support::{Credit, Order, Stock, account, charge, item, named, ship};

#[test]
fn a_lock_stands_before_the_pivot_and_ends_behind_it() {
    let problem = |saga: SagaBuilder<MemoryStore, Order>| saga.build().unwrap_err().to_string();
    let locked = || named().semantic_lock::<Credit, _>(account).step::<charge>();
    let late = named().step::<ship>().pivot().semantic_lock::<Credit, _>(account);
    assert!(problem(late).contains("the semantic lock `credit`: it stands behind the pivot"));
    let early = locked().release::<Credit>().step::<ship>().pivot();
    assert!(problem(early).contains("it is ended by `.release` before the pivot"));
    let unknown = locked().step::<ship>().pivot().release::<Stock>();
    assert!(problem(unknown).contains("the semantic lock `stock`: it is ended by `.release`, but not taken"));
    let nothing = named().release::<Credit>().semantic_lock::<Credit, _>(account).step::<ship>();
    assert!(problem(nothing).contains("`.release` stands behind no single step"));
    let twice = locked().semantic_lock::<Credit, _>(item).step::<ship>();
    assert!(problem(twice).contains("two of its steps are named `credit`"));
    assert!(locked().step::<ship>().release::<Credit>().build().is_ok(), "the last step is the pivot");
}

#[test]
fn a_diagram_shows_which_step_takes_a_lock() {
    let saga: Saga<MemoryStore, Order> = named().step::<charge>().step::<ship>().build().unwrap();
    assert!(!saga.to_mermaid().contains("semantic lock"));
    let saga: Saga<MemoryStore, Order> = named().semantic_lock::<Credit, _>(account).step::<ship>().build().unwrap();
    assert!(saga.to_mermaid().contains("s0[\"credit<br/>takes a semantic lock\"]"), "{}", saga.to_mermaid());
}
