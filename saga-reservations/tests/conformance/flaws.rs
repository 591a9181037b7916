//! Reservations with planted mistakes, each of which a check must find.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use saga_reservations::{
    Action, Late, Operation, Reason, Reservation, ReservationKey, Reservations, ReservationsError, Reserve,
    ResourceName, State,
};
use serde_json::json;

use crate::checks;
use crate::interposed::{Between, Interposed};
use crate::place::Place;

/// A planted mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flaw {
    /// The token is not compared.
    TokenIgnored,
    /// A release before its request leaves nothing.
    NoTombstone,
    /// Each release adds the units.
    ReleaseAddsTwice,
    /// An extension of an expired hold holds again.
    ExtendRevives,
    /// The server's clock stands still, so no confirmation is late.
    NeverLate,
    /// The lines are reserved one after the other.
    LinesOneByOne,
    /// A key with other lines is another reservation.
    KeyByLines,
    /// A late confirmation has the old token.
    LateKeepsToken,
    /// Whatever is held is released when another client needs it.
    HoldsAreTaken,
    /// A confirmation is answered when Redis has it, and SQL does not.
    RedisConfirmedFirst,
    /// The capacity that was seen first is taken for that of now.
    CapacityIsOld,
}

struct Flawed {
    inner: Arc<dyn Reservations>,
    flaw: Flaw,
    revived: Mutex<BTreeSet<ReservationKey>>,
    held: Mutex<Vec<ReservationKey>>,
    capacities: Mutex<BTreeMap<ResourceName, u64>>,
}

impl Flawed {
    async fn find_known(&self, key: &ReservationKey) -> Result<Reservation, ReservationsError> {
        Ok(self.inner.find(key).await?.expect("the checks use known keys here"))
    }

    /// Passes the operation on with the current token.
    async fn with_current_token(&self, mut operation: Operation) -> Result<Reservation, ReservationsError> {
        let Some(found) = self.inner.find(&operation.key).await? else { return self.inner.perform(operation).await };
        match &mut operation.action {
            Action::Confirm { token, .. } | Action::Extend { token, .. } | Action::GiveBack { token } => {
                *token = found.token;
            }
            Action::Release { token } => *token = Some(found.token),
            _ => {}
        }
        self.inner.perform(operation).await
    }

    async fn release_twice(&self, operation: Operation) -> Result<Reservation, ReservationsError> {
        let is_repeated = self.find_known(&operation.key).await?.state == State::Released;
        let released = self.inner.perform(operation).await?;
        for line in released.lines.iter().filter(|_| is_repeated) {
            let resource = self.inner.resource(&line.resource).await?.expect("it was reserved");
            self.inner.set_capacity(&line.resource, resource.capacity + u64::from(line.quantity)).await?;
        }
        Ok(released)
    }

    async fn one_by_one(&self, key: &ReservationKey, request: &Reserve) -> Result<Reservation, ReservationsError> {
        let mut last = None;
        for (number, (resource, quantity)) in request.given_lines().iter().enumerate() {
            let part = Reserve::of(resource.as_str(), *quantity).ttl(request.time_to_live());
            let part_key = ReservationKey::new(format!("{key}#{number}")).unwrap();
            last = Some(self.inner.perform(Operation::new(part_key, Action::Reserve(part))).await?);
        }
        Ok(last.expect("the checks send lines here"))
    }

    /// The hold does not expire any more, and is said to be confirmed.
    async fn confirm_in_redis(&self, key: ReservationKey) -> Result<Reservation, ReservationsError> {
        let mut held = self.find_known(&key).await?;
        let ttl = Duration::from_hours(24);
        self.inner.perform(Operation::new(key, Action::Extend { token: held.token, ttl })).await?;
        held.state = State::Confirmed;
        Ok(held)
    }

    async fn with_old_capacity(&self, operation: Operation) -> Result<Reservation, ReservationsError> {
        let Action::Reserve(request) = &operation.action else { return self.inner.perform(operation).await };
        for (name, _) in request.given_lines() {
            let name = ResourceName::new(name.as_str()).unwrap();
            let Some(resource) = self.inner.resource(&name).await? else { continue };
            let first = *self.capacities.lock().unwrap().entry(name.clone()).or_insert(resource.capacity);
            self.inner.set_capacity(&name, first.max(resource.taken())).await?;
        }
        self.inner.perform(operation).await
    }

    async fn take_holds(&self, operation: Operation) -> Result<Reservation, ReservationsError> {
        let key = operation.key.clone();
        let mut answer = self.inner.perform(operation.clone()).await;
        if answer.as_ref().is_err_and(|error| error.refusal().unwrap().reason() == Reason::Insufficient) {
            let held = std::mem::take(&mut *self.held.lock().unwrap());
            for other in held {
                _ = self.inner.perform(Operation::new(other, Action::Release { token: None })).await;
            }
            answer = self.inner.perform(operation).await;
        }
        self.held.lock().unwrap().push(key);
        answer
    }
}

