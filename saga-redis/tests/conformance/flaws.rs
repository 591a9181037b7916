//! Lock services with planted mistakes, each of which a check must find.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use saga_redis::{AcquireRequest, Acquired, HeldLock, LockError, LockService};

use crate::checks;
use crate::place::Place;

/// A planted mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flaw {
    /// `L-1`: who waits is told that it has the lock.
    GrantsToAll,
    /// `L-1`: the tenant is no part of the name.
    TenantsMeet,
    /// `L-2`: the token is the counter alone.
    TokenFromRedisAlone,
    /// `L-3`: asking again is a new grant.
    NewTokenEachTime,
    /// `L-4`: a waiter has no place.
    NoQueue,
    /// `L-5`: a waiter is kept in the queue for ever.
    SilentWaitersBlock,
    /// `L-6`: a renewal does nothing.
    RenewalIgnored,
    /// `L-6`: a renewal of a lost lock succeeds.
    LossNotTold,
    /// `L-7`: a release ends the lock of whichever holder has it.
    ReleaseWithoutHolder,
    /// `L-8`: the lock is granted with its first entity.
    FirstEntityIsEnough,
}

struct Flawed {
    inner: Arc<dyn LockService>,
    flaw: Flaw,
    last: Mutex<Option<HeldLock>>,
    waiting: Mutex<Vec<AcquireRequest>>,
}

/// The counter of a token is in its lower bits.
const COUNTER: u64 = (1 << 40) - 1;

impl Flawed {
    fn last(&self) -> Option<HeldLock> {
        self.last.lock().unwrap().clone()
    }

    fn with_tokens(lock: &HeldLock, change: impl Fn(u64) -> u64) -> Acquired {
        let tokens = lock.tokens().map(|(_, token)| change(token)).collect();
        Acquired::Granted(HeldLock::new(lock.request().clone(), tokens))
    }

    async fn ask_for_all_that_wait(&self) -> Result<(), LockError> {
        let waiting = self.waiting.lock().unwrap().clone();
        for request in waiting {
            let request = request.wait_ttl(crate::place::LONG);
            if self.inner.acquire(&request).await?.granted().is_some() {
                self.waiting.lock().unwrap().retain(|other| other.holder() != request.holder());
            }
        }
        Ok(())
    }
}

#[async_trait]
impl LockService for Flawed {
    async fn acquire(&self, request: &AcquireRequest) -> Result<Acquired, LockError> {
        match self.flaw {
            Flaw::TenantsMeet => {
                return self.inner.acquire(&request.clone().tenant(saga_core::Tenant::default())).await;
            }
            Flaw::FirstEntityIsEnough => {
                let first = AcquireRequest::new([request.entities()[0].clone()], request.holder());
                let tokens = |lock: HeldLock| lock.tokens().map(|(_, token)| token).next().unwrap();
                return Ok(match self.inner.acquire(&first).await? {
                    Acquired::Granted(lock) => {
                        let tokens = vec![tokens(lock); request.entities().len()];
                        Acquired::Granted(HeldLock::new(request.clone(), tokens))
                    }
                    waits @ Acquired::Waits { .. } => waits,
                });
            }
            Flaw::SilentWaitersBlock => self.ask_for_all_that_wait().await?,
            Flaw::NewTokenEachTime => {
                if let Some(last) = self.last().filter(|last| last.request().holder() == request.holder()) {
                    self.inner.release(&last).await?;
                }
            }
            _ => {}
        }
        let answer = self.inner.acquire(request).await?;
        if let Acquired::Granted(lock) = &answer {
            *self.last.lock().unwrap() = Some(lock.clone());
        }
        match (self.flaw, &answer) {
            (Flaw::GrantsToAll, Acquired::Waits { .. }) => {
                let tokens = vec![u64::MAX; request.entities().len()];
                return Ok(Acquired::Granted(HeldLock::new(request.clone(), tokens)));
            }
            (Flaw::TokenFromRedisAlone, Acquired::Granted(lock)) => {
                return Ok(Self::with_tokens(lock, |token| token & COUNTER));
            }
            (Flaw::NoQueue, Acquired::Waits { .. }) => self.inner.withdraw(request).await?,
            (Flaw::SilentWaitersBlock, Acquired::Waits { .. }) => {
                let mut waiting = self.waiting.lock().unwrap();
                waiting.retain(|other| other.holder() != request.holder());
                waiting.push(request.clone());
            }
            _ => {}
        }
        Ok(answer)
    }

    async fn renew(&self, lock: &HeldLock) -> Result<(), LockError> {
        match self.flaw {
            Flaw::RenewalIgnored => Ok(()),
            Flaw::LossNotTold => self.inner.renew(lock).await.or(Ok(())),
            _ => self.inner.renew(lock).await,
        }
    }

    async fn release(&self, lock: &HeldLock) -> Result<(), LockError> {
        match (self.flaw, self.last()) {
            (Flaw::ReleaseWithoutHolder, Some(last)) => self.inner.release(&last).await,
            _ => self.inner.release(lock).await,
        }
    }

    async fn withdraw(&self, request: &AcquireRequest) -> Result<(), LockError> {
        self.inner.withdraw(request).await
    }
}

async fn flawed(flaw: Flaw, check: &str) -> Place {
    let place = Place::server(&format!("{flaw:?}-{check}")).await;
    let (last, waiting) = Default::default();
    place.with(|inner| Arc::new(Flawed { inner, flaw, last, waiting }))
}

/// Each check must fail on its flaw.
macro_rules! flaws {
    ($($test:ident: $flaw:ident is found by $($check:ident),+;)*) => {$(
        #[tokio::test(flavor = "multi_thread")]
        async fn $test() {
            $(
                let place = flawed(Flaw::$flaw, stringify!($check)).await;
                let checked = tokio::spawn(async move { checks::$check(&place).await }).await;
                assert!(checked.is_err(), "{} does not find {:?}", stringify!($check), Flaw::$flaw);
            )+
        }
    )*};
}

flaws! {
    a_grant_to_all_is_found: GrantsToAll is found by
        l1_one_holder_has_an_entity, l1_holders_at_once_take_turns;
    tenants_that_meet_are_found: TenantsMeet is found by l1_tenants_never_meet;
    a_token_from_redis_alone_is_found: TokenFromRedisAlone is found by l2_tokens_grow_after_all_was_lost;
    a_new_token_each_time_is_found: NewTokenEachTime is found by l3_a_holder_that_asks_again_gets_the_same_token;
    a_waiter_without_a_place_is_found: NoQueue is found by l4_turns_are_in_the_order_of_asking;
    a_silent_waiter_that_blocks_is_found: SilentWaitersBlock is found by l5_a_silent_waiter_is_passed_over;
    an_ignored_renewal_is_found: RenewalIgnored is found by
        l6_a_renewal_lets_the_lease_begin_anew, l6_a_lock_that_was_lost_cannot_be_renewed;
    a_loss_that_is_not_told_is_found: LossNotTold is found by l6_a_lock_that_was_lost_cannot_be_renewed;
    a_release_without_the_holder_is_found: ReleaseWithoutHolder is found by l7_a_release_ends_only_the_own_lock;
    a_grant_of_the_first_entity_is_found: FirstEntityIsEnough is found by l8_all_entities_or_the_holder_waits;
}
