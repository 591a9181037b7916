use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use saga_core::Tenant;
use saga_core::env::{Activity, during};
use saga_core::store::{Headers, MessageId, MessageKind, Timestamp};
use saga_core::transport::Message;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::super::explorer::{Disturbances, RUNS_AT_A_TIME};
use super::super::life::{Commits, Director};
use super::super::plan::Disturbance;
use super::super::process::TRIES_MAX;
use super::super::report::Broken;
use super::super::world::{in_time, is_on_time};
use super::broker::{Broker, once_more};
use super::process::Process;
use super::report::{EventFailures, EventsExplored};
use super::subject::ExploreEvents;
use crate::VirtualTime;

/// How many orders are run, with what arrives once more in them.
const ORDERS_MAX: usize = 3_000;
/// How often the services are looked at, and how often in a row they must stand still.
const LOOK_EVERY: Duration = Duration::from_millis(20);
const LOOKS: usize = 3;
/// The id of the first event that is told.
const FIRST_ID: u128 = 0x6669_7273_7400;

/// Explores a choreography. It takes one run for each order of events, with and without a repeated event, and one for each
/// boundary at which a service can crash. The tokio runtime of the caller needs timers.
///
/// # Errors
/// The runs in which a step did not end, work remained, or the audit failed.
///
/// # Cancel safety
/// Dropping it ends the runs; their worlds are dropped.
pub async fn explore_events<E: ExploreEvents>(subject: E) -> Result<EventsExplored, EventFailures> {
    let mut explorer = Explorer {
        subject: Arc::new(subject),
        explored: EventsExplored::default(),
        broken: Vec::new(),
        open: VecDeque::from([Run::default()]),
        known: BTreeSet::from([Vec::new()]),
        seen: BTreeSet::new(),
    };
    explorer.run_all().await;
    let Explorer { explored, broken, .. } = explorer;
    if broken.is_empty() { Ok(explored) } else { Err(EventFailures { broken, explored }) }
}

/// One run: what arrives first, by its labels, and which service crashes where. What is not said comes as it was told.
#[derive(Debug, Clone, Default)]
struct Run {
    order: Vec<String>,
    crash: Option<(usize, String)>,
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((service, boundary)) = &self.crash {
            write!(f, "crash of service {} {boundary}, while there came ", service + 1)?;
        }
        f.write_str(&self.order.join(", "))
    }
}

/// A moment at which everything stood still: what was handed out then, and what else could have been.
struct Choice {
    taken: Option<String>,
    others: Vec<String>,
}

/// The result of a run.
struct Came {
    run: Run,
    choices: Vec<Choice>,
    /// The boundaries that each service passed.
    passed: Vec<(String, Vec<String>)>,
    result: Result<(), String>,
    is_reached: bool,
}

struct Explorer<E: ExploreEvents> {
    subject: Arc<E>,
    explored: EventsExplored,
    broken: Vec<Broken>,
    open: VecDeque<Run>,
    /// The beginnings of orders that were run, or are to be.
    known: BTreeSet<Vec<String>>,
    /// The boundaries at which a service was crashed.
    seen: BTreeSet<(usize, String)>,
}

impl<E: ExploreEvents> Explorer<E> {
    async fn run_all(&mut self) {
        let (mut under_way, mut disturbances) = (JoinSet::new(), Disturbances::default());
        loop {
            while under_way.len() < RUNS_AT_A_TIME
                && let Some(run) = self.open.pop_front()
            {
                let disturbance = run.to_string();
                disturbances.began(under_way.spawn(one_run(Arc::clone(&self.subject), run)).id(), disturbance);
            }
            let Some(ended) = under_way.join_next_with_id().await else { return };
            match disturbances.ended(ended) {
                Ok(came) => self.conclude(&came),
                Err(panicked) => self.broken.push(panicked),
            }
        }
    }

    fn conclude(&mut self, came: &Came) {
        self.explored.runs += 1;
        let taken: Vec<String> = came.choices.iter().filter_map(|choice| choice.taken.clone()).collect();
        match &came.run.crash {
            Some(_) => self.explored.crashes += 1,
            None if taken.iter().any(|label| label.ends_with(&once_more(""))) => self.explored.doubled += 1,
            None => self.explored.orders += 1,
        }
        if let Err(problem) = &came.result {
            let (crash, order) = (&came.run.crash, taken.join(", "));
            let crash = crash.as_ref().map(|(service, boundary)| {
                let name = came.passed.get(*service).map_or("", |(name, _)| name);
                format!("crash of {name} {boundary}, while there came ")
            });
            let disturbance = format!("{}{order}", crash.unwrap_or_default());
            self.broken.push(Broken { disturbance, problem: problem.clone() });
        } else if came.run.crash.is_none() {
            self.go_on_from(came, &taken);
        }
    }

    /// Everything that could have come instead, and a crash at each boundary that is new.
    fn go_on_from(&mut self, came: &Came, taken: &[String]) {
        for (place, choice) in came.choices.iter().enumerate().skip(came.run.order.len()) {
            for other in &choice.others {
                let order = [&taken[..place], std::slice::from_ref(other)].concat();
                if self.known.len() >= ORDERS_MAX {
                    self.explored.left_out += 1;
                } else if self.known.insert(order.clone()) {
                    self.open.push_back(Run { order, crash: None });
                }
            }
        }
        for (service, (name, passed)) in came.passed.iter().enumerate() {
            for boundary in passed {
                if self.seen.insert((service, boundary.clone())) {
                    self.explored.boundaries.push(format!("{name}: {boundary}"));
                    let crash = Some((service, boundary.clone()));
                    self.open.push_back(Run { order: taken.to_vec(), crash });
                }
            }
        }
    }
}

