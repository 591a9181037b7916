//! The operator who restarts sagas that have ended, each as a new saga.

use std::time::Duration;

use saga_core::engine::{RestartOutcome, RuntimeError};
use saga_core::env::Environment;
use saga_core::store::Status;

use super::client::{Client, PAUSE_MAX};
use crate::checker::{Answer, Variant, What};
use crate::sim::sagas::{CHOICES, SimInput, place_of, tenant_of};
use crate::sim::schedule::{Mutant, SagaScript};
use crate::sim::world::{Fault, Live};

/// How often the operator looks when nothing is disturbed any more.
const LOOKS_MAX: u32 = 50;
/// In how many of a thousand looks the operator does not wait for the end.
const HASTY_PER_MILLE: u32 = 150;
/// How many of a thousand that were refused give it up.
const GIVES_UP_PER_MILLE: u32 = 300;
const WHY: &str = "the simulation says so";

/// What a saga begins with: the name as a person says it, and the places of the steps in the plan.
type From = (String, Vec<u8>);

impl Client {
    /// Starts this saga instead of the one before it, when that has ended, and until it was answered for certain.
    pub(crate) async fn restart_at(self, moment: Duration) {
        self.world.env.sleep(moment).await;
        let mut looks = 0;
        while looks < LOOKS_MAX {
            looks += u32::from(self.world.is_calm());
            if self.restart().await {
                return;
            }
            self.world.wait_up_to(PAUSE_MAX).await;
        }
    }

    /// One look at the saga before this one; says whether there is nothing more to be done.
    async fn restart(&self) -> bool {
        let Some(from) = self.look().await else { return false };
        let is_raced = self.world.draw(|random| random.per_mille(300));
        let answer = loop {
            let live = self.any_live().await;
            let answer = if is_raced {
                self.world.hit(Fault::RestartsRaced);
                let other = self.any_live().await;
                let (one, other) = tokio::join!(biased; self.ask_for(&live, &from), self.ask_for(&other, &from));
                if one == Some(Answer::Refused) { other.or(one) } else { one.or(other) }
            } else {
                self.ask_for(&live, &from).await
            };
            if let Some(answer) = answer {
                break answer;
            }
            self.world.wait_up_to(PAUSE_MAX).await;
        };
        if answer == Answer::Refused {
            return self.world.is_calm() && self.world.draw(|random| random.per_mille(GIVES_UP_PER_MILLE));
        }
        self.world.note_restart(self.saga, from);
        true
    }

    /// What this saga is to begin with, if it is time.
    async fn look(&self) -> Option<From> {
        let old = self.old()?;
        let live = self.any_live().await;
        let (tenant, key) = (tenant_of(old.tenant), old.key.clone());
        let seen = live.ask(move |runtime| Box::pin(async move { runtime.tenant(tenant).status(key).await }));
        let status = seen.await?.ok()??;
        let is_ended = matches!(status.summary.status, Status::Completed | Status::Compensated);
        if !is_ended && !self.world.draw(|random| random.per_mille(HASTY_PER_MILLE)) {
            return None;
        }
        let names: Vec<String> = status.steps.iter().map(|step| step.step.clone()).collect();
        let names: Vec<String> = names.into_iter().filter(|name| !name.contains('#')).collect();
        // What was compensated can only be begun again as a whole, most often.
        let is_first = self.world.draw(|random| random.per_mille(300));
        let name =
            if is_first { names.first()?.clone() } else { self.world.draw(|random| random.pick(&names).clone()) };
        let mut variants = old.variants.iter().map(|definition| &self.definitions[*definition].variant);
        let variant = variants.find(|variant| variant.definition == status.summary.saga)?;
        let from = places(variant, &name);
        (!from.is_empty()).then_some((name, from))
    }

