// pass: a step is more visible than the function that asks about it, which takes what a step takes, in any order
use saga_core::{RetryPolicy, Saga};
use saga_core::memory::MemoryStore;
use saga_core::step::Step;

use self::payments::{charge_card, reserve};

mod payments {
    use saga_core::{Output, Resolved, State, StepContext, StepError, saga_resolution, saga_step};

    #[saga_step(no_compensation)]
    pub(crate) async fn reserve(_order: u64) -> Result<u32, StepError> {
        Ok(1)
    }

    #[saga_step(no_compensation, resolve = find_charge)]
    pub(crate) async fn charge_card(_ctx: &StepContext, _order: u64) -> Result<Option<u64>, StepError> {
        Ok(None)
    }

    #[saga_resolution(retry(attempts = 9, base = "1s", cap = "1m"), timeout = "5s")]
    async fn find_charge(
        State(rate): State<u64>,
        Output(_reserved): Output<reserve>,
        _order: u64,
        _ctx: &StepContext,
    ) -> Result<Resolved<Option<u64>>, StepError> {
        Ok(if rate > 0 { Resolved::Done(Some(rate)) } else { Resolved::Pending })
    }
}

#[test]
fn the_saga_is_built_and_the_options_are_kept() {
    let saga: Saga<MemoryStore, u64> =
        Saga::named("pay").input::<u64>().step::<reserve>().step::<charge_card>().build().unwrap();
    assert_eq!(saga.name(), "pay");
    let resolve = charge_card::RESOLVE.unwrap();
    assert_eq!((resolve.options().retry_policy(&RetryPolicy::DEFAULT).attempts, resolve.options().timeout.as_secs()), (Some(9), 5));
    assert!(reserve::RESOLVE.is_none());
}

#[test]
fn what_it_reads_is_needed_in_front_of_the_step() {
    let problem = Saga::<MemoryStore, ()>::named("pay").input::<u64>().step::<charge_card>().build().unwrap_err();
    assert!(problem.to_string().contains("reserve"), "{problem}");
}