#[async_trait]
impl Between for Flawed {
    fn inner(&self) -> &dyn Reservations {
        &*self.inner
    }

    async fn perform(&self, mut operation: Operation) -> Result<Reservation, ReservationsError> {
        let key = operation.key.clone();
        match (self.flaw, &mut operation.action) {
            (Flaw::TokenIgnored, _) => self.with_current_token(operation).await,
            (Flaw::NoTombstone, Action::Release { token: None }) if self.inner.find(&key).await?.is_none() => {
                let released = json!({
                    "key": key, "lines": [], "is_unique": false, "state": "released",
                    "token": 0, "first_token": 0, "expires_at": 0, "changed_at": 0,
                });
                Ok(serde_json::from_value(released).unwrap())
            }
            (Flaw::ReleaseAddsTwice, Action::Release { .. }) => self.release_twice(operation).await,
            (Flaw::ExtendRevives, Action::Extend { .. }) => match self.inner.perform(operation).await {
                Err(error) if error.refusal().is_some_and(|refusal| refusal.reason() == Reason::Expired) => {
                    self.revived.lock().unwrap().insert(key.clone());
                    self.find_known(&key).await
                }
                answer => answer,
            },
            (Flaw::ExtendRevives, Action::Confirm { late, .. }) if self.revived.lock().unwrap().contains(&key) => {
                *late = Late::IfFree;
                self.inner.perform(operation).await
            }
            (Flaw::NeverLate, Action::Confirm { late, .. }) => {
                *late = Late::IfFree;
                self.inner.perform(operation).await
            }
            (Flaw::LinesOneByOne, Action::Reserve(request)) => self.one_by_one(&key, request).await,
            (Flaw::KeyByLines, Action::Reserve(request)) => {
                let lines = format!("{key}{:?}", request.given_lines());
                self.inner.perform(Operation::new(ReservationKey::new(lines).unwrap(), operation.action)).await
            }
            (Flaw::LateKeepsToken, Action::Confirm { .. }) => {
                let mut confirmed = self.inner.perform(operation).await?;
                confirmed.token = confirmed.first_token;
                Ok(confirmed)
            }
            (Flaw::RedisConfirmedFirst, Action::Confirm { .. }) => self.confirm_in_redis(key).await,
            (Flaw::CapacityIsOld, _) => self.with_old_capacity(operation).await,
            (Flaw::HoldsAreTaken, Action::Reserve(_)) => self.take_holds(operation).await,
            _ => self.inner.perform(operation).await,
        }
    }
}

fn flawed(place: Place, flaw: Flaw) -> Place {
    let (revived, held, capacities) = Default::default();
    place.with(|inner| Arc::new(Interposed(Flawed { inner, flaw, revived, held, capacities })))
}

/// Each check must fail on its flaw.
macro_rules! flaws {
    ($place:ident: $($test:ident: $flaw:ident is found by $($check:ident),+;)*) => {$(
        #[tokio::test]
        async fn $test() {
            $(
                let place = flawed(Place::$place().await, Flaw::$flaw);
                let checking = async move { tokio::task::spawn_local(async move { checks::$check(&place).await }).await };
                let checked = tokio::task::LocalSet::new().run_until(checking).await;
                assert!(checked.is_err(), "{} does not find {:?}", stringify!($check), Flaw::$flaw);
            )+
        }
    )*};
}

flaws! { memory:
    an_ignored_token_is_found: TokenIgnored is found by r10_another_token_changes_nothing;
    a_missing_tombstone_is_found: NoTombstone is found by r4_a_release_bars_a_late_request;
    a_release_that_adds_twice_is_found: ReleaseAddsTwice is found by r6_units_come_back_once;
    an_extension_that_revives_is_found: ExtendRevives is found by r14_an_extension_revives_nothing;
    a_clock_that_stands_still_is_found: NeverLate is found by r7_a_late_confirmation_is_refused;
    lines_one_by_one_are_found: LinesOneByOne is found by r11_lines_are_taken_all_or_none;
    keys_by_lines_are_found: KeyByLines is found by r3_a_key_with_other_lines_is_refused;
    an_old_token_after_a_late_confirmation_is_found: LateKeepsToken is found by
        r8_a_late_confirmation_may_take_the_units_again;
    holds_that_others_take_are_found: HoldsAreTaken is found by
        r1_no_more_is_taken_than_there_is;
}

flaws! { redis_over_sqlite:
    a_confirmation_in_redis_alone_is_found: RedisConfirmedFirst is found by r23_what_was_confirmed_stays_through_a_flush;
    an_ignored_token_over_redis_is_found: TokenIgnored is found by r10_another_token_changes_nothing;
    a_missing_tombstone_over_redis_is_found: NoTombstone is found by r24_a_release_bars_a_late_request_through_a_flush;
    an_old_capacity_is_found: CapacityIsOld is found by r26_a_capacity_is_that_of_now_through_a_flush;
}