    /// One call. It answers nothing where its outcome is unknown.
    async fn ask_for(&self, live: &Live, from: &From) -> Option<Answer> {
        let of = self.world.scenario.sagas[self.saga as usize].restart_of?;
        let old = self.old()?;
        let call = self.world.recorder.number();
        let (tenant, key) = (tenant_of(old.tenant), old.key.clone());
        let new_key = self.world.scenario.sagas[self.saga as usize].key.clone();
        self.world.enter(What::RestartCalled { call, saga: self.saga, of, from: from.1.clone() });
        let name = from.0.clone();
        let asked = if self.world.scenario.mutant == Some(Mutant::RestartsFromScratch) {
            self.start_anew(live, new_key).await
        } else {
            let restart = live.ask(move |runtime| {
                Box::pin(async move { runtime.tenant(tenant).admin().control(key).restart(&name, new_key, WHY).await })
            });
            restart.await
        };
        let answer = match asked? {
            Ok(RestartOutcome::Begun) => Answer::Started { is_new: Some(true) },
            Ok(RestartOutcome::Already) => Answer::Started { is_new: Some(false) },
            Err(RuntimeError::Store(_)) => return None,
            Err(_) => Answer::Refused,
        };
        self.world.enter(What::StartAnswered { call, answer });
        self.world.hit(match answer {
            Answer::Started { is_new: Some(true) } => Fault::SagaRestarted,
            Answer::Started { .. } => Fault::RestartedAgain,
            _ => Fault::RestartRefused,
        });
        Some(answer)
    }

    /// What an engine does that takes nothing over.
    async fn start_anew(&self, live: &Live, key: String) -> Option<Result<RestartOutcome, RuntimeError>> {
        let script = &self.world.scenario.sagas[self.saga as usize];
        let definition = self.definitions[script.variants[0]].saga.clone();
        let saga = self.world.scenario.first_of(self.saga);
        let input = SimInput { saga, variant: 0, reads: None, item: 0 };
        let tenant = tenant_of(script.tenant);
        let started = live.ask(move |runtime| {
            Box::pin(async move { runtime.tenant(tenant).start(&definition, key, input).await.map(|_| ()) })
        });
        started.await?.ok().map(|()| Ok(RestartOutcome::Begun))
    }

    /// Wants the same once more, something else under the same key, and that a saga takes its own place.
    pub(crate) async fn restart_again(&self) {
        let live = self.any_live().await;
        if let Some(from) = self.world.restarted(self.saga) {
            self.ask_for(&live, &from).await;
            if let Some(other) = self.other_than(&from) {
                self.ask_for(&live, &other).await;
            }
        }
        let script = &self.world.scenario.sagas[self.saga as usize];
        let call = self.world.recorder.number();
        let (tenant, key) = (tenant_of(script.tenant), script.key.clone());
        self.world.enter(What::RestartCalled { call, saga: self.saga, of: self.saga, from: vec![0] });
        let step = self.definitions[script.variants[0]].variant.steps[0].name.clone();
        let step = step.split('#').next().unwrap_or_default().to_owned();
        let asked = live.ask(move |runtime| {
            Box::pin(async move { runtime.tenant(tenant).admin().control(key.clone()).restart(&step, key, WHY).await })
        });
        let answer = match asked.await {
            Some(Ok(_)) => Answer::Started { is_new: None },
            Some(Err(RuntimeError::Store(_))) | None => return,
            Some(Err(_)) => Answer::Refused,
        };
        self.world.enter(What::StartAnswered { call, answer });
    }

    /// Another step to begin with.
    fn other_than(&self, from: &From) -> Option<From> {
        let script = &self.world.scenario.sagas[self.saga as usize];
        let variant = &self.definitions[script.variants[0]].variant;
        let names = variant.steps.iter().map(|step| step.name.split('#').next().unwrap_or_default());
        let mut others = names.map(|name| (name.to_owned(), places(variant, name)));
        // Of another variant it may have no such step, and is refused as well.
        others.find(|other| other.0 != from.0 && other.1 != from.1)
    }

    fn old(&self) -> Option<&SagaScript> {
        let sagas = &self.world.scenario.sagas;
        sagas[self.saga as usize].restart_of.map(|old| &sagas[old as usize])
    }
}

/// The places of what that name stands for: of a step, of the items of a list, or of all that stands in the arms of a choice.
fn places(variant: &Variant, name: &str) -> Vec<u8> {
    let steps = (0..).zip(&variant.steps);
    if CHOICES.contains(&name) {
        let in_arms = steps.filter(|(_, step)| step.arms.iter().any(|arm| arm.choice == name));
        return in_arms.map(|(place, _)| place).collect();
    }
    let is_it = |step: &str| step == name || step.strip_prefix(name).is_some_and(|rest| rest.starts_with('#'));
    let own = steps.filter(|(_, step)| is_it(&step.name)).map(|(place, _)| place);
    own.inspect(|place| debug_assert_eq!(place_of(&variant.steps[usize::from(*place)].name), Some(*place))).collect()
}
