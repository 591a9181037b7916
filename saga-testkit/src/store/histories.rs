//! Randomised histories: the store against the model, call by call.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};

use saga_core::store::{
    Applied, Changes, Condition, HandlerVerdict, Lease, MemberId, Members, Miss, Outbox, Postponed, RecordedOutcome,
    Records, SagaId, Started, Status, StepId, Store, Work, WorkId, WorkRef,
};

use crate::check::{Failed, Outcome, ensure, ensure_eq};
use crate::fixture::{Begun, Bench, HOUR, Play, STEP};
use crate::harness::StoreHarness;
use crate::model::{Answer, Change, Model, ModelWork, Random};

const HISTORIES: u64 = 6;
const CALLS: usize = 120;
const STEPS: [&str; 3] = [STEP, "charge", "ship"];

/// The variable that runs one history again.
const SEED: &str = "SAGA_TEST_SEED";

pub(crate) async fn random_histories_answer_as_the_model<H: StoreHarness>(bench: Bench<H>) -> Outcome {
    let given = std::env::var(SEED).ok().and_then(|seed| seed.parse().ok());
    let first = given.unwrap_or_else(|| RandomState::new().hash_one(0_u8));
    let histories = if given.is_some() { 1 } else { HISTORIES };
    for seed in (0..histories).map(|offset| first.wrapping_add(offset)) {
        let bench = Bench::fresh(std::sync::Arc::clone(&bench.harness)).await;
        let history = History {
            bench,
            model: Model::default(),
            begun: BTreeMap::new(),
            members: Vec::new(),
            random: Random(seed),
            sent: 0,
        };
        history.run().await.map_err(|Failed(what)| Failed(format!("{what} (run it again with {SEED}={seed})")))?;
    }
    Ok(())
}

/// A history in the making.
struct History<H: StoreHarness> {
    bench: Bench<H>,
    model: Model,
    begun: BTreeMap<SagaId, Begun>,
    members: Vec<MemberId>,
    random: Random,
    /// Every message has an ordering key of its own.
    sent: u64,
}

impl<H: StoreHarness> History<H> {
    async fn run(mut self) -> Outcome {
        self.join().await?;
        for call in 0..CALLS {
            let at = |Failed(what)| Failed(format!("call {call}: {what}"));
            match self.random.below(20) {
                0..=3 => self.start().await,
                4..=7 => self.claim().await,
                8..=11 => self.record().await,
                12..=14 => self.transact().await,
                15 => self.give_back().await,
                16 => self.attempt().await,
                17 => self.note_late().await,
                18 => self.renew().await,
                _ => self.come_and_go().await,
            }
            .map_err(at)?;
        }
        if self.random.percent(50) {
            self = self.reopen().await?;
        }
        self.compare().await
    }

    async fn reopen(mut self) -> Result<Self, Failed> {
        self.bench = self.bench.reopen().await?;
        let capabilities = self.bench.store.capabilities();
        if !capabilities.shared && capabilities.persistent {
            self.model.living.clear();
        }
        Ok(self)
    }

    async fn join(&mut self) -> Outcome {
        let member = self.bench.member().await?;
        self.members.push(member);
        self.model.living.insert(member);
        Ok(())
    }

    async fn come_and_go(&mut self) -> Outcome {
        let member = self.member();
        self.bench.store.leave(member).await?;
        self.model.living.remove(&member);
        let beats = self.bench.store.heartbeat(member, HOUR).await?;
        ensure!(!beats, "the beat of a member that left was answered with true");
        self.join().await
    }

    /// A member, mostly a living one.
    fn member(&mut self) -> MemberId {
        let living: Vec<MemberId> = self.model.living.iter().copied().collect();
        let of = if self.random.percent(90) && !living.is_empty() { &living } else { &self.members };
        self.random.pick(of).unwrap_or(MemberId(0))
    }