/// What two services do side by side is not the same in each run, and so a boundary may not be passed.
async fn one_run<E: ExploreEvents>(subject: Arc<E>, run: Run) -> Came {
    let mut came = try_run(&subject, run).await;
    for _ in 1..TRIES_MAX {
        if came.is_reached {
            break;
        }
        came = try_run(&subject, came.run).await;
    }
    if came.result.is_ok() && !came.is_reached {
        came.result = Err("it was never reached".to_owned());
    }
    came
}

async fn try_run<E: ExploreEvents>(subject: &Arc<E>, run: Run) -> Came {
    let services = subject.services();
    let directors: Vec<Arc<Director>> = (0..services.len())
        .map(|service| match &run.crash {
            Some((crashed, boundary)) if *crashed == service => {
                Disturbance::Crash { boundary: boundary.clone(), is_amid_errors: false }
            }
            _ => Disturbance::None,
        })
        .map(|disturbance| Arc::new(Director::new(None, disturbance, Commits::Shared)))
        .collect();
    let names: Vec<String> = services.iter().map(|service| service.name().to_owned()).collect();
    let time = VirtualTime::new();
    let world = Arc::new(subject.fresh(&time).await);
    let broker = Broker::default();
    let processes: Vec<Arc<Process<E>>> = services
        .into_iter()
        .zip(&directors)
        .map(|(service, director)| Process::new(subject, (&world, &time), service, Arc::clone(director), &broker))
        .collect();
    let mut choices = Vec::new();
    let result = in_time(&time, live(&processes, &broker, &run, &mut choices)).await;
    let is_reached = result.is_err() || directors.iter().all(|director| director.is_done());
    let passed = names.into_iter().zip(directors.iter().map(|director| director.passed())).collect();
    Came { run, choices, passed, result, is_reached }
}

/// Lets the services live, hands out one event after the other, and judges what is there in the end.
async fn live<E: ExploreEvents>(
    processes: &[Arc<Process<E>>],
    broker: &Broker,
    run: &Run,
    choices: &mut Vec<Choice>,
) -> Result<(), String> {
    let Some(first) = processes.first() else { return Err("there are no services".to_owned()) };
    for process in processes {
        is_on_time(&*process.store(), &process.time).await?;
    }
    let mut lives = JoinSet::new();
    for process in processes {
        let (environment, process) = (process.time.environment(), Arc::clone(process));
        // What it is about to do comes before time passes.
        lives.spawn(async move { during(&*environment, Activity::Waiting, process.keep_alive()).await });
    }
    still(processes, broker).await?;
    for (nth, event) in (0_u128..).zip(first.subject.told()) {
        let payload = event.payload?;
        let message = Message {
            id: MessageId(Uuid::from_u128(FIRST_ID + nth)),
            kind: MessageKind::Event,
            tenant: Tenant::default(),
            topic: event.name.to_owned(),
            key: E::KEY.to_owned(),
            event_type: event.name.to_owned(),
            payload,
            // The message is always new: there is no clock to compare with.
            committed_at: Timestamp(i64::MAX),
            headers: Headers::default(),
        };
        broker.accept(&message);
    }
    loop {
        still(processes, broker).await?;
        let (held, copies) = (broker.held(), copies(broker, choices));
        let taken = run.order.get(choices.len()).cloned().or_else(|| held.first().cloned());
        if taken.as_ref().is_some_and(|taken| !held.contains(taken) && !copies.contains(taken)) {
            // It is still to be told.
            first.time.advance(LOOK_EVERY).await;
            continue;
        }
        let others: BTreeSet<String> =
            held.into_iter().chain(copies).filter(|other| Some(other) != taken.as_ref()).collect();
        choices.push(Choice { taken: taken.clone(), others: others.into_iter().collect() });
        match taken {
            Some(taken) => broker.hand_out(&taken),
            None => break,
        };
    }
    for process in processes {
        process.stop().await;
        process.nothing_left().await?;
    }
    first.subject.audit(&first.world).await.map_err(|problem| format!("the audit: {problem}"))
}

/// What could arrive once more: one event in a run does.
fn copies(broker: &Broker, choices: &[Choice]) -> Vec<String> {
    let mut taken = choices.iter().filter_map(|choice| choice.taken.as_ref());
    if taken.any(|label| label.ends_with(&once_more(""))) {
        return Vec::new();
    }
    broker.handed_out().iter().map(|label| once_more(label)).collect()
}

/// Waits until all services are up, and nothing moves.
async fn still<E: ExploreEvents>(processes: &[Arc<Process<E>>], broker: &Broker) -> Result<(), String> {
    let (mut looks, mut before) = (0, None);
    while looks < LOOKS {
        let (mut is_still, moves) = broker.stands_still();
        for process in processes {
            is_still = is_still && process.is_up()? && process.is_idle().await?;
        }
        looks = if is_still && before == Some(moves) { looks + 1 } else { 0 };
        before = Some(moves);
        if let Some(process) = processes.first() {
            process.time.advance(LOOK_EVERY).await;
        }
    }
    Ok(())
}