    /// A row, mostly under the epoch that it has.
    fn row(&mut self, of: Option<SagaId>) -> Option<WorkRef> {
        let of_saga = |(_, row): &(&WorkId, &ModelWork)| of.is_none_or(|saga| row.saga == saga);
        // A row whose step has a record may be gone already, or not.
        let rows = self.model.work.iter().filter(of_saga).filter(|(_, row)| !self.model.has_record(row));
        let rows: Vec<WorkId> = rows.map(|(id, _)| *id).collect();
        let id = self.random.pick(&rows)?;
        let name = self.model.name(id)?;
        Some(if self.random.percent(85) { name } else { WorkRef { epoch: name.epoch + 1, ..name } })
    }

    fn step(&mut self) -> &'static str {
        STEPS[self.random.below(STEPS.len())]
    }

    async fn start(&mut self) -> Outcome {
        let key = format!("k-{}", self.random.below(12));
        let saga = self.bench.new_saga(&saga_core::key::Tenant::default(), &key).await?;
        let begun = Begun::of(&saga, saga.commands[0].id);
        let known = self.begun.values().find(|known| known.key == begun.key).map(|known| known.id);
        match (known, self.bench.start_new(saga).await?) {
            (None, Started::New) => {
                self.model.start(begun.id, begun.work.id, STEP);
                self.begun.insert(begun.id, begun);
            }
            (Some(id), Started::AlreadyExists(row)) if row.id == id => {}
            (known, answer) => {
                return Err(Failed(format!("{key} is held by {known:?}, and a start answered {answer:?}")));
            }
        }
        Ok(())
    }

    async fn claim(&mut self) -> Outcome {
        let owner = self.member();
        let limit = 1 + self.random.below(4);
        let claimable = self.model.claimable(owner);
        let claimed = self.bench.claim(Lease { owner, ttl: HOUR }, limit).await?;
        ensure_eq!(
            claimed.work.len(),
            limit.min(claimable.len()),
            "how many of {claimable:?} were claimed, of {limit}"
        );
        let sagas: BTreeSet<SagaId> = claimed.work.iter().map(|work| work.saga).collect();
        ensure_eq!(claimed.sagas.len(), sagas.len(), "the sagas that came with {:?}", claimed.work);
        for work in claimed.work {
            ensure!(claimable.contains(&work.work.id), "{work:?} was claimed, and only {claimable:?} may be");
            let Some(row) = self.model.claim(work.work.id, owner) else { continue };
            let seen = (
                work.work.epoch,
                work.saga,
                work.step.as_str(),
                work.attempts,
                work.in_doubt,
                work.recovered,
                work.late,
            );
            let expected = (row.epoch, row.saga, row.step.as_str(), row.attempts, row.maybe, row.suspect, row.late);
            ensure_eq!(seen, expected, "what was claimed");
        }
        Ok(())
    }

    async fn record(&mut self) -> Outcome {
        let sagas: Vec<SagaId> = self.begun.keys().copied().collect();
        let mut asked = Vec::new();
        for _ in 0..=self.random.below(3) {
            let Some(saga) = self.random.pick(&sagas) else { return Ok(()) };
            if !asked.iter().any(|change: &Change| change.saga == saga) {
                asked.push(self.change(saga).await?);
            }
        }
        let changes = asked.iter().map(|change| self.changes(change)).collect();
        let applied = self.bench.store.record(changes).await?;
        let expected: Vec<Answer> = asked.iter().map(|change| self.model.record(change)).collect();
        let answers: Vec<Answer> = applied.iter().map(answer).collect();
        ensure_eq!(answers, expected, "the answers to {asked:?}");
        Ok(())
    }

    async fn change(&mut self, saga: SagaId) -> Result<Change, Failed> {
        let version = self.model.sagas.get(&saga).map_or(1, |saga| saga.version);
        let finished = if self.random.percent(50) { self.row(Some(saga)) } else { None };
        let postponed = if finished.is_none() && self.random.percent(30) { self.row(Some(saga)) } else { None };
        let command = if self.random.percent(40) {
            let owner = if self.random.percent(30) { Some(self.member()) } else { None };
            Some((WorkId(self.bench.id().await?), self.step().to_owned(), owner, self.random.percent(20)))
        } else {
            None
        };
        let outcomes = [RecordedOutcome::Done, RecordedOutcome::Rejected, RecordedOutcome::Cancelled];
        let outcome = outcomes[self.random.below(outcomes.len())];
        let statuses = [Status::Running, Status::Running, Status::Compensating, Status::Completed, Status::Stuck];
        Ok(Change {
            saga,
            expected: if self.random.percent(85) { version } else { version + 1 },
            status: statuses[self.random.below(statuses.len())],
            finished: finished.map(|work| (work, self.random.percent(50))),
            postponed: postponed.map(|work| (work, self.random.percent(30))),
            record: if self.random.percent(40) { Some((self.step().to_owned(), outcome)) } else { None },
            command,
            messages: self.random.below(3) as u64,
        })
    }

    /// The change as the store gets it.
    fn changes(&mut self, change: &Change) -> Changes {
        let Some(begun) = self.begun.get(&change.saga).cloned() else { return Changes::default() };
        let condition = |not_late| if not_late { Condition::NotLate } else { Condition::Held };
        let due = |is_later| if is_later { HOUR } else { std::time::Duration::ZERO };
        let command = change.command.as_ref().map(|(id, step, owner, is_later)| {
            let mut command = begun.command(*id, step);
            command.due_in = due(*is_later);
            command.lease = owner.map(|owner| Lease { owner, ttl: HOUR });
            command
        });
        let postponed = change.postponed.map(|(work, is_later)| Postponed {
            attempts: 9,
            in_doubt: true,
            ..begun.with_work(work).postponed(due(is_later))
        });
        let messages = (0..change.messages).map(|_| {
            self.sent += 1;
            begun.message(&format!("o-{}", self.sent), 1)
        });
        Changes {
            saga: Some(begun.advance(change.expected, change.status)),
            messages: messages.collect(),
            finished: change.finished.map(|(work, not_late)| (work, condition(not_late))).into_iter().collect(),
            postponed: postponed.into_iter().collect(),
            records: change.record.iter().map(|(step, outcome)| begun.record(step, *outcome)).collect(),
            commands: command.into_iter().collect(),
            ..Changes::default()
        }
    }

    /// A step transaction of up to three claims of different sagas, whose versions may have moved.
    async fn transact(&mut self) -> Outcome {
        let mut claims = Vec::new();
        for _ in 0..=self.random.below(3) {
            let Some(work) = self.row(None) else { return Ok(()) };
            let Some(row) = self.model.work.get(&work.id).cloned() else { continue };
            let Some(begun) = self.begun.get(&row.saga) else { continue };
            let claim = begun.claim_as(work, &row.step);
            if !claims.iter().any(|other: &saga_core::store::Claim| other.saga == claim.saga) {
                claims.push(claim);
            }
        }
        let granted: Vec<bool> = claims.iter().map(|claim| self.is_granted(claim)).collect();
        let mut plays = Vec::new();
        let mut done = Vec::new();
        for (claim, is_granted) in claims.iter().zip(&granted) {
            let verdict = if self.random.percent(70) { HandlerVerdict::Keep } else { HandlerVerdict::RollBack };
            plays.push(Play::then(&format!("row-{}", claim.work.id.0), 1, verdict));
            let stale = u64::from(self.random.percent(30));
            if *is_granted {
                let version = self.model.sagas.get(&claim.saga).map_or(1, |saga| saga.version);
                done.push((self.done(claim, version), stale, verdict));
            }
        }
        let right: Vec<Changes> = done.iter().map(|(change, _, _)| self.changes(change)).collect();
        let mut asked = right.clone();
        for (changes, (_, stale, _)) in asked.iter_mut().zip(&done) {
            if let Some(advance) = &mut changes.saga {
                advance.expected += stale;
            }
        }
        let script = self.bench.script(plays, asked).again(move |_| right.clone());
        let seen = script.seen();
        self.bench.store.transact(claims.clone(), Box::new(script)).await?;
        ensure_eq!(seen().granted, granted, "which of {claims:?} were granted");
        for (change, _, verdict) in &done {
            let Some((work, _)) = change.finished else { continue };
            ensure_eq!(self.model.record(change), Answer::Applied, "the model's own answer");
            let written = self.bench.business(&format!("row-{}", work.id.0)).await.is_some();
            ensure_eq!(written, *verdict == HandlerVerdict::Keep, "whether the handler's write is there");
        }
        Ok(())
    }

    fn is_granted(&self, claim: &saga_core::store::Claim) -> bool {
        let Some(row) = self.model.work.get(&claim.work.id) else { return false };
        let is_running = self.model.sagas.get(&claim.saga).is_some_and(|saga| saga.status == Status::Running);
        row.epoch == claim.work.epoch && is_running && !self.model.has_record(row)
    }

    fn done(&mut self, claim: &saga_core::store::Claim, version: u64) -> Change {
        Change {
            saga: claim.saga,
            expected: version,
            status: Status::Running,
            finished: Some((claim.work, false)),
            postponed: None,
            record: Some((claim.step.as_str().to_owned(), RecordedOutcome::Done)),
            command: None,
            messages: self.random.below(2) as u64,
        }
    }

    async fn give_back(&mut self) -> Outcome {
        let Some(work) = self.row(None) else { return Ok(()) };
        let expected = self.model.held(work).map(|row| (row.owner, row.epoch) = (None, row.epoch + 1)).is_some();
        ensure_eq!(self.bench.store.release_work(&[work]).await?, [expected], "whether {work:?} was given back");
        Ok(())
    }

    async fn attempt(&mut self) -> Outcome {
        let Some(work) = self.row(None) else { return Ok(()) };
        let attempt = self.model.work.get(&work.id).map_or(1, |row| row.attempts + 1);
        let expected = self.model.held(work).map(|row| row.attempts = attempt).is_some();
        ensure_eq!(
            self.bench.store.begin_attempt(work, attempt).await?,
            expected,
            "whether an attempt of {work:?} began"
        );
        Ok(())
    }

    async fn note_late(&mut self) -> Outcome {
        let Some(work) = self.row(None) else { return Ok(()) };
        let row = self.model.work.get_mut(&work.id);
        let expected = row.map(|row| row.late.get_or_insert_with(|| b"late".to_vec())).is_some();
        let noted = self.bench.store.note_late(work.id, b"late").await?;
        ensure_eq!(noted, expected, "whether a late success was noted");
        Ok(())
    }

    async fn renew(&mut self) -> Outcome {
        let Some(work) = self.row(None) else { return Ok(()) };
        let owner = self.member();
        let expected = self.model.held(work).map(|row| row.owner = Some(owner)).is_some();
        let renewed = self.bench.store.renew(&[work], Lease { owner, ttl: HOUR }).await?;
        ensure_eq!(renewed, [expected], "whether {work:?} was renewed");
        Ok(())
    }

    /// Compares everything that can be read.
    async fn compare(&self) -> Outcome {
        for (id, begun) in &self.begun {
            let Some(expected) = self.model.sagas.get(id) else { continue };
            let whole = self.bench.whole(begun).await?;
            ensure_eq!((whole.saga.status, whole.saga.version), (expected.status, expected.version), "saga {}", id.0);
            let records = whole.records.iter().map(|record| (record.step.as_str().to_owned(), record.outcome));
            ensure_eq!(records.collect::<BTreeMap<_, _>>(), expected.records, "the records of saga {}", id.0);
            let is_open = |step: &StepId| !expected.records.contains_key(step.as_str());
            let work = whole.work.iter().filter(|work| is_open(&work.step)).map(|work| (work.work.id, work.attempts));
            let rows = self.model.work.iter().filter(|(_, row)| row.saga == *id && !self.model.has_record(row));
            let rows: BTreeMap<WorkId, u32> = rows.map(|(id, row)| (*id, row.attempts)).collect();
            ensure_eq!(work.collect::<BTreeMap<_, _>>(), rows, "the work of saga {}, with its attempts", id.0);
        }
        ensure_eq!(self.bench.store.depth().await?.rows, self.model.messages, "the messages that wait");
        Ok(())
    }
}

fn answer(applied: &Applied) -> Answer {
    match applied {
        Ok(()) => Answer::Applied,
        Err(Miss::Work(_)) => Answer::Work,
        Err(Miss::Late { .. }) => Answer::Late,
        Err(Miss::Record(_)) => Answer::Record,
        Err(Miss::Saga(_) | Miss::NoSaga(_)) => Answer::Saga,
    }
}
